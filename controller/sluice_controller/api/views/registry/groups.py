"""``/registry/gtenants``: groups of tenants and their members."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from sluice_controller.api.openapi import REQUEST_ID, WITH_BODY, answers
from sluice_controller.api.serializers.groups import (
    GTENANT,
    MemberPageSerializer,
    MemberSerializer,
    NewTenantGroupSerializer,
    TenantGroupPageSerializer,
    TenantGroupSerializer,
    TenantsSerializer,
)
from sluice_controller.api.views.listing import ETAG, FORCE, GONE, IF_MATCH, LIST, LOCATION
from sluice_controller.api.views.registry.group_views import ONE, TENANT, GroupsView, GroupView, MembersView, MemberView
from sluice_controller.catalog.groups import TENANTS


class TenantGroupsView(GroupsView):
    """Groups of tenants."""

    sort, folder = TENANTS, "gtenants"
    serializer = TenantGroupSerializer

    @extend_schema(
        operation_id="list_gtenants",
        summary="List groups of tenants",
        parameters=LIST,
        responses=answers({200: TenantGroupPageSerializer}, 400),
    )
    def get(self, request: Request) -> Response:
        """A page of groups."""
        return self.listed(request)

    @extend_schema(
        operation_id="create_gtenants",
        summary="Put tenants under one name",
        parameters=[REQUEST_ID, ETAG, LOCATION],
        request=NewTenantGroupSerializer,
        responses=answers({201: TenantGroupSerializer}, 409, *WITH_BODY),
        examples=GTENANT,
    )
    def post(self, request: Request) -> Response:
        """The new group."""
        return self.created(request)


class TenantGroupView(GroupView):
    """One group of tenants."""

    sort = TENANTS
    serializer = TenantGroupSerializer

    @extend_schema(
        operation_id="show_gtenants",
        summary="Show a group's tenants",
        parameters=ONE,
        responses=answers({200: TenantGroupSerializer}, 400, 404),
    )
    def get(self, request: Request, group: str) -> Response:
        """The group."""
        return self.shown(request, group)

    @extend_schema(
        operation_id="update_gtenants",
        summary="Add a tenant to a group, or name all its tenants anew",
        parameters=[*ONE, IF_MATCH],
        request=TenantsSerializer,
        responses=answers({200: TenantGroupSerializer}, 404, 409, 412, *WITH_BODY),
    )
    def put(self, request: Request, group: str) -> Response:
        """The group as it is now."""
        return self.changed(request, group)

    @extend_schema(
        operation_id="delete_gtenants",
        summary="Forget a group of tenants",
        parameters=[ONE[0], FORCE, IF_MATCH, REQUEST_ID],
        responses=answers(GONE, 400, 404, 409, 412),
    )
    def delete(self, request: Request, group: str) -> Response:
        """204."""
        return self.deleted(request, group)


class TenantMembersView(MembersView):
    """The tenants of one group."""

    sort = TENANTS

    @extend_schema(
        operation_id="list_gtenants_members",
        summary="List the tenants of a group",
        parameters=[ONE[0], ETAG, *LIST],
        responses=answers({200: MemberPageSerializer}, 400, 404),
    )
    def get(self, request: Request, group: str) -> Response:
        """A page of members."""
        return self.listed(request, group)


class TenantMemberView(MemberView):
    """One tenant of one group."""

    sort = TENANTS

    @extend_schema(
        operation_id="show_gtenants_member",
        summary="Show whether a tenant is in a group",
        parameters=[*ONE, TENANT],
        responses=answers({200: MemberSerializer}, 400, 404),
    )
    def get(self, request: Request, group: str, member: str) -> Response:
        """The member."""
        return self.shown(request, group, member)

    @extend_schema(
        operation_id="add_gtenants_member",
        summary="Add a tenant to a group",
        parameters=[*ONE, TENANT, IF_MATCH],
        request=None,
        responses=answers({200: MemberSerializer}, 404, 409, 412, *WITH_BODY),
    )
    def put(self, request: Request, group: str, member: str) -> Response:
        """The member."""
        return self.added(request, group, member)

    @extend_schema(
        operation_id="remove_gtenants_member",
        summary="Take a tenant out of a group",
        parameters=[ONE[0], TENANT, IF_MATCH, REQUEST_ID],
        responses=answers(GONE, 400, 404, 409, 412),
    )
    def delete(self, request: Request, group: str, member: str) -> Response:
        """204."""
        return self.removed(request, group, member)
