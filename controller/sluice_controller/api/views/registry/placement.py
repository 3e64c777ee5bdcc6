"""``/locality``, ``/containers`` and ``/placements``: where data lie, and where new ones shall."""

from __future__ import annotations

from http import HTTPStatus

from django.conf import settings
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from sluice_controller.api.openapi import REQUEST_ID, WAIT, WITH_BODY, answers, header, query
from sluice_controller.api.serializers.placement import (
    PLACEMENTS,
    ContainerSerializer,
    LocalitySerializer,
    PlacementPageSerializer,
    PlacementSerializer,
    StoragePolicySerializer,
)
from sluice_controller.api.views.base import View, etag, expected_version
from sluice_controller.catalog.entries import LARGEST_PAGE
from sluice_controller.catalog.waiting import LONGEST, wait_acknowledged
from sluice_controller.registry import placement
from sluice_controller.registry.swift_client import SwiftClient
from sluice_controller.validation.bodies import Body

VERSION = header("ETag", "the placement's version, for `If-Match`", 200, 201)
IF_MATCH = header("If-Match", "the `ETag` that it must still have")


def read_policy(request: Request) -> str:
    """The storage policy in the body."""
    return Body(request.data, "storage_policy").text("storage_policy", longest=256)


class LocalityView(View):
    """Where one object is."""

    rules = {"get": "sluice:locality:show"}

    @extend_schema(
        operation_id="show_locality",
        summary="Show the devices and addresses that hold an object's replicas or fragments",
        description=(
            "As Swift's rings have it, by its `list_endpoints`; copies on handoff devices are not told. What the files "
            "of Swift say besides is null where the API's option `swift_dir` does not name them."
        ),
        parameters=[REQUEST_ID],
        responses=answers({200: LocalitySerializer}, 400),
    )
    def get(self, request: Request, account: str, container: str, object_name: str) -> Response:
        """Primary devices, in the order of the ring."""
        self.query(request)
        account = placement.account_of(self.backend.native, account)
        found = SwiftClient(settings.SLUICE).locality(account, container, object_name)
        path = {"account": account, "container": container, "object": object_name}
        return Response(LocalitySerializer.show_in(settings.SLUICE.swift_dir, found, **path))


class ContainerView(View):
    """A container on a storage policy."""

    http_method_names = ("put",)
    rules = {"put": "sluice:containers:create"}

    @extend_schema(
        operation_id="create_container",
        summary="Create a container on a storage policy",
        description="Where Keystone says who asks, Swift is asked with the same token, and decides.",
        parameters=[REQUEST_ID],
        request=StoragePolicySerializer,
        responses=answers({200: ContainerSerializer, 201: ContainerSerializer}, 409, *WITH_BODY),
        examples=PLACEMENTS,
    )
    def put(self, request: Request, account: str, container: str) -> Response:
        """201, or 200 when it was there already, on the same storage policy."""
        self.query(request)
        name, door = read_policy(request), SwiftClient(settings.SLUICE)
        account = placement.account_of(self.backend.native, account)
        placement.refuse_unknown_policy(door, name)
        made = door.create_container(account, container, name, request.headers.get("X-Auth-Token", ""))
        data = {"account": account, "container": container, "storage_policy": name, "created": made}
        return Response(data, HTTPStatus.CREATED if made else HTTPStatus.OK)


class PlacementsView(View):
    """All placements."""

    rules = {"get": "sluice:placements:list"}

    @extend_schema(
        operation_id="list_placements",
        summary="List where new containers of tenants go, by account",
        parameters=[
            query("limit", OpenApiTypes.INT, "placements on a page, 1 to 1000", default=100),
            query("marker", OpenApiTypes.STR, "`next_marker` of the page before"),
            query("storage_policy", OpenApiTypes.STR, "only those on this storage policy"),
            REQUEST_ID,
        ],
        responses=answers({200: PlacementPageSerializer}, 400),
    )
    def get(self, request: Request) -> Response:
        """A page of placements."""
        given = self.query(request, "limit", "marker", "storage_policy")
        limit = given.integer("limit", 100, 1, LARGEST_PAGE)
        page = placement.list_placements(self.backend, limit, given.text("marker"), given.text("storage_policy"))
        return Response(PlacementPageSerializer.show(page))


class PlacementView(View):
    """The placement of one account."""

    http_method_names = ("get", "put", "delete", "head")
    rules = {
        "get": "sluice:placements:show",
        "put": "sluice:placements:update",
        "delete": "sluice:placements:delete",
    }

    @extend_schema(
        operation_id="show_placement",
        summary="Show where a tenant's new containers go",
        parameters=[REQUEST_ID, VERSION],
        responses=answers({200: PlacementSerializer}, 400, 404),
    )
    def get(self, request: Request, account: str) -> Response:
        """The placement."""
        self.query(request)
        found = placement.find(self.backend, placement.account_of(self.backend.native, account))
        return Response(PlacementSerializer.show(found), headers={"ETag": etag(found.version)})

    @extend_schema(
        operation_id="put_placement",
        summary="Say where a tenant's new containers go",
        description="Containers that are there stay where they are; whoever creates one and names a policy gets that.",
        parameters=[WAIT, IF_MATCH, REQUEST_ID, VERSION],
        request=StoragePolicySerializer,
        responses=answers({200: PlacementSerializer, 201: PlacementSerializer}, 409, 412, *WITH_BODY),
        examples=PLACEMENTS,
    )
    def put(self, request: Request, account: str) -> Response:
        """201 for the first one of an account."""
        seconds = self.query(request, "wait").number("wait", 0.0, 0.0, LONGEST)
        found, new = placement.put(
            self.backend,
            SwiftClient(settings.SLUICE),
            placement.account_of(self.backend.native, account),
            read_policy(request),
            request.user.name,
            expected_version(request),
        )
        wait_acknowledged(self.backend, self.backend.store.head().epoch, seconds)
        status = HTTPStatus.CREATED if new else HTTPStatus.OK
        return Response(PlacementSerializer.show(found), status, headers={"ETag": etag(found.version)})

    @extend_schema(
        operation_id="delete_placement",
        summary="Leave a tenant's new containers to Swift's default",
        parameters=[WAIT, IF_MATCH, REQUEST_ID],
        responses=answers({204: OpenApiResponse(description="left to Swift")}, 400, 404, 409, 412),
    )
    def delete(self, request: Request, account: str) -> Response:
        """204."""
        seconds = self.query(request, "wait").number("wait", 0.0, 0.0, LONGEST)
        account = placement.account_of(self.backend.native, account)
        epoch = placement.delete(self.backend, account, request.user.name, expected_version(request))
        wait_acknowledged(self.backend, epoch, seconds)
        return Response(status=HTTPStatus.NO_CONTENT)
