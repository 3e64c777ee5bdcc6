"""The shapes of groups of tenants, of containers and of volumes."""

from __future__ import annotations

from typing import Final

from rest_framework import serializers as s

from sluice_controller.api.serializers.base import EntrySerializer, Serializer, examples, page_of


class MemberSerializer(Serializer):
    """A member; `label` are the words that it was added by where they differ."""

    path = s.CharField()
    label = s.CharField(allow_blank=True)


MemberPageSerializer = page_of("members", MemberSerializer, "Members by path.")


class TenantGroupSerializer(EntrySerializer):
    """Tenants under one name."""

    id = s.CharField(source="record.name")
    name = s.CharField(source="record.name")
    tenants = s.ListField(source="record.members", child=s.CharField(), help_text="accounts")
    labels = s.DictField(
        source="record.labels", child=s.CharField(), help_text="by account, where it was named otherwise"
    )


class ContainerGroupSerializer(EntrySerializer):
    """Containers under one name."""

    id = s.CharField(source="record.name")
    name = s.CharField(source="record.name")
    containers = s.ListField(source="record.members", child=s.CharField(), help_text="`account/container`")
    labels = s.DictField(source="record.labels", child=s.CharField(), help_text="by path, where it was named otherwise")


class VolumeGroupSerializer(EntrySerializer):
    """Volumes under one name."""

    id = s.CharField(source="record.name")
    name = s.CharField(source="record.name")
    volumes = s.ListField(source="record.members", child=s.CharField(), help_text="`account/volume id`")
    labels = s.DictField(source="record.labels", child=s.CharField(), help_text="by path, where it was named otherwise")


class NewTenantGroupSerializer(Serializer):
    """A group to be."""

    name = s.CharField()
    tenants = s.ListField(child=s.CharField(), required=False)


class NewContainerGroupSerializer(Serializer):
    """A group to be."""

    name = s.CharField()
    containers = s.ListField(child=s.CharField(), required=False)


class NewVolumeGroupSerializer(Serializer):
    """A group to be."""

    name = s.CharField()
    volumes = s.ListField(child=s.CharField(), required=False)


class TenantsSerializer(Serializer):
    """One of both: a member to add, or all that shall be members."""

    tenant = s.CharField(required=False)
    tenants = s.ListField(child=s.CharField(), required=False)


class ContainersSerializer(Serializer):
    """One of both: a member to add, or all that shall be members."""

    container = s.CharField(required=False)
    containers = s.ListField(child=s.CharField(), required=False)


class VolumesSerializer(Serializer):
    """One of both: a member to add, or all that shall be members."""

    volume = s.CharField(required=False)
    volumes = s.ListField(child=s.CharField(), required=False)


#: Accepted as they stand, in this order; a test sends them.
GTENANT: Final = examples(("two tenants", {"name": "gold", "tenants": ["AUTH_test", "AUTH_a"]}))
GCONTAINER: Final = examples(("a container", {"name": "archives", "containers": ["AUTH_test/logs"]}))
GVOLUME: Final = examples(("no volume yet", {"name": "disks", "volumes": []}))
