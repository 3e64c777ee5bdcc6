"""``/locality``, ``/containers`` and ``/placements``: where data lie, and where new ones shall."""

from __future__ import annotations

from http import HTTPStatus

from django.conf import settings
from drf_spectacular.utils import OpenApiResponse
from rest_framework.request import Request
from rest_framework.response import Response

from sluice_controller.api.openapi import IF_MATCH, MARKER, WAIT, header, operation, query_limit, query_text
from sluice_controller.api.serializers import placement as shapes
from sluice_controller.api.views.base import View, etag
from sluice_controller.api.views.resources import no_content, render_entry
from sluice_controller.catalog.vocabulary import account_of
from sluice_controller.registry import placement
from sluice_controller.registry.swift_client import SwiftClient
from sluice_controller.validation.bodies import Body

VERSION = header("ETag", "the placement's version, for `If-Match`", 200, 201)


def read_policy(request: Request) -> str:
    """The storage policy in the body."""
    return Body(request.data, "storage_policy").text("storage_policy", longest=256)


class LocalityView(View):
    """Where one object is."""

    @operation("sluice:locality:show", "show_locality", shapes.LocalitySerializer)
    def get(self, request: Request, account: str, container: str, object_name: str) -> Response:
        """Show the devices and addresses that hold an object's replicas or fragments.

        As Swift's rings have it, by its `list_endpoints`; copies on handoff devices are not told. What the
        files of Swift say besides is null where the API's option `swift_dir` does not name them.
        """
        account = account_of(self.backend.native, account)
        found = SwiftClient(settings.SLUICE).locality(account, container, object_name)
        path = {"account": account, "container": container, "object": object_name}
        return Response(shapes.LocalitySerializer.render_in(settings.SLUICE.swift_dir, found, **path))


class ContainerView(View):
    """A container on a storage policy."""

    @operation(
        "sluice:containers:create",
        "create_container",
        {200: shapes.ContainerSerializer, 201: shapes.ContainerSerializer},
        errors=(409,),
        takes=shapes.StoragePolicySerializer,
        examples=shapes.PLACEMENTS,
    )
    def put(self, request: Request, account: str, container: str) -> Response:
        """Create a container on a storage policy.

        Where Keystone says who asks, Swift is asked with the same token, and decides.
        """
        name, client = read_policy(request), SwiftClient(settings.SLUICE)
        account = account_of(self.backend.native, account)
        placement.refuse_unknown_policy(client, name)
        made = client.create_container(account, container, name, request.headers.get("X-Auth-Token", ""))
        data = {"account": account, "container": container, "storage_policy": name, "created": made}
        return Response(data, HTTPStatus.CREATED if made else HTTPStatus.OK)


class PlacementsView(View):
    """All placements."""

    @operation(
        "sluice:placements:list",
        "list_placements",
        shapes.PlacementPageSerializer,
        query_limit("placements on a page"),
        MARKER,
        query_text("storage_policy", "only those on this storage policy"),
    )
    def get(self, request: Request) -> Response:
        """List where new containers of tenants go, by account.

        A page of placements.
        """
        return Response(shapes.PlacementPageSerializer.render(placement.list_placements(self.backend, **self.given)))


class PlacementView(View):
    """The placement of one account."""

    @operation("sluice:placements:show", "show_placement", shapes.PlacementSerializer, VERSION, errors=(404,))
    def get(self, request: Request, account: str) -> Response:
        """Show where a tenant's new containers go.

        The placement.
        """
        found = placement.find(self.backend, account_of(self.backend.native, account))
        return render_entry(shapes.PlacementSerializer.render(found), found.version)

    @operation(
        "sluice:placements:update",
        "put_placement",
        {200: shapes.PlacementSerializer, 201: shapes.PlacementSerializer},
        WAIT,
        IF_MATCH,
        VERSION,
        errors=(409,),
        takes=shapes.StoragePolicySerializer,
        examples=shapes.PLACEMENTS,
    )
    def put(self, request: Request, account: str) -> Response:
        """Say where a tenant's new containers go.

        Containers that are there stay where they are; whoever creates one and names a policy gets that.
        """
        found, new = placement.put(
            self.backend,
            SwiftClient(settings.SLUICE),
            account_of(self.backend.native, account),
            read_policy(request),
            request.user.name,
            **self.given,
        )
        self.wait_acknowledged(self.backend.store.head().epoch)
        status = HTTPStatus.CREATED if new else HTTPStatus.OK
        return Response(shapes.PlacementSerializer.render(found), status, headers={"ETag": etag(found.version)})

    @operation(
        "sluice:placements:delete",
        "delete_placement",
        {204: OpenApiResponse(description="left to Swift")},
        WAIT,
        IF_MATCH,
        errors=(404, 409),
    )
    def delete(self, request: Request, account: str) -> Response:
        """Leave a tenant's new containers to Swift's default.

        204.
        """
        account = account_of(self.backend.native, account)
        epoch = placement.delete(self.backend, account, request.user.name, **self.given)
        self.wait_acknowledged(epoch)
        return no_content()
