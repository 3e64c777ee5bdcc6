"""``/motifs/operations``: expansions of many objects."""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

from rest_framework.request import Request
from rest_framework.response import Response

from sluice_controller.api.openapi import (
    MARKER,
    header,
    in_path,
    operation,
    query_limit,
    query_wait,
    query_word,
)
from sluice_controller.api.serializers import motifs as shapes
from sluice_controller.api.views.base import View
from sluice_controller.api.views.resources import url_path
from sluice_controller.motifs import operations

_ID: Final = in_path("operation", "the id of the operation")
_SHAPE: Final = shapes.MotifOperationSerializer


class MotifOperationsView(View):
    """All operations."""

    @operation(
        "sluice:motif_operations:list",
        "list_motif_operations",
        shapes.MotifOperationPageSerializer,
        query_limit("operations on a page"),
        MARKER,
        query_word("state", "only operations in this state", shapes.OPERATION_STATES),
    )
    def get(self, request: Request) -> Response:
        """List expansions of many objects, oldest first.

        A page of operations. The last of those that have ended are kept.
        """
        return Response(shapes.MotifOperationPageSerializer.render(operations.page(self.backend, **self.given)))

    @operation(
        "sluice:motif_operations:create",
        "expand_motifs",
        {202: _SHAPE},
        header("Location", "path of the operation", 202),
        errors=(409,),
        takes=shapes.NewOperationSerializer,
        examples=shapes.OPERATIONS,
    )
    def post(self, request: Request) -> Response:
        """Have all contracted objects of the cluster, an account or a container expanded.

        Before Sluice is taken out, say; delete the policies about `elasticity` before, which would contract them again.
        """
        made = operations.create(self.backend, request.data, request.user.name)
        headers = {"Location": url_path("motifs", "operations", made.id)}
        return Response(_SHAPE.render(made), HTTPStatus.ACCEPTED, headers=headers)


class MotifOperationView(View):
    """One operation."""

    @operation(
        "sluice:motif_operations:show",
        "show_motif_operation",
        _SHAPE,
        _ID,
        query_wait("until it has ended"),
        errors=(404,),
    )
    def get(self, request: Request, operation: str) -> Response:
        """Show how far an expansion of many objects is.

        The operation.
        """
        return Response(_SHAPE.render(operations.find(self.backend, operation, self.seconds)))


class MotifOperationCancelView(View):
    """Ended early."""

    @operation("sluice:motif_operations:cancel", "cancel_motif_operation", _SHAPE, _ID, errors=(404, 409), takes=None)
    def post(self, request: Request, operation: str) -> Response:
        """End an expansion of many objects; what was expanded stays so.

        The operation.
        """
        return Response(_SHAPE.render(operations.cancel(self.backend, operation)))
