"""``/volumes/operations``: what was ordered, and how far it is."""

from __future__ import annotations

from typing import Final

from rest_framework.request import Request
from rest_framework.response import Response

from sluice_controller.api.openapi import MARKER, in_path, operation, query_limit, query_text, query_word
from sluice_controller.api.operations.volumes.base import WAIT, VolumesBaseView
from sluice_controller.api.permissions import visible_accounts
from sluice_controller.api.serializers import volumes as shapes
from sluice_controller.identity.rules import READS_OWN, THING, Rule
from sluice_controller.volumes import ordering

_ID: Final = in_path("operation", "the id of the operation")


@operation(
    "GET /volumes/operations",
    Rule(
        "sluice:volume_operations:list",
        READS_OWN,
        "list operations on a project's volumes",
        everybody="list operations on all volumes",
    ),
    shapes.VolumeOperationPageSerializer,
    query_limit("operations on a page"),
    MARKER,
    query_word("state", "only operations in this state", shapes.OPERATION_STATES),
    query_text("volume", "only operations on the volume with this id"),
)
def list_volume_operations(view: VolumesBaseView, request: Request) -> Response:
    """List operations on volumes, oldest first.

    A page of operations. The last of those that have ended are kept.
    """
    accounts = visible_accounts(request, "sluice:volume_operations:list")
    page = ordering.page(view.backend, **view.given, accounts=accounts)
    return Response(shapes.VolumeOperationPageSerializer.render(page))


@operation(
    "GET /volumes/operations/<str:operation>",
    Rule("sluice:volume_operations:show", READS_OWN, "show an operation on a volume", about=THING),
    shapes.VolumeOperationSerializer,
    _ID,
    WAIT,
)
def show_volume_operation(view: VolumesBaseView, request: Request, operation: str) -> Response:
    """Show an operation on a volume, and bring it further.

    The operation.
    """
    found = ordering.find(view.backend, operation)
    view.authorize_project(request, found.project)
    found = ordering.wait(view.backend, ordering.advance(view.backend, found), view.seconds)
    return Response(shapes.VolumeOperationSerializer.render(found))
