"""The shapes of ``/locality``, ``/containers`` and ``/placements``."""

from __future__ import annotations

from typing import Any, Final

from rest_framework import serializers as s

from sluice_controller.api.serializers.base import MillisecondsField, PageSerializer, Serializer, computed, examples
from sluice_controller.registry import placement
from sluice_controller.registry.swift_client import Locality
from sluice_volumes.messages import RbdLocality


class LocationSerializer(Serializer):
    """One location of an object."""

    number = s.IntegerField(help_text="its position in the order of the ring, from 0")
    fragment = s.IntegerField(allow_null=True, help_text="for an erasure-coded object, if `swift_dir` is set")
    address = s.CharField()
    port = s.IntegerField()
    device = s.CharField()
    url = s.CharField(help_text="the URL at the object server of that node")
    region = s.IntegerField(allow_null=True, help_text="null unless `swift_dir` is set, like all following fields")
    zone = s.IntegerField(allow_null=True)
    replication_address = s.CharField(allow_null=True)
    replication_port = s.IntegerField(allow_null=True)


class LocalitySerializer(Serializer):
    """The locations of an object's replicas or fragments in the rings; its existence is not checked."""

    account = s.CharField()
    container = s.CharField()
    object = s.CharField()
    storage_policy_index = s.IntegerField(source="policy_index")
    storage_policy = s.CharField(allow_null=True, help_text="its name, if `swift_dir` is set")
    type = s.ChoiceField(choices=("replication", "erasure_coding"), allow_null=True)
    needed = s.IntegerField(allow_null=True, help_text="number of different locations needed to read the object")
    partition = s.IntegerField()
    locations = LocationSerializer(many=True)

    @classmethod
    def render_in(cls, swift_dir: str, locality: Locality, **path: str) -> dict[str, Any]:
        """The locations of an object, with the values of the files in ``swift_dir``, if it is set."""
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


#: The fields of a device in the rings.
_OF_DEVICES: Final = ("region", "zone", "replication_address", "replication_port")


class ConsumerSerializer(Serializer):
    """The consumer of a volume."""

    node = s.CharField(allow_blank=True, help_text="empty if it is not attached through Sluice")
    host = s.CharField(allow_blank=True, help_text="as shown by Cinder")
    device = s.CharField(allow_blank=True, help_text="on that node; empty if its konnector does not report it")


class OsdSerializer(Serializer):
    """An OSD of Ceph that holds objects of a volume."""

    id = s.IntegerField()
    host = s.CharField(allow_blank=True, help_text="empty if Ceph's map has none")
    objects = s.IntegerField(help_text="objects with a copy on it; estimated if `sampled` is less than `objects`")
    primary = s.IntegerField(help_text="those of them that are read from it")


class VolumeLocalitySerializer(Serializer):
    """The pool and the consumer of a volume."""

    volume = s.CharField(source="volume.id")
    name = s.CharField(source="volume.name", allow_blank=True)
    project = s.CharField(source="volume.project", allow_blank=True, help_text="its id")
    pool = s.CharField(source="volume.pool", help_text="host@backend#pool")
    host = s.CharField()
    back_end = s.CharField()
    fabric = computed(
        lambda found: found.fabric or None, s.CharField(allow_null=True, help_text="null if Cinder does not show it")
    )
    consumer = ConsumerSerializer(allow_null=True, help_text="null while it is not attached")
    objects = computed(
        lambda found: found.objects and found.objects.objects,
        s.IntegerField(allow_null=True, help_text="its objects in Ceph; null if not known, or in another back end"),
    )
    sampled = computed(
        lambda found: found.objects and found.objects.sampled,
        s.IntegerField(allow_null=True, help_text="number of objects that Ceph was asked for"),
    )
    osds = computed(
        lambda found: _osds(found.objects),
        OsdSerializer(many=True, help_text="those with most objects first; empty if `objects` is null"),
    )
    warnings = s.ListField(child=s.CharField(), help_text="why values are not known")


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
    """A storage policy of Swift by its name."""

    storage_policy = s.CharField()


class ContainerSerializer(StoragePolicySerializer):
    """A container that exists now."""

    account = s.CharField()
    container = s.CharField()
    created = s.BooleanField(help_text="false: it existed already, on the same storage policy")


class PlacementSerializer(Serializer):
    """The storage policy of a tenant's new containers."""

    account = s.CharField(source="record.name")
    storage_policy = s.CharField(source="record.storage_policy")
    created_at = MillisecondsField(source="created")
    created_by = s.CharField(allow_blank=True)


class PlacementPageSerializer(PageSerializer):
    """A page of placements, by account."""

    placements = PlacementSerializer(source="records", many=True)


#: Accepted if Swift has such a policy; a test sends it.
PLACEMENTS: Final = examples(("on erasure-coded disks", {"storage_policy": "ec42"}))
