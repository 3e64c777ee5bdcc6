"""The shapes of ``/locality``, ``/containers`` and ``/placements``."""

from __future__ import annotations

from typing import Any, Final

from rest_framework import serializers as s

from sluice_controller.api.serializers.base import MillisecondsField, PageSerializer, Serializer, examples
from sluice_controller.registry import swift_rings
from sluice_controller.registry.swift_client import Locality


class LocationSerializer(Serializer):
    """One place of an object."""

    number = s.IntegerField(help_text="its place in the order of the ring, from 0")
    fragment = s.IntegerField(allow_null=True, help_text="of an erasure-coded object, where `swift_dir` tells that")
    address = s.CharField()
    port = s.IntegerField()
    device = s.CharField()
    url = s.CharField(help_text="as the object server on that node knows it")
    region = s.IntegerField(allow_null=True, help_text="null where `swift_dir` does not tell it, as all that follows")
    zone = s.IntegerField(allow_null=True)
    replication_address = s.CharField(allow_null=True)
    replication_port = s.IntegerField(allow_null=True)


class LocalitySerializer(Serializer):
    """Where the rings put an object's replicas or fragments; whether it exists is not asked."""

    account = s.CharField()
    container = s.CharField()
    object = s.CharField()
    storage_policy_index = s.IntegerField(source="policy_index")
    storage_policy = s.CharField(allow_null=True, help_text="its name, where `swift_dir` tells it")
    type = s.ChoiceField(choices=("replication", "erasure_coding"), allow_null=True)
    needed = s.IntegerField(allow_null=True, help_text="how many different locations it takes to read the object")
    partition = s.IntegerField()
    locations = LocationSerializer(many=True)

    @classmethod
    def render_in(cls, swift_dir: str, found: Locality, **path: str) -> dict[str, Any]:
        """Where an object is, with what the files in ``swift_dir`` say of it, if there are any."""
        policy = swift_rings.storage_policy(swift_dir, found.policy_index) if swift_dir else None
        devices = swift_rings.devices(swift_dir, found.policy_index) if swift_dir else {}
        locations = []
        for one in found.locations:
            device = devices.get((one.address, one.port, one.device))
            told = {name: device and getattr(device, name) for name in _OF_DEVICES}
            locations.append(LocationSerializer.render(one, fragment=policy and policy.fragment(one.number), **told))
        told = {name: policy and getattr(policy, name) for name in ("type", "needed")}
        return cls.render(found, **path, storage_policy=policy and policy.name, **told, locations=locations)


#: What the rings say of a device.
_OF_DEVICES: Final = ("region", "zone", "replication_address", "replication_port")


class StoragePolicySerializer(Serializer):
    """A storage policy of Swift's by its name."""

    storage_policy = s.CharField()


class ContainerSerializer(StoragePolicySerializer):
    """A container that is there now."""

    account = s.CharField()
    container = s.CharField()
    created = s.BooleanField(help_text="false: it was there already, on the same storage policy")


class PlacementSerializer(Serializer):
    """Where a tenant's new containers go."""

    account = s.CharField(source="record.name")
    storage_policy = s.CharField(source="record.storage_policy")
    created_at = MillisecondsField(source="created")
    created_by = s.CharField(allow_blank=True)


class PlacementPageSerializer(PageSerializer):
    """A page of placements, by account."""

    placements = PlacementSerializer(source="records", many=True)


#: Accepted where Swift has such a policy; a test sends it.
PLACEMENTS: Final = examples(("on erasure-coded disks", {"storage_policy": "ec42"}))
