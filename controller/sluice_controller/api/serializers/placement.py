"""The shapes of ``/locality``, ``/containers`` and ``/placements``."""

from __future__ import annotations

from typing import Any, Final

from rest_framework import serializers as s

from sluice_controller.api.serializers.base import MillisecondsField, PageSerializer, Serializer, computed, examples
from sluice_controller.registry import placement
from sluice_controller.registry.swift_client import Locality
from sluice_volumes.messages import RbdLocality


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
    def render_in(cls, swift_dir: str, locality: Locality, **path: str) -> dict[str, Any]:
        """Where an object is, with what the files in ``swift_dir`` say of it, if there are any."""
        policy = placement.storage_policy(swift_dir, locality.policy_index) if swift_dir else None
        devices = placement.devices(swift_dir, locality.policy_index) if swift_dir else {}
        locations = []
        for location in locality.locations:
            device = devices.get((location.address, location.port, location.device))
            told = {name: device and getattr(device, name) for name in _OF_DEVICES}
            locations.append(
                LocationSerializer.render(location, fragment=policy and policy.fragment(location.number), **told)
            )
        told = {name: policy and getattr(policy, name) for name in ("type", "needed")}
        return cls.render(locality, **path, storage_policy=policy and policy.name, **told, locations=locations)


#: What the rings say of a device.
_OF_DEVICES: Final = ("region", "zone", "replication_address", "replication_port")


class ConsumerSerializer(Serializer):
    """Whoever uses a volume."""

    node = s.CharField(allow_blank=True, help_text="empty when it is not attached through Sluice")
    host = s.CharField(allow_blank=True, help_text="as Cinder has it")
    device = s.CharField(allow_blank=True, help_text="on that node; empty when its konnector does not say")


class OsdSerializer(Serializer):
    """An OSD of Ceph that holds objects of a volume."""

    id = s.IntegerField()
    host = s.CharField(allow_blank=True, help_text="empty when Ceph's map has none")
    objects = s.IntegerField(help_text="of which it has a copy; estimated where `sampled` is less than `objects`")
    primary = s.IntegerField(help_text="of these, those that are read from it")


class VolumeLocalitySerializer(Serializer):
    """Where a volume lies, and who uses it."""

    volume = s.CharField(source="volume.id")
    name = s.CharField(source="volume.name", allow_blank=True)
    project = s.CharField(source="volume.project", allow_blank=True, help_text="its id")
    pool = s.CharField(source="volume.pool", help_text="host@backend#pool")
    host = s.CharField()
    back_end = s.CharField()
    fabric = computed(
        lambda found: found.fabric or None, s.CharField(allow_null=True, help_text="null where Cinder does not say")
    )
    consumer = ConsumerSerializer(allow_null=True, help_text="null while it is not attached")
    objects = computed(
        lambda found: found.objects and found.objects.objects,
        s.IntegerField(allow_null=True, help_text="that it has in Ceph; null where that is not known, or not so"),
    )
    sampled = computed(
        lambda found: found.objects and found.objects.sampled,
        s.IntegerField(allow_null=True, help_text="objects that Ceph was asked about"),
    )
    osds = computed(
        lambda found: _osds(found.objects),
        OsdSerializer(many=True, help_text="those with most objects first; empty where `objects` is null"),
    )
    warnings = s.ListField(child=s.CharField(), help_text="why something is not known")


def _osds(locality: RbdLocality | None) -> list[dict[str, Any]]:
    if locality is None:
        return []
    return [
        OsdSerializer.render(
            one, objects=round(one.share * locality.objects), primary=round(one.primary * locality.objects)
        )
        for one in locality.osds
    ]


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
