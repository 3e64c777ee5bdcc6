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
#: The sources of a node's capacity.
SOURCES: Final = ("configured", "estimated", "unknown")

_OBJECT: Final = {
    "type": "object",
    "properties": {
        "oid": {"type": "string", "description": "the whole path, `/account/container/object`"},
        "oid_calculated_BW": {"type": "number", "description": "the rate of reading or writing, in MB/s"},
        "range": {"type": "string", "description": "`0-end`, or the part of the object that is read"},
    },
    "required": ["oid", "oid_calculated_BW", "range"],
    "additionalProperties": False,
}
_LINE: Final = {
    "type": "object",
    "properties": {
        "account": {"type": "string"},
        "identifier": {"type": "string", "const": "object"},
        "method": {"type": "string", "enum": [GET, PUT], "description": "method of transfer; not in IOStack's table"},
        "needed_BW": {
            "type": "number",
            "description": "the tenant's floor in MB/s: on each object server, else over the whole cluster; 0 without "
            "a floor",
        },
        "policy": {"type": "string", "description": "storage policy"},
        "objects": {"type": "array", "items": _OBJECT},
    },
    "required": ["account", "identifier", "method", "needed_BW", "policy", "objects"],
    "additionalProperties": False,
}


def _by(description: str, inner: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "description": description, "additionalProperties": inner}


#: IOStack's table and its overview, whose field names are data.
TABLE: Final = _by("by `ip:port` of object servers", _by("by device", _by("by number, from `0` on", _LINE)))
OVERVIEW: Final = _by("by `ip:port` of object servers", _by("by account", _by("by storage policy", {"type": "number"})))


class MeasuredPageSerializer(PageSerializer):
    """A page of the last measurement."""

    at = s.DateTimeField(allow_null=True, help_text="time of the measurement; null while no host measures")
    stale = s.BooleanField(help_text="whether no host measures now: an empty list then has no meaning")
    left_out = s.IntegerField(
        help_text="rows that are left out in a big cluster: those of quiet flows without objectives"
    )
    controllers = s.DictField(
        child=s.CharField(), help_text="by method, the global controller that allocates it instead of Sluice"
    )


class OwnerSerializer(Serializer):
    """The owner of the bytes, the method and the storage policy."""

    account = s.CharField(allow_blank=True, help_text="empty for replication, which moves the bytes of all accounts")
    label = s.CharField(allow_blank=True, help_text="name of the account's project; empty if it is not known")
    container = s.CharField(allow_blank=True, help_text="empty unless the container has objectives of its own")
    method = s.ChoiceField(METHODS)
    policy = s.IntegerField(help_text="index of the storage policy; -1 if it is not known")
    storage_policy = s.CharField(allow_blank=True, help_text="its name")


class FlowSerializer(OwnerSerializer):
    """Objectives, share and rate of one tenant or container over the whole cluster; rates in bytes per second."""

    floor = s.FloatField(help_text="0: none")
    ceiling = s.FloatField(help_text="0: none")
    share = s.FloatField(allow_null=True, help_text="assigned; null: unlimited")
    measured = s.FloatField(help_text="moved, counted once at the proxies")
    met = s.FloatField(help_text="the part of the floor that the cluster can carry")
    short = s.FloatField(help_text="the part of the floor that is missing")
    waiting = s.FloatField(help_text="mean number of transfers that were held back")
    active = s.BooleanField()
    policies = s.ListField(child=s.CharField(), help_text="ids of the policies with its objectives")


class FlowPageSerializer(MeasuredPageSerializer):
    """Flows by account, container, method and storage policy."""

    flows = FlowSerializer(many=True)


class NodeBandwidthSerializer(Serializer):
    """Capacity, share and rate of one side of a node by one method; rates in bytes per second."""

    node = s.CharField()
    server = s.CharField(allow_blank=True, help_text="`ip:port` of its object server")
    side = s.ChoiceField(SIDES)
    method = s.ChoiceField(METHODS)
    capacity = s.FloatField(allow_null=True, help_text="null if it is not known")
    source = s.ChoiceField(SOURCES, help_text="the source of the capacity")
    assigned = s.FloatField(allow_null=True, help_text="null: unlimited")
    measured = s.FloatField()
    at = s.DateTimeField(allow_null=True, help_text="time of the node's last report")


class NodeBandwidthPageSerializer(MeasuredPageSerializer):
    """Sides of nodes by node, side and method."""

    nodes = NodeBandwidthSerializer(many=True)


class PartSerializer(OwnerSerializer):
    """The rate of a flow on one side of one node, on one device; each copy counts at the storage nodes."""

    node = s.CharField()
    side = s.ChoiceField(SIDES)
    device = s.CharField(allow_blank=True, help_text="empty at proxies")
    share = s.FloatField(allow_null=True, help_text=f"{_RATE}; null: unlimited")
    measured = s.FloatField(help_text=_RATE)


class PartPageSerializer(MeasuredPageSerializer):
    """Parts by flow, node, side and device."""

    parts = PartSerializer(many=True)


class DeviceBandwidthSerializer(Serializer):
    """The rate of a device by one method."""

    node = s.CharField()
    device = s.CharField()
    method = s.ChoiceField(METHODS)
    flows = s.IntegerField(help_text="number of flows that are active on it")
    share = s.FloatField(allow_null=True, help_text=f"{_RATE}, of the flows that are held back; null: none is")
    measured = s.FloatField(help_text=_RATE)


class DeviceBandwidthPageSerializer(MeasuredPageSerializer):
    """Devices by node, device and method."""

    devices = DeviceBandwidthSerializer(many=True)


class PromiseSerializer(PolicySerializer):
    """The policy of a floor that was set by ``/bw``."""

    changed = s.BooleanField(help_text="false if the same floor was already set")
    warnings = ProblemSerializer(many=True, help_text="doubts about a new policy")


class ClearedSerializer(Serializer):
    """Floors that were removed."""

    policies = s.ListField(child=s.CharField(), help_text="ids of their policies, which are deleted")


class ObjectiveSerializer(Serializer):
    """A service level objective of a tenant, over the whole cluster."""

    account = s.CharField()
    label = s.CharField(
        source="policy.plan.target.label", allow_blank=True, help_text="the project's name, if the request had it"
    )
    name = s.ChoiceField(NAMES)
    value = s.FloatField(help_text=_RATE)
    text = computed(
        lambda objective: format_value(objective.value, "rate"), s.CharField(help_text="the value with its unit")
    )
    storage_policy = s.CharField(allow_blank=True, help_text="empty: all")
    policy = s.CharField(
        source="policy.policy.id", help_text="id of its policy, which has all objectives of the tenant"
    )
    enabled = s.BooleanField(source="policy.policy.enabled")
    infeasible = InfeasibleSerializer(allow_null=True, help_text="null if nothing is missing, or no host measures")


ObjectivePageSerializer = page_of("slos", ObjectiveSerializer, "Objectives by account, name and storage policy.")


class ObjectiveResultSerializer(ObjectiveSerializer):
    """The changed objective."""

    changed = s.BooleanField(help_text="false if the same value was already set")
    warnings = ProblemSerializer(many=True, help_text="doubts about a new policy")


class ObjectiveValueSerializer(Serializer):
    """The value of an objective."""

    value = s.JSONField(help_text="a rate with its unit, as `30MBps`; a bare number is MB/s")


class NodeFloorSerializer(ObjectiveValueSerializer):
    """The floor on each object server."""

    storage_policy = s.CharField(
        required=False, allow_blank=True, help_text="for this storage policy alone, by its name or index"
    )


#: A test sends these bodies unchanged.
VALUES: Final = examples(("with a unit", {"value": "30MBps"}), ("in MB/s", {"value": 30}))
NODE_FLOORS: Final = examples(
    ("of everything", {"value": "30MBps"}), ("of one storage policy", {"value": 30, "storage_policy": "gold"})
)
