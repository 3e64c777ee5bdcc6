"""``/locality``, ``/containers`` and ``/placements``: where objects are stored, and where new containers go."""

from __future__ import annotations

from http import HTTPStatus

from django.conf import settings
from drf_spectacular.utils import OpenApiResponse
from rest_framework.request import Request
from rest_framework.response import Response

from sluice_controller.api.openapi import IF_MATCH, MARKER, WAIT, header, operation, query_limit, query_text
from sluice_controller.api.resources import no_content, render_entry
from sluice_controller.api.serializers import placement as shapes
from sluice_controller.api.view import View, etag
from sluice_controller.catalog.vocabulary import account_of
from sluice_controller.identity.rules import ADMIN, Rule
from sluice_controller.registry import placement
from sluice_controller.registry.swift_client import SwiftClient
from sluice_controller.validation.bodies import Body

VERSION = header("ETag", "the placement's version, for `If-Match`", 200, 201)


def read_policy(request: Request) -> str:
    """The storage policy in the body."""
    return Body(request.data, "storage_policy").text("storage_policy", longest=256)


@operation(
    "GET /locality/<name:account>/<name:container>/<target:object_name>",
    Rule("sluice:locality:show", ADMIN, "show where an object's replicas or fragments are, or a volume"),
    shapes.LocalitySerializer,
    errors=(),
)
def show_locality(view: View, request: Request, account: str, container: str, object_name: str) -> Response:
    """Show the devices and addresses that hold an object's replicas or fragments.

    From Swift's rings, by its `list_endpoints`; copies on handoff devices are not shown. Values that only
    Swift's files contain are null unless the API's option `swift_dir` names their folder.
    """
    account = account_of(view.backend.native, account)
    found = SwiftClient(settings.SLUICE).locality(account, container, object_name)
    path = {"account": account, "container": container, "object": object_name}
    return Response(shapes.LocalitySerializer.render_in(settings.SLUICE.swift_dir, found, **path))


@operation(
    "PUT /containers/<name:account>/<name:container>",
    Rule("sluice:containers:create", ADMIN, "create a container on a storage policy"),
    {200: shapes.ContainerSerializer, 201: shapes.ContainerSerializer},
    errors=(409,),
    takes=shapes.StoragePolicySerializer,
    examples=shapes.PLACEMENTS,
)
def create_container(view: View, request: Request, account: str, container: str) -> Response:
    """Create a container on a storage policy.

    With Keystone, the request to Swift has the caller's token, so Swift decides.
    """
    name, client = read_policy(request), SwiftClient(settings.SLUICE)
    account = account_of(view.backend.native, account)
    placement.refuse_unknown_policy(client, name)
    made = client.create_container(account, container, name, request.headers.get("X-Auth-Token", ""))
    data = {"account": account, "container": container, "storage_policy": name, "created": made}
    return Response(data, HTTPStatus.CREATED if made else HTTPStatus.OK)


@operation(
    "GET /placements",
    Rule("sluice:placements:list", ADMIN, "list where new containers of tenants go"),
    shapes.PlacementPageSerializer,
    query_limit("placements on a page"),
    MARKER,
    query_text("storage_policy", "only those on this storage policy"),
)
def list_placements(view: View, request: Request) -> Response:
    """List where new containers of tenants go, by account.

    A page of placements.
    """
    return Response(shapes.PlacementPageSerializer.render(placement.list_placements(view.backend, **view.given)))


@operation(
    "GET /placements/<name:account>",
    Rule("sluice:placements:show", ADMIN, "show where a tenant's new containers go"),
    shapes.PlacementSerializer,
    VERSION,
)
def show_placement(view: View, request: Request, account: str) -> Response:
    """Show where a tenant's new containers go.

    The placement.
    """
    found = placement.find(view.backend, account_of(view.backend.native, account))
    return render_entry(shapes.PlacementSerializer.render(found), found.version)


@operation(
    "PUT /placements/<name:account>",
    Rule("sluice:placements:update", ADMIN, "set where a tenant's new containers go"),
    {200: shapes.PlacementSerializer, 201: shapes.PlacementSerializer},
    WAIT,
    IF_MATCH,
    VERSION,
    errors=(409,),
    takes=shapes.StoragePolicySerializer,
    examples=shapes.PLACEMENTS,
)
def put_placement(view: View, request: Request, account: str) -> Response:
    """Set where a tenant's new containers go.

    Existing containers stay where they are; a client that names a storage policy for a new container gets that one.
    """
    placed, new = placement.put(
        view.backend,
        SwiftClient(settings.SLUICE),
        account_of(view.backend.native, account),
        read_policy(request),
        request.user.name,
        **view.given,
    )
    view.wait_acknowledged(view.backend.store.head().epoch)
    status = HTTPStatus.CREATED if new else HTTPStatus.OK
    return Response(shapes.PlacementSerializer.render(placed), status, headers={"ETag": etag(placed.version)})


@operation(
    "DELETE /placements/<name:account>",
    Rule("sluice:placements:delete", ADMIN, "leave a tenant's new containers to Swift's default"),
    {204: OpenApiResponse(description="left to Swift")},
    WAIT,
    IF_MATCH,
)
def delete_placement(view: View, request: Request, account: str) -> Response:
    """Leave a tenant's new containers to Swift's default.

    The answer has no body.
    """
    account = account_of(view.backend.native, account)
    epoch = placement.delete(view.backend, account, request.user.name, **view.given)
    view.wait_acknowledged(epoch)
    return no_content()
