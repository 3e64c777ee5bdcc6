"""The shapes of ``/controllers`` and of the instances of uploaded code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rest_framework import serializers as s

from sluice_controller.api.serializers.base import (
    EntrySerializer,
    PageSerializer,
    Serializer,
    UnixTimeField,
    computed,
    page_of,
)
from sluice_controller.api.serializers.code.uploads import CodeSerializer
from sluice_controller.code.controllers import STATES, ControllerInstance, controller_state
from sluice_controller.code.rollout import METRIC_STATES
from sluice_core.messages.uploads import Upload


class ControllerSerializer(CodeSerializer, EntrySerializer):
    """A global controller: what its code says of itself, and whether it runs."""

    name = s.CharField(source="keyword")
    help = computed(lambda upload: upload.info.get("help", ""), s.CharField(allow_blank=True))
    metrics = computed(
        lambda upload: upload.info.get("metrics", ()), s.ListField(child=s.CharField(), help_text="what it watches")
    )
    period = computed(
        lambda upload: float(upload.info.get("period", 1.0)), s.FloatField(help_text="seconds between two runs")
    )
    main = s.CharField(help_text="the class that decides")
    running = s.BooleanField(help_text="whether it was started")
    state = s.ChoiceField(STATES)
    reason = s.CharField(allow_blank=True, help_text="why it failed, or why an earlier revision goes on")
    hosts = s.ListField(child=s.CharField(), help_text="the actor hosts that run it: one, but while it moves")

    @classmethod
    def render_on(cls, hosts: Sequence[ControllerInstance], upload: Upload) -> dict[str, Any]:
        """A controller and how it fares on the hosts that run it."""
        state, reason = controller_state(upload, hosts)
        return cls.render(upload, state=state, reason=reason, hosts=[one.host for one in hosts])


ControllerPageSerializer = page_of("controllers", ControllerSerializer, "Controllers by name.")


class ControllerInstanceSerializer(Serializer):
    """A controller on an actor host."""

    host = s.CharField()
    state = s.ChoiceField(STATES)
    reason = s.CharField(allow_blank=True)
    revision = s.IntegerField(help_text="of its code, as it runs there")
    since = UnixTimeField(allow_null=True)
    last_run = UnixTimeField(allow_null=True)
    seconds = s.FloatField(help_text="that its last run took")
    assignments = s.IntegerField(help_text="that it has in force")


class ControllerInstancesSerializer(PageSerializer):
    """Where a controller runs, by host; hosts that have not spoken for a while are left out."""

    instances = ControllerInstanceSerializer(many=True)


class MetricInstanceSerializer(Serializer):
    """An uploaded metric on a node."""

    node = s.CharField()
    state = s.ChoiceField(METRIC_STATES)
    reason = s.CharField(allow_blank=True, help_text="why the node cannot run the newest revision")
    revision = s.IntegerField(help_text="that it can run; 0: none")


class MetricInstancesSerializer(PageSerializer):
    """An uploaded metric on all nodes, by name."""

    instances = MetricInstanceSerializer(many=True)
