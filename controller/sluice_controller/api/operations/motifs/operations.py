"""``/motifs/operations``: expansions of many objects."""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

from rest_framework.request import Request
from rest_framework.response import Response

from sluice_controller.api.openapi import MARKER, header, in_path, operation, query_limit, query_wait, query_word
from sluice_controller.api.resources import url_path
from sluice_controller.api.serializers import motifs as shapes
from sluice_controller.api.view import View
from sluice_controller.identity.rules import ADMIN, Rule
from sluice_controller.motifs import operations

_ID: Final = in_path("operation", "the id of the operation")
_SHAPE: Final = shapes.MotifOperationSerializer


@operation(
    "GET /motifs/operations",
    Rule("sluice:motif_operations:list", ADMIN, "list expansions of many objects"),
    shapes.MotifOperationPageSerializer,
    query_limit("operations on a page"),
    MARKER,
    query_word("state", "only operations in this state", shapes.OPERATION_STATES),
)
def list_motif_operations(view: View, request: Request) -> Response:
    """List expansions of many objects, oldest first.

    A page of operations. The last of those that have ended are kept.
    """
    return Response(shapes.MotifOperationPageSerializer.render(operations.page(view.backend, **view.given)))


@operation(
    "POST /motifs/operations",
    Rule("sluice:motif_operations:create", ADMIN, "have all objects of an account or the cluster expanded"),
    {202: _SHAPE},
    header("Location", "path of the operation", 202),
    takes=shapes.NewOperationSerializer,
    examples=shapes.OPERATIONS,
)
def expand_motifs(view: View, request: Request) -> Response:
    """Have all contracted objects of the cluster, an account or a container expanded.

    Before Sluice is taken out, say; delete the policies about `elasticity` before, which would contract them again.
    """
    made = operations.create(view.backend, request.data, request.user.name)
    headers = {"Location": url_path("motifs", "operations", made.id)}
    return Response(_SHAPE.render(made), HTTPStatus.ACCEPTED, headers=headers)


@operation(
    "GET /motifs/operations/<str:operation>",
    Rule("sluice:motif_operations:show", ADMIN, "show an expansion of many objects"),
    _SHAPE,
    _ID,
    query_wait("until it has ended"),
)
def show_motif_operation(view: View, request: Request, operation: str) -> Response:
    """Show how far an expansion of many objects is.

    The operation.
    """
    return Response(_SHAPE.render(operations.find(view.backend, operation, view.seconds)))


@operation(
    "POST /motifs/operations/<str:operation>/cancel",
    Rule("sluice:motif_operations:cancel", ADMIN, "end an expansion of many objects"),
    _SHAPE,
    _ID,
    takes=None,
)
def cancel_motif_operation(view: View, request: Request, operation: str) -> Response:
    """End an expansion of many objects; what was expanded stays so.

    The operation.
    """
    return Response(_SHAPE.render(operations.cancel(view.backend, operation)))
