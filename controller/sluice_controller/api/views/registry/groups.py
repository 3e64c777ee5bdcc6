"""``/registry/gtenants`` and ``/registry/gcontainers``: groups of tenants and of containers, and their members.

Both kinds have the same operations, which :func:`_operations` declares in the words of each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from sluice_controller.api.openapi import (
    ETAG,
    FORCE,
    LIST,
    create_operation,
    delete_operation,
    in_path,
    list_operation,
    operation,
    operations,
    show_operation,
    update_operation,
)
from sluice_controller.api.serializers import groups as shapes
from sluice_controller.api.views.base import View, expected_version
from sluice_controller.api.views.resources import CollectionView, EntryView, no_content, render_entry, render_page
from sluice_controller.catalog import groups
from sluice_controller.catalog.groups import CONTAINERS, TENANTS, GroupKind
from sluice_controller.validation.bodies import empty_body

_GROUP = in_path("group", "the group's name")
_TENANT = in_path("member", "an account, or the name that it was added by")
_CONTAINER = in_path("member", "`account/container`, or the name that it was added by")


class GroupsView(CollectionView):
    """All groups of one kind, which is the ``service``."""

    def create(self, data: Any, by: str) -> Any:
        """The new group."""
        return groups.create(self.backend, self.service, data, by)


class GroupView(EntryView):
    """One group."""

    def update(self, name: str, data: Any, by: str, **options: Any) -> Any:
        """The group as it is now."""
        return groups.update(self.backend, self.service, name, data, by, **options)


class MembersView(View):
    """The members of one group."""

    service: GroupKind

    def get(self, request: Request, group: str) -> Response:
        """A page of members."""
        found = self.service.find(self.backend, group)
        known = {one.path: one for one in groups.members(found.record)}
        response = render_page(self, request, "members", known, shapes.MemberSerializer.render)
        response["ETag"] = f'"{found.version}"'
        return response


class MemberView(View):
    """One member of one group."""

    service: GroupKind

    def get(self, request: Request, group: str, member: str) -> Response:
        """The member."""
        self.query(request)
        return self._rendered(self.service.find(self.backend, group), member)

    def put(self, request: Request, group: str, member: str) -> Response:
        """The member, in the group now."""
        self.query(request)
        empty_body(request.data)
        expected = expected_version(request)
        return self._rendered(
            groups.add_member(self.backend, self.service, group, member, request.user.name, expected), member
        )

    def delete(self, request: Request, group: str, member: str) -> Response:
        """204."""
        self.query(request)
        groups.remove_member(self.backend, self.service, group, member, request.user.name, expected_version(request))
        return no_content()

    def _rendered(self, found: Any, member: str) -> Response:
        one = groups.find_member(self.service, found.record, member, self.backend.catalogue)
        return render_entry(shapes.MemberSerializer.render(one), found.version)


def _collection(kind: str, many: str, page: Any, shape: Any, new: Any, examples: Any) -> Callable[[Any], Any]:
    return operations(
        get=list_operation("sluice:groups:list", f"list_{kind}", f"List groups of {many}", page),
        post=create_operation(
            "sluice:groups:create", f"create_{kind}", f"Put {many} under one name", shape, new, examples
        ),
    )


def _entry(kind: str, one: str, shape: Any, members: Any) -> Callable[[Any], Any]:
    return operations(
        get=show_operation("sluice:groups:show", f"show_{kind}", f"Show a group's {one}s", shape, _GROUP),
        put=update_operation(
            "sluice:groups:update",
            f"update_{kind}",
            f"Add a {one} to a group, or name all its {one}s anew",
            shape,
            members,
            _GROUP,
        ),
        delete=delete_operation("sluice:groups:delete", f"delete_{kind}", f"Forget a group of {one}s", _GROUP, FORCE),
    )


def _members(kind: str, many: str) -> Callable[[Any], Any]:
    page = shapes.MemberPageSerializer
    return operations(
        get=operation(
            "sluice:groups:show",
            f"list_{kind}_members",
            page,
            _GROUP,
            ETAG,
            *LIST,
            errors=(404,),
            summary=f"List the {many} of a group",
        )
    )


def _member(kind: str, one: str, path: Any) -> Callable[[Any], Any]:
    shape, where = shapes.MemberSerializer, [_GROUP, path]
    return operations(
        get=show_operation(
            "sluice:groups:show", f"show_{kind}_member", f"Show whether a {one} is in a group", shape, *where
        ),
        put=update_operation(
            "sluice:groups:update", f"add_{kind}_member", f"Add a {one} to a group", shape, None, *where
        ),
        delete=delete_operation(
            "sluice:groups:update", f"remove_{kind}_member", f"Take a {one} out of a group", *where
        ),
    )


@_collection(
    "gtenants",
    "tenants",
    shapes.TenantGroupPageSerializer,
    shapes.TenantGroupSerializer,
    shapes.NewTenantGroupSerializer,
    shapes.GTENANT,
)
class TenantGroupsView(GroupsView):
    """Groups of tenants."""

    service, path, serializer = TENANTS, ("registry", "gtenants"), shapes.TenantGroupSerializer


@_entry("gtenants", "tenant", shapes.TenantGroupSerializer, shapes.TenantsSerializer)
class TenantGroupView(GroupView):
    """One group of tenants."""

    service, serializer = TENANTS, shapes.TenantGroupSerializer


@_members("gtenants", "tenants")
class TenantMembersView(MembersView):
    """The tenants of one group."""

    service = TENANTS


@_member("gtenants", "tenant", _TENANT)
class TenantMemberView(MemberView):
    """One tenant of one group."""

    service = TENANTS


@_collection(
    "gcontainers",
    "containers",
    shapes.ContainerGroupPageSerializer,
    shapes.ContainerGroupSerializer,
    shapes.NewContainerGroupSerializer,
    shapes.GCONTAINER,
)
class ContainerGroupsView(GroupsView):
    """Groups of containers."""

    service, path, serializer = CONTAINERS, ("registry", "gcontainers"), shapes.ContainerGroupSerializer


@_entry("gcontainers", "container", shapes.ContainerGroupSerializer, shapes.ContainersSerializer)
class ContainerGroupView(GroupView):
    """One group of containers."""

    service, serializer = CONTAINERS, shapes.ContainerGroupSerializer


@_members("gcontainers", "containers")
class ContainerMembersView(MembersView):
    """The containers of one group."""

    service = CONTAINERS


@_member("gcontainers", "container", _CONTAINER)
class ContainerMemberView(MemberView):
    """One container of one group."""

    service = CONTAINERS
