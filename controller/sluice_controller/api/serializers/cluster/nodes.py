"""The shapes of nodes, of the newest change, and of the API's health."""

from __future__ import annotations

from rest_framework import serializers as s

from sluice_controller.api.serializers.base import Serializer, UnixTimeField, computed
from sluice_core.messages.policies import policy_of_assignment

NODE_STATES = ("ok", "stale_history", "failed", "away")
HEALTH = ("ok", "degraded")


class NodeRefusalSerializer(Serializer):
    """An assignment that a node cannot enforce."""

    assignment = s.CharField()
    policy = s.CharField()
    reason = s.CharField()


class NodeSerializer(Serializer):
    """What a node's agent reported last."""

    node = s.CharField()
    state = s.ChoiceField(NODE_STATES)
    detail = s.CharField(allow_blank=True)
    history = s.CharField(allow_blank=True)
    epoch = s.IntegerField(help_text="the last change that it has applied")
    refused = computed(
        lambda node: [
            {"assignment": assignment, "policy": policy_of_assignment(assignment), "reason": reason}
            for assignment, reason in node.refused.items()
        ],
        NodeRefusalSerializer(many=True),
    )
    workers = s.IntegerField()
    assignments = s.IntegerField()
    dropped = s.IntegerField(help_text="metric batches that were lost")
    storage = s.CharField(
        allow_blank=True,
        help_text="`ready` when objects can be transformed on its disks, else what is waited for; empty without disks",
    )
    code = s.DictField(
        child=s.IntegerField(),
        help_text="the revision that it can run of uploaded code: `<filter>`, `metric/<NAME>`",
    )
    sandbox = s.DictField(child=s.CharField(), help_text="isolated environment: `ok`, or what is wrong with it")
    plugins = s.DictField(child=s.CharField(), help_text="installed plugin that a Swift process runs without: why")
    software = s.CharField(allow_blank=True)
    started_at = UnixTimeField(source="started")
    reported_at = UnixTimeField(source="at")


class HeadSerializer(Serializer):
    """The newest change."""

    history = s.CharField(allow_blank=True)
    epoch = s.IntegerField()


class NodeListSerializer(Serializer):
    """All nodes that ever reported, but those forgotten."""

    nodes = NodeSerializer(many=True)
    next_marker = s.CharField(allow_null=True, help_text="`marker` of the next page; null on the last one")
    head = HeadSerializer()


class HealthSerializer(Serializer):
    """`degraded` when one of the dependencies is; `keystone` is one where it says who asks."""

    status = s.ChoiceField(HEALTH)
    dependencies = s.DictField(child=s.ChoiceField(HEALTH))
