"""``/registry/gtenants``, ``gcontainers`` and ``gvolumes``: groups of tenants, containers, volumes, and their members.

All kinds have the same operations, which :class:`_Groups` declares with the words of each kind.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request
from rest_framework.response import Response

from sluice_controller.api import resources
from sluice_controller.api.openapi import ETAG, FORCE, LIST, in_path, operation
from sluice_controller.api.resources import Resource, no_content, render_entry, render_page
from sluice_controller.api.serializers import registry as shapes
from sluice_controller.api.serializers.base import Serializer
from sluice_controller.api.view import View, etag
from sluice_controller.catalog import groups
from sluice_controller.catalog.groups import CONTAINERS, TENANTS, VOLUMES
from sluice_controller.identity.rules import ADMIN, Rule

_GROUP: Final = in_path("group", "the group's name")
_LIST: Final = Rule("sluice:groups:list", ADMIN, "list groups")
_SHOW: Final = Rule("sluice:groups:show", ADMIN, "show a group and its members")
_CREATE: Final = Rule("sluice:groups:create", ADMIN, "create a group")
_UPDATE: Final = Rule("sluice:groups:update", ADMIN, "change the members of a group")
_DELETE: Final = Rule("sluice:groups:delete", ADMIN, "delete a group")


@dataclass(frozen=True, kw_only=True)
class _Groups(Resource):
    """Groups of one kind, a :class:`~sluice_controller.catalog.groups.GroupKind`.

    :param changes: the shape of a body that changes the members of a group
    :param member: the member in the path
    """

    changes: type[Serializer]
    member: OpenApiParameter

    @property
    def members_url(self) -> str:
        """The URL of the members of one group."""
        return f"{self.entry_url}/{self.service.many}"

    def create(self, view: View, data: Any, by: str) -> Any:
        """The new group."""
        return groups.create(view.backend, self.service, data, by)

    def update(self, view: View, name: str, data: Any, by: str) -> Any:
        """The changed group."""
        return groups.update(view.backend, self.service, name, data, by, **view.given)

    def declare_groups(self) -> None:
        """Declare the operations on groups."""
        kind, member_kind, many = self.path[-1], self.service.level, self.service.many
        self.declare_list(_LIST, f"list_{kind}", f"List groups of {many}")
        self.declare_create(_CREATE, f"create_{kind}", f"Create a group of {many}")
        self.declare_show(_SHOW, f"show_{kind}", f"Show a group's {many}")
        update = f"Add a {member_kind} to a group, or replace all its {many}"
        self.declare_update(_UPDATE, f"update_{kind}", update, takes=self.changes)
        self.declare_delete(_DELETE, f"delete_{kind}", f"Delete a group of {many}", FORCE)

    def declare_members(self) -> None:
        """Declare GET of the members of one group."""
        summary = f"List the {self.service.many} of a group"

        @operation(
            f"GET {self.members_url}",
            _SHOW,
            shapes.MemberPageSerializer,
            self.entry,
            ETAG,
            *LIST,
            name=f"list_{self.path[-1]}_members",
            summary=summary,
        )
        def list_members(view: View, request: Request, group: str) -> Response:
            """A page of members."""
            group_entry = self.service.find(view.backend, group)
            known = {one.path: one for one in groups.members(group_entry.record)}
            response = render_page(view.given, "members", known, shapes.MemberSerializer.render)
            response["ETag"] = etag(group_entry.version)
            return response

    def declare_member(self) -> None:
        """Declare the operations on one member of one group."""
        url, one, where = f"{self.members_url}/<target:member>", self.service.level, (self.entry, self.member)
        kind, shape = f"{self.path[-1]}_member", shapes.MemberSerializer
        texts = f"Show whether a {one} is in a group", f"Add a {one} to a group", f"Remove a {one} from a group"

        @resources.show_operation(f"GET {url}", _SHOW, shape, *where, name=f"show_{kind}", summary=texts[0])
        def show_member(view: View, request: Request, group: str, member: str) -> Response:
            """The member."""
            return self.render_member(view, self.service.find(view.backend, group), member)

        @resources.update_operation(
            f"PUT {url}", _UPDATE, shape, *where, takes=None, name=f"add_{kind}", summary=texts[1]
        )
        def add_member(view: View, request: Request, group: str, member: str) -> Response:
            """The added member."""
            by = request.user.name
            found = groups.add_member(view.backend, self.service, group, member, by, **view.given)
            return self.render_member(view, found, member)

        @resources.delete_operation(f"DELETE {url}", _UPDATE, *where, name=f"remove_{kind}", summary=texts[2])
        def remove_member(view: View, request: Request, group: str, member: str) -> Response:
            """204."""
            groups.remove_member(view.backend, self.service, group, member, request.user.name, **view.given)
            return no_content()

    def render_member(self, view: View, group_entry: Any, member: str) -> Response:
        """The answer about a member of the group ``group_entry``."""
        one = groups.find_member(self.service, group_entry.record, member, view.backend.catalogue)
        return render_entry(shapes.MemberSerializer.render(one), group_entry.version)


for kind, shape, what in (
    (TENANTS, shapes.TENANT_GROUPS, "an account, or the name that it was added by"),
    (CONTAINERS, shapes.CONTAINER_GROUPS, "`account/container`, or the name that it was added by"),
    (VOLUMES, shapes.VOLUME_GROUPS, "`account/volume id`, or the name that it was added by"),
):
    declared = _Groups(
        kind,
        ("registry", f"g{kind.many}"),
        _GROUP,
        "Groups by name.",
        shape.group,
        shape.new,
        shape.examples,
        changes=shape.changes,
        member=in_path("member", what),
    )
    declared.declare_groups()
    declared.declare_members()
    declared.declare_member()
