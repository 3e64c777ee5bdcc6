"""The shapes below ``/bw``."""

from __future__ import annotations

from typing import Any, Final

from rest_framework import serializers as s

from sluice_controller.api.serializers.base import PageSerializer, Serializer, computed, examples, page_of
from sluice_controller.api.serializers.policies import InfeasibleSerializer, PolicySerializer
from sluice_controller.api.serializers.sentences import ProblemSerializer
from sluice_controller.bandwidth.services import NAMES
from sluice_core.messages.bandwidth import GET, METHODS, PUT, SIDES
from sluice_dsl.syntax.units import format_value

_RATE: Final = "bytes per second"
#: Who knows what a node can move.
SOURCES: Final = ("configured", "estimated", "unknown")

_OBJECT: Final = {
    "type": "object",
    "properties": {
        "oid": {"type": "string", "description": "its whole path, `/account/container/object`"},
        "oid_calculated_BW": {"type": "number", "description": "MB/s that it is read or written with"},
        "range": {"type": "string", "description": "`0-end`, or what of the object is read"},
    },
    "required": ["oid", "oid_calculated_BW", "range"],
    "additionalProperties": False,
}
_LINE: Final = {
    "type": "object",
    "properties": {
        "account": {"type": "string"},
        "identifier": {"type": "string", "const": "object"},
        "method": {"type": "string", "enum": [GET, PUT], "description": "by which they move; not in IOStack's table"},
        "needed_BW": {
            "type": "number",
            "description": "MB/s that the tenant asked for: its value for each object server, else its floor over the "
            "whole cluster; 0 for nothing",
        },
        "policy": {"type": "string", "description": "storage policy"},
        "objects": {"type": "array", "items": _OBJECT},
    },
    "required": ["account", "identifier", "method", "needed_BW", "policy", "objects"],
    "additionalProperties": False,
}


def _by(description: str, inner: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "description": description, "additionalProperties": inner}


#: IOStack's table and its overview, whose names are data.
TABLE: Final = _by("by `ip:port` of object servers", _by("by device", _by("by number, from `0` on", _LINE)))
OVERVIEW: Final = _by("by `ip:port` of object servers", _by("by account", _by("by storage policy", {"type": "number"})))


class MeasuredPageSerializer(PageSerializer):
    """A page out of what was measured last."""

    at = s.DateTimeField(allow_null=True, help_text="when it was measured; null while nobody measures")
    stale = s.BooleanField(help_text="whether nobody measures now: that a list is empty then says nothing")
    left_out = s.IntegerField(
        help_text="rows of all such that are not shown, of a big cluster: quiet ones without objectives"
    )
    controllers = s.DictField(
        child=s.CharField(), help_text="by method, the global controller that allocates it in the place of Sluice"
    )


class OwnerSerializer(Serializer):
    """Whose bytes, by which method and under which storage policy."""

    account = s.CharField(allow_blank=True, help_text="empty for replication, which moves everybody's")
    label = s.CharField(allow_blank=True, help_text="name of the account's project; empty where it is not known")
    container = s.CharField(allow_blank=True, help_text="empty but where a container has objectives of its own")
    method = s.ChoiceField(METHODS)
    policy = s.IntegerField(help_text="index of the storage policy; -1 when it is not known")
    storage_policy = s.CharField(allow_blank=True, help_text="its name")


class FlowSerializer(OwnerSerializer):
    """What one tenant or container is promised, gets and moves over the whole cluster; rates in bytes per second."""

    floor = s.FloatField(help_text="promised; 0: nothing")
    ceiling = s.FloatField(help_text="0: none")
    share = s.FloatField(allow_null=True, help_text="assigned; null: as much as it likes")
    measured = s.FloatField(help_text="moved, counted once at the proxies")
    met = s.FloatField(help_text="what of the floor the cluster can carry")
    short = s.FloatField(help_text="what is missing of the floor")
    waiting = s.FloatField(help_text="transfers that were held back, in the mean")
    active = s.BooleanField()
    policies = s.ListField(child=s.CharField(), help_text="ids of the policies that speak of it")


class FlowPageSerializer(MeasuredPageSerializer):
    """Flows by account, container, method and storage policy."""

    flows = FlowSerializer(many=True)


class NodeBandwidthSerializer(Serializer):
    """What one side of a node could move, is given and moves by one method; rates in bytes per second."""

    node = s.CharField()
    server = s.CharField(allow_blank=True, help_text="`ip:port` of its object server")
    side = s.ChoiceField(SIDES)
    method = s.ChoiceField(METHODS)
    capacity = s.FloatField(allow_null=True, help_text="null when it is not known")
    source = s.ChoiceField(SOURCES, help_text="how the capacity is known")
    assigned = s.FloatField(allow_null=True, help_text="null: as much as it likes")
    measured = s.FloatField()
    at = s.DateTimeField(allow_null=True, help_text="when the node spoke last")


class NodeBandwidthPageSerializer(MeasuredPageSerializer):
    """Sides of nodes by node, side and method."""

    nodes = NodeBandwidthSerializer(many=True)


class PartSerializer(OwnerSerializer):
    """What a flow moves on one side of one node, on one device; each copy counts at the storage nodes."""

    node = s.CharField()
    side = s.ChoiceField(SIDES)
    device = s.CharField(allow_blank=True, help_text="empty at proxies")
    share = s.FloatField(allow_null=True, help_text=f"{_RATE}; null: as much as it likes")
    measured = s.FloatField(help_text=_RATE)


class PartPageSerializer(MeasuredPageSerializer):
    """Parts by flow, node, side and device."""

    parts = PartSerializer(many=True)


class DeviceBandwidthSerializer(Serializer):
    """What a device moves by one method."""

    node = s.CharField()
    device = s.CharField()
    method = s.ChoiceField(METHODS)
    flows = s.IntegerField(help_text="that move something on it")
    share = s.FloatField(allow_null=True, help_text=f"{_RATE}, of flows that are held back; null: none is")
    measured = s.FloatField(help_text=_RATE)


class DeviceBandwidthPageSerializer(MeasuredPageSerializer):
    """Devices by node, device and method."""

    devices = DeviceBandwidthSerializer(many=True)


class PromiseSerializer(PolicySerializer):
    """The policy that a value of ``/bw`` became."""

    changed = s.BooleanField(help_text="false when it stood like that already")
    warnings = ProblemSerializer(many=True, help_text="what is doubtful about it, when it is new")


class ClearedSerializer(Serializer):
    """Values that were taken back."""

    policies = s.ListField(child=s.CharField(), help_text="ids of their policies, which are gone")


class ObjectiveSerializer(Serializer):
    """A service level objective of a tenant, over the whole cluster."""

    account = s.CharField()
    label = s.CharField(
        source="policy.plan.target.label", allow_blank=True, help_text="the project's name, where it was called by that"
    )
    name = s.ChoiceField(NAMES)
    value = s.FloatField(help_text=_RATE)
    text = computed(
        lambda objective: format_value(objective.value, "rate"), s.CharField(help_text="the same with its unit")
    )
    storage_policy = s.CharField(allow_blank=True, help_text="empty: all")
    policy = s.CharField(
        source="policy.policy.id", help_text="id of the policy that it stands in, with the tenant's others"
    )
    enabled = s.BooleanField(source="policy.policy.enabled")
    infeasible = InfeasibleSerializer(allow_null=True, help_text="null when nothing is missing, or nobody measures")


ObjectivePageSerializer = page_of("slos", ObjectiveSerializer, "Objectives by account, name and storage policy.")


class ObjectiveResultSerializer(ObjectiveSerializer):
    """An objective as it is now."""

    changed = s.BooleanField(help_text="false when it stood like that already")
    warnings = ProblemSerializer(many=True, help_text="what is doubtful about it, when it is new")


class ObjectiveValueSerializer(Serializer):
    """What is promised."""

    value = s.JSONField(help_text="a rate with its unit, as `30MBps`; a bare number is MB/s")


class NodeFloorSerializer(ObjectiveValueSerializer):
    """What each object server shall give."""

    storage_policy = s.CharField(
        required=False, allow_blank=True, help_text="for what lies under this one alone, by its name or index"
    )


#: Accepted as they stand; a test sends them.
VALUES: Final = examples(("with a unit", {"value": "30MBps"}), ("in MB/s", {"value": 30}))
NODE_FLOORS: Final = examples(
    ("of everything", {"value": "30MBps"}), ("under a storage policy", {"value": 30, "storage_policy": "gold"})
)
