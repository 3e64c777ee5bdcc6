"""What groups of tenants and of containers have in common as resources."""

from __future__ import annotations

from typing import ClassVar

from rest_framework.request import Request
from rest_framework.response import Response

from sluice_controller.api.openapi import REQUEST_ID
from sluice_controller.api.serializers.base import Serializer
from sluice_controller.api.serializers.groups import MemberSerializer
from sluice_controller.api.views.base import View, expected_version
from sluice_controller.api.views.listing import ETAG, gone, in_path, page, shown, url
from sluice_controller.catalog import groups
from sluice_controller.catalog.groups import GroupKind
from sluice_controller.validation.parameters import empty_body

ONE = [in_path("group", "the group's name"), REQUEST_ID, ETAG]
TENANT = in_path("member", "an account, or the name that it was added by")
CONTAINER = in_path("member", "`account/container`, or the name that it was added by")


class GroupsView(View):
    """All groups of one sort."""

    sort: ClassVar[GroupKind]
    folder: ClassVar[str]
    serializer: ClassVar[type[Serializer]]
    rules = {"get": "sluice:groups:list", "post": "sluice:groups:create"}

    def listed(self, request: Request) -> Response:
        """A page of groups."""
        known = self.sort.list_all(self.backend)
        return page(self, request, self.folder, known, self.serializer.show)

    def created(self, request: Request) -> Response:
        """The new group."""
        self.query(request)
        found = groups.create(self.backend, self.sort, request.data, request.user.name)
        where = url("registry", self.folder, found.record.name)
        return shown(self.serializer.show(found), found.version, where)


class GroupView(View):
    """One group."""

    sort: ClassVar[GroupKind]
    serializer: ClassVar[type[Serializer]]
    http_method_names = ("get", "put", "delete", "head")
    rules = {"get": "sluice:groups:show", "put": "sluice:groups:update", "delete": "sluice:groups:delete"}

    def shown(self, request: Request, group: str) -> Response:
        """The group."""
        self.query(request)
        found = self.sort.find(self.backend, group)
        return shown(self.serializer.show(found), found.version)

    def changed(self, request: Request, group: str) -> Response:
        """The group as it is now."""
        self.query(request)
        expected = expected_version(request)
        found = groups.update(self.backend, self.sort, group, request.data, request.user.name, expected)
        return shown(self.serializer.show(found), found.version)

    def deleted(self, request: Request, group: str) -> Response:
        """204."""
        force = self.query(request, "force").flag("force")
        self.sort.delete(self.backend, group, request.user.name, force, expected_version(request))
        return gone()


class MembersView(View):
    """The members of one group."""

    sort: ClassVar[GroupKind]
    http_method_names = ("get", "head")
    rules = {"get": "sluice:groups:show"}

    def listed(self, request: Request, group: str) -> Response:
        """A page of members."""
        found = self.sort.find(self.backend, group)
        known = {one.path: one for one in groups.members(found.record)}
        answer = page(self, request, "members", known, MemberSerializer.show)
        answer["ETag"] = f'"{found.version}"'
        return answer


class MemberView(View):
    """One member of one group."""

    sort: ClassVar[GroupKind]
    http_method_names = ("get", "put", "delete", "head")
    rules = {"get": "sluice:groups:show", "put": "sluice:groups:update", "delete": "sluice:groups:update"}

    def shown(self, request: Request, group: str, member: str) -> Response:
        """The member."""
        self.query(request)
        found = self.sort.find(self.backend, group)
        one = groups.find_member(self.sort, found.record, member, self.backend.catalogue)
        return shown(MemberSerializer.show(one), found.version)

    def added(self, request: Request, group: str, member: str) -> Response:
        """The member, in the group now."""
        self.query(request)
        empty_body(request.data)
        found = groups.add(self.backend, self.sort, group, member, request.user.name, expected_version(request))
        one = groups.find_member(self.sort, found.record, member, self.backend.catalogue)
        return shown(MemberSerializer.show(one), found.version)

    def removed(self, request: Request, group: str, member: str) -> Response:
        """204."""
        self.query(request)
        groups.remove(self.backend, self.sort, group, member, request.user.name, expected_version(request))
        return gone()
