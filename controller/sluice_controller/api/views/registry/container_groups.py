"""``/registry/gcontainers``: groups of containers and their members."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from sluice_controller.api.openapi import REQUEST_ID, WITH_BODY, answers
from sluice_controller.api.serializers.groups import (
    GCONTAINER,
    ContainerGroupPageSerializer,
    ContainerGroupSerializer,
    ContainersSerializer,
    MemberPageSerializer,
    MemberSerializer,
    NewContainerGroupSerializer,
)
from sluice_controller.api.views.listing import ETAG, FORCE, GONE, IF_MATCH, LIST, LOCATION
from sluice_controller.api.views.registry.group_views import (
    CONTAINER,
    ONE,
    GroupsView,
    GroupView,
    MembersView,
    MemberView,
)
from sluice_controller.catalog.groups import CONTAINERS


class ContainerGroupsView(GroupsView):
    """Groups of containers."""

    sort, folder = CONTAINERS, "gcontainers"
    serializer = ContainerGroupSerializer

    @extend_schema(
        operation_id="list_gcontainers",
        summary="List groups of containers",
        parameters=LIST,
        responses=answers({200: ContainerGroupPageSerializer}, 400),
    )
    def get(self, request: Request) -> Response:
        """A page of groups."""
        return self.listed(request)

    @extend_schema(
        operation_id="create_gcontainers",
        summary="Put containers under one name",
        parameters=[REQUEST_ID, ETAG, LOCATION],
        request=NewContainerGroupSerializer,
        responses=answers({201: ContainerGroupSerializer}, 409, *WITH_BODY),
        examples=GCONTAINER,
    )
    def post(self, request: Request) -> Response:
        """The new group."""
        return self.created(request)


class ContainerGroupView(GroupView):
    """One group of containers."""

    sort = CONTAINERS
    serializer = ContainerGroupSerializer

    @extend_schema(
        operation_id="show_gcontainers",
        summary="Show a group's containers",
        parameters=ONE,
        responses=answers({200: ContainerGroupSerializer}, 400, 404),
    )
    def get(self, request: Request, group: str) -> Response:
        """The group."""
        return self.shown(request, group)

    @extend_schema(
        operation_id="update_gcontainers",
        summary="Add a container to a group, or name all its containers anew",
        parameters=[*ONE, IF_MATCH],
        request=ContainersSerializer,
        responses=answers({200: ContainerGroupSerializer}, 404, 409, 412, *WITH_BODY),
    )
    def put(self, request: Request, group: str) -> Response:
        """The group as it is now."""
        return self.changed(request, group)

    @extend_schema(
        operation_id="delete_gcontainers",
        summary="Forget a group of containers",
        parameters=[ONE[0], FORCE, IF_MATCH, REQUEST_ID],
        responses=answers(GONE, 400, 404, 409, 412),
    )
    def delete(self, request: Request, group: str) -> Response:
        """204."""
        return self.deleted(request, group)


class ContainerMembersView(MembersView):
    """The containers of one group."""

    sort = CONTAINERS

    @extend_schema(
        operation_id="list_gcontainers_members",
        summary="List the containers of a group",
        parameters=[ONE[0], ETAG, *LIST],
        responses=answers({200: MemberPageSerializer}, 400, 404),
    )
    def get(self, request: Request, group: str) -> Response:
        """A page of members."""
        return self.listed(request, group)


class ContainerMemberView(MemberView):
    """One container of one group."""

    sort = CONTAINERS

    @extend_schema(
        operation_id="show_gcontainers_member",
        summary="Show whether a container is in a group",
        parameters=[*ONE, CONTAINER],
        responses=answers({200: MemberSerializer}, 400, 404),
    )
    def get(self, request: Request, group: str, member: str) -> Response:
        """The member."""
        return self.shown(request, group, member)

    @extend_schema(
        operation_id="add_gcontainers_member",
        summary="Add a container to a group",
        parameters=[*ONE, CONTAINER, IF_MATCH],
        request=None,
        responses=answers({200: MemberSerializer}, 404, 409, 412, *WITH_BODY),
    )
    def put(self, request: Request, group: str, member: str) -> Response:
        """The member."""
        return self.added(request, group, member)

    @extend_schema(
        operation_id="remove_gcontainers_member",
        summary="Take a container out of a group",
        parameters=[ONE[0], CONTAINER, IF_MATCH, REQUEST_ID],
        responses=answers(GONE, 400, 404, 409, 412),
    )
    def delete(self, request: Request, group: str, member: str) -> Response:
        """204."""
        return self.removed(request, group, member)
