"""``/volumes/operations``: what was ordered, and how far it is."""

from __future__ import annotations

from typing import Final

from rest_framework.request import Request
from rest_framework.response import Response

from sluice_controller.api.openapi import MARKER, in_path, operation, query_limit, query_text, query_word
from sluice_controller.api.permissions import visible_accounts
from sluice_controller.api.serializers import volumes as shapes
from sluice_controller.api.views.volumes.base import WAIT, VolumesBaseView
from sluice_controller.volumes import ordering

_ID: Final = in_path("operation", "the id of the operation")


class VolumeOperationsView(VolumesBaseView):
    """All operations."""

    @operation(
        "sluice:volume_operations:list",
        "list_volume_operations",
        shapes.VolumeOperationPageSerializer,
        query_limit("operations on a page"),
        MARKER,
        query_word("state", "only operations in this state", shapes.OPERATION_STATES),
        query_text("volume", "only operations on the volume with this id"),
    )
    def get(self, request: Request) -> Response:
        """List operations on volumes, oldest first.

        A page of operations. The last of those that have ended are kept.
        """
        accounts = visible_accounts(request, "sluice:volume_operations:list")
        page = ordering.page(self.backend, **self.given, accounts=accounts)
        return Response(shapes.VolumeOperationPageSerializer.render(page))


class VolumeOperationView(VolumesBaseView):
    """One operation."""

    @operation(
        "sluice:volume_operations:show",
        "show_volume_operation",
        shapes.VolumeOperationSerializer,
        _ID,
        WAIT,
        errors=(404,),
    )
    def get(self, request: Request, operation: str) -> Response:
        """Show an operation on a volume, and bring it further.

        The operation.
        """
        found = ordering.find(self.backend, operation)
        self.authorize_project(request, found.project)
        found = ordering.wait(self.backend, ordering.advance(self.backend, found), self.seconds)
        return Response(shapes.VolumeOperationSerializer.render(found))
