"""``/registry/gtenants``, ``gcontainers`` and ``gvolumes``: groups of tenants, containers, volumes, and their members.

All kinds have the same operations, which :class:`_Groups` declares in the words of each.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request
from rest_framework.response import Response

from sluice_controller.api.openapi import ETAG, FORCE, LIST, in_path, operation
from sluice_controller.api.serializers import groups as shapes
from sluice_controller.api.serializers.base import Serializer
from sluice_controller.api.views import resources
from sluice_controller.api.views.base import View, etag
from sluice_controller.api.views.resources import Declare, Resource, no_content, render_entry, render_page
from sluice_controller.catalog import groups
from sluice_controller.catalog.groups import CONTAINERS, TENANTS, VOLUMES

_GROUP: Final = in_path("group", "the group's name")


@dataclass(frozen=True, kw_only=True)
class _Groups(Resource):
    """Groups of one kind, a :class:`~sluice_controller.catalog.groups.GroupKind`, and what declares their views.

    :param changes: the shape of a body that changes who is in a group
    :param member: the part of the path that is a member
    """

    changes: type[Serializer]
    member: OpenApiParameter

    def declare_collection(self) -> Declare:
        """All groups."""
        kind, many = self.path[-1], self.service.many
        return self.declare(
            get=self.list_operation("sluice:groups:list", f"list_{kind}", f"List groups of {many}"),
            post=self.create_operation("sluice:groups:create", f"create_{kind}", f"Put {many} under one name"),
        )

    def declare_group(self) -> Declare:
        """One group."""
        kind, one, many = self.path[-1], self.service.level, self.service.many
        update = f"Add a {one} to a group, or name all its {many} anew"
        return self.declare(
            get=self.show_operation("sluice:groups:show", f"show_{kind}", f"Show a group's {many}"),
            put=resources.update_operation(
                "sluice:groups:update", f"update_{kind}", update, self.shape, self.changes, self.entry
            ),
            delete=self.delete_operation("sluice:groups:delete", f"delete_{kind}", f"Forget a group of {many}", FORCE),
        )

    def declare_members(self) -> Declare:
        """The members of one group."""
        name, page = f"list_{self.path[-1]}_members", shapes.MemberPageSerializer
        summary = f"List the {self.service.many} of a group"
        list_ = operation("sluice:groups:show", name, page, self.entry, ETAG, *LIST, errors=(404,), summary=summary)
        return self.declare(get=list_)

    def declare_member(self) -> Declare:
        """One member of one group."""
        kind, one, where = f"{self.path[-1]}_member", self.service.level, (self.entry, self.member)
        show, shape = f"Show whether a {one} is in a group", shapes.MemberSerializer
        add, remove = f"Add a {one} to a group", f"Take a {one} out of a group"
        return self.declare(
            get=resources.show_operation("sluice:groups:show", f"show_{kind}", show, shape, *where),
            put=resources.update_operation("sluice:groups:update", f"add_{kind}", add, shape, None, *where),
            delete=resources.delete_operation("sluice:groups:update", f"remove_{kind}", remove, *where),
        )


_GTENANTS: Final = _Groups(
    TENANTS,
    ("registry", "gtenants"),
    _GROUP,
    "Groups by name.",
    shapes.TenantGroupSerializer,
    shapes.NewTenantGroupSerializer,
    shapes.GTENANT,
    changes=shapes.TenantsSerializer,
    member=in_path("member", "an account, or the name that it was added by"),
)
_GCONTAINERS: Final = _Groups(
    CONTAINERS,
    ("registry", "gcontainers"),
    _GROUP,
    "Groups by name.",
    shapes.ContainerGroupSerializer,
    shapes.NewContainerGroupSerializer,
    shapes.GCONTAINER,
    changes=shapes.ContainersSerializer,
    member=in_path("member", "`account/container`, or the name that it was added by"),
)
_GVOLUMES: Final = _Groups(
    VOLUMES,
    ("registry", "gvolumes"),
    _GROUP,
    "Groups by name.",
    shapes.VolumeGroupSerializer,
    shapes.NewVolumeGroupSerializer,
    shapes.GVOLUME,
    changes=shapes.VolumesSerializer,
    member=in_path("member", "`account/volume id`, or the name that it was added by"),
)


class GroupsView(resources.CollectionView):
    """All groups of one kind."""

    def create(self, data: Any, by: str) -> Any:
        """The new group."""
        return groups.create(self.backend, self.resource.service, data, by)


class GroupView(resources.EntryView):
    """One group."""

    def update(self, name: str, data: Any, by: str, **options: Any) -> Any:
        """The group as it is now."""
        return groups.update(self.backend, self.resource.service, name, data, by, **options)


class MembersView(View):
    """The members of one group."""

    resource: Resource

    def get(self, request: Request, group: str) -> Response:
        """A page of members."""
        found = self.resource.service.find(self.backend, group)
        known = {one.path: one for one in groups.members(found.record)}
        response = render_page(self.given, "members", known, shapes.MemberSerializer.render)
        response["ETag"] = etag(found.version)
        return response


class MemberView(View):
    """One member of one group."""

    resource: Resource

    def get(self, request: Request, group: str, member: str) -> Response:
        """The member."""
        return self._rendered(self.resource.service.find(self.backend, group), member)

    def put(self, request: Request, group: str, member: str) -> Response:
        """The member, in the group now."""
        kind, by = self.resource.service, request.user.name
        return self._rendered(groups.add_member(self.backend, kind, group, member, by, **self.given), member)

    def delete(self, request: Request, group: str, member: str) -> Response:
        """204."""
        groups.remove_member(self.backend, self.resource.service, group, member, request.user.name, **self.given)
        return no_content()

    def _rendered(self, found: Any, member: str) -> Response:
        one = groups.find_member(self.resource.service, found.record, member, self.backend.catalogue)
        return render_entry(shapes.MemberSerializer.render(one), found.version)


@_GTENANTS.declare_collection()
class TenantGroupsView(GroupsView):
    """Groups of tenants."""


@_GTENANTS.declare_group()
class TenantGroupView(GroupView):
    """One group of tenants."""


@_GTENANTS.declare_members()
class TenantMembersView(MembersView):
    """The tenants of one group."""


@_GTENANTS.declare_member()
class TenantMemberView(MemberView):
    """One tenant of one group."""


@_GCONTAINERS.declare_collection()
class ContainerGroupsView(GroupsView):
    """Groups of containers."""


@_GCONTAINERS.declare_group()
class ContainerGroupView(GroupView):
    """One group of containers."""


@_GCONTAINERS.declare_members()
class ContainerMembersView(MembersView):
    """The containers of one group."""


@_GCONTAINERS.declare_member()
class ContainerMemberView(MemberView):
    """One container of one group."""


@_GVOLUMES.declare_collection()
class VolumeGroupsView(GroupsView):
    """Groups of volumes."""


@_GVOLUMES.declare_group()
class VolumeGroupView(GroupView):
    """One group of volumes."""


@_GVOLUMES.declare_members()
class VolumeMembersView(MembersView):
    """The volumes of one group."""


@_GVOLUMES.declare_member()
class VolumeMemberView(MemberView):
    """One volume of one group."""
