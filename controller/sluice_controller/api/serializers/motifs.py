"""The shapes of ``/motifs`` and ``/spaces``."""

from __future__ import annotations

from typing import Any, Final

from rest_framework import serializers as s

from sluice_controller.api.serializers.base import Serializer, UnixTimeField, computed, examples, page_of
from sluice_controller.motifs import space_name
from sluice_core.messages.elasticity import POLICIES, VERIFICATIONS
from sluice_motif_control.messages import CANCELLED, DONE, RUNNING, WAITING

OPERATION_STATES: Final = (WAITING, RUNNING, DONE, CANCELLED)
SPACE_STATES: Final = ("kept", "contracting", "filling", "above", "thrashing", "suspended")
ACTIONS: Final = ("expand", "contract")


class AttachedMotifSerializer(Serializer):
    """A motif of an object."""

    template = s.CharField()
    params = s.DictField(child=s.JSONField())
    attached_by = s.CharField(allow_blank=True, help_text="sources are read with its rights; empty: the operator's")


class ListedObjectSerializer(Serializer):
    """An object with motifs, in a list."""

    item = s.CharField(help_text="account/container/object")
    size = s.IntegerField(help_text="plain bytes")
    contracted = s.BooleanField(help_text="whether its bytes were removed")
    opens = s.IntegerField(help_text="number of opens since the daemons know it")


class ObjectSpaceSerializer(Serializer):
    """The space of an object, in a short form."""

    path = s.CharField()
    target = s.IntegerField(help_text="bytes")
    used = s.IntegerField(help_text="bytes")
    state = s.ChoiceField(SPACE_STATES)
    reason = s.CharField(allow_blank=True)


class MotifObjectSerializer(ListedObjectSerializer):
    """An object with motifs."""

    motifs = AttachedMotifSerializer(many=True)
    sources = s.ListField(child=s.CharField(), help_text="objects whose versions were recorded with its bytes")
    expansion_seconds = s.FloatField(help_text="mean time of its expansions; 0: it was never expanded")
    outcome = s.CharField(
        required=False, help_text="result of a contraction: contracted, already contracted, busy or changed (meanwhile)"
    )
    contractible = s.BooleanField(required=False, help_text="with `why`: whether it can be contracted now")
    reasons = s.ListField(child=s.CharField(), required=False, help_text="with `why`: reasons against a contraction")
    space = ObjectSpaceSerializer(required=False, allow_null=True, help_text="with `why`; null if it is in none")


class ListedObjectPageSerializer(Serializer):
    """Objects with motifs, by name."""

    objects = ListedObjectSerializer(many=True)
    next_marker = s.CharField(allow_null=True)


class NewMotifSerializer(Serializer):
    """A motif."""

    template = s.CharField(help_text="one of `/motifs/templates`")
    params = s.DictField(child=s.JSONField(), required=False, help_text="of the template; texts may have units")


class ActionSerializer(Serializer):
    """The action on an object."""

    action = s.ChoiceField(ACTIONS)
    verify = s.ChoiceField(VERIFICATIONS, required=False, help_text="for a contraction: the check before it")


class TemplateSerializer(Serializer):
    """A template."""

    keyword = s.CharField()
    help = s.CharField(allow_blank=True)
    relation = s.CharField(help_text="derived: out of date when a source changes; preserving: needs it unchanged")
    exact = s.BooleanField(help_text="whether it makes exactly the same bytes")
    parameters = s.ListField(child=s.DictField(child=s.JSONField()))


class TemplateListSerializer(Serializer):
    """The templates that all daemons have, by keyword, and the number of running daemons."""

    templates = TemplateSerializer(many=True)
    daemons = s.IntegerField()


class NewOperationSerializer(Serializer):
    """The objects to expand; by default all."""

    account = s.CharField(required=False, help_text="a project's name, or an account")
    container = s.CharField(required=False)


class FailedExpansionSerializer(Serializer):
    """An object that was not expanded."""

    item = s.CharField()
    reason = s.CharField()


class MotifOperationSerializer(Serializer):
    """An expansion of many objects."""

    id = s.CharField()
    account = computed(lambda one: one.account or None, s.CharField(allow_null=True, help_text="null: all"))
    container = computed(lambda one: one.container or None, s.CharField(allow_null=True, help_text="null: all"))
    state = s.ChoiceField(OPERATION_STATES)
    expanded = s.IntegerField(help_text="objects")
    failed = s.IntegerField(help_text="objects")
    remaining = s.IntegerField(help_text="number of objects known to be left")
    bytes = s.IntegerField(help_text="bytes of expanded objects")
    examples = computed(
        lambda one: [{"item": item, "reason": reason} for item, reason in one.examples],
        FailedExpansionSerializer(many=True, help_text="the last objects that failed"),
    )
    created_at = UnixTimeField(source="created")
    started_at = UnixTimeField(source="started", allow_null=True)
    ended_at = UnixTimeField(source="ended", allow_null=True)
    by = s.CharField(allow_blank=True)
    daemon = s.CharField(allow_blank=True, help_text="the daemon that works on it, or did last")


MotifOperationPageSerializer: Final = page_of("operations", MotifOperationSerializer, "Operations, oldest first.")


class SpacePartSerializer(Serializer):
    """A part of a space."""

    path = s.CharField()
    target = s.IntegerField(help_text="bytes")
    used = s.IntegerField(help_text="bytes")


def _parts(status: Any) -> list[dict[str, Any]]:
    return [{"path": path, "target": target, "used": used} for path, (target, used) in sorted(status.parts.items())]


class SpaceSerializer(Serializer):
    """A space: bytes are plain ones of objects with motifs."""

    name = computed(space_name, s.CharField(help_text="account/container, account, or CLUSTER"))
    level = s.CharField()
    target = s.IntegerField(help_text="the limit in bytes")
    used = s.IntegerField(help_text="stored bytes")
    contracted = s.IntegerField(help_text="bytes removed by contractions")
    objects = s.IntegerField(source="items", help_text="number of stored objects")
    contracted_objects = s.IntegerField(source="contracted_items")
    state = s.ChoiceField(SPACE_STATES)
    reason = s.CharField(allow_blank=True, help_text="why it is above its target")
    policy = s.ChoiceField(POLICIES, help_text="the order in which objects are contracted")
    min_age = s.FloatField(help_text="seconds")
    verify = s.ChoiceField(VERIFICATIONS)
    hit_rate = s.FloatField(allow_null=True, help_text="part of the last hour's opens that were hits; null: no opens")
    hits = s.IntegerField(help_text="of the last hour")
    misses = s.IntegerField(help_text="of the last hour: expansions that a client waited for")
    expansions = s.IntegerField(help_text="since its daemon began, without those that filled spare space")
    seconds_lost = s.FloatField(help_text="by those")
    expansions_per_second = s.FloatField(help_text="lately")
    expansion_time = s.FloatField(help_text="mean seconds of the last expansions")
    parts = computed(_parts, SpacePartSerializer(many=True, help_text="empty if there is one"))
    set_by = s.CharField(source="said_by", help_text="the policy that sets the limit")
    owner = s.CharField(help_text="the daemon that keeps it")
    at = UnixTimeField(help_text="time of the report")


SpacePageSerializer: Final = page_of("spaces", SpaceSerializer, "Spaces, by name.")

MOTIFS: Final = examples(
    ("the same bytes as another object", {"template": "duplicate_of", "params": {"source": "AUTH_a/c/other"}})
)
MOTIF_ACTIONS: Final = examples(
    ("contract it", {"action": "contract", "verify": "trust"}), ("expand it", {"action": "expand"})
)
OPERATIONS: Final = examples(("all objects of an account", {"account": "AUTH_a"}))
