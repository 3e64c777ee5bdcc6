"""Operations on volumes with their progress, the base of views of volumes, and metrics of volumes for Prometheus."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, Final

from django.conf import settings
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request
from rest_framework.response import Response

from sluice_controller.api.openapi import (
    MARKER,
    header,
    in_path,
    operation,
    query_limit,
    query_text,
    query_wait,
    query_word,
)
from sluice_controller.api.permissions import authorize, thing_target, visible_accounts
from sluice_controller.api.prometheus.cluster import CONTENT_TYPE
from sluice_controller.api.prometheus.volumes import exposition
from sluice_controller.api.renderers import TEXT, TextView
from sluice_controller.api.resources import Declare, url_path
from sluice_controller.api.serializers import volumes as shapes
from sluice_controller.api.serializers.volumes import VolumeOperationSerializer
from sluice_controller.api.view import View
from sluice_controller.identity.rules import ADMIN, READS_OWN, THING, Rule
from sluice_controller.volumes import ordering, volumes
from sluice_controller.volumes.cinder_access import Caller
from sluice_controller.volumes.volumes import VolumeView as FoundVolume
from sluice_core.messages.policies import VOLUME
from sluice_volumes.messages import VolumeOperation

VOLUME_NAME = in_path("volume", "the id of the volume, or its name if only one volume has it")
WAIT = query_wait("until the operation has ended")
OPERATION_LOCATION = header("Location", "path of the operation", 202)
ORDERED = {202: VolumeOperationSerializer}


def order_operation(call: str, rule: Rule | str, *parameters: OpenApiParameter, **more: Any) -> Declare:
    """Declare a call that starts an operation on a volume; its answer is the operation."""
    return operation(call, rule, ORDERED, *parameters, WAIT, OPERATION_LOCATION, **more)


class VolumesBaseView(View):
    """The base of views of volumes."""

    def caller(self, request: Request) -> Caller:
        """The caller, with the token for Cinder."""
        return Caller(request.user, request.headers.get("X-Auth-Token", ""))

    def volume(self, request: Request, name: str) -> FoundVolume:
        """The volume called ``name``, after a check that the caller may use the method's rule on it.

        :raises NotFound: also when Cinder does not show it to the caller
        """
        found = volumes.find(self.backend, self.caller(request), name)
        self.authorize_project(request, found.volume.project)
        return found

    def authorize_project(self, request: Request, project: str) -> None:
        """Check the method's rule for volumes of a project.

        :raises Forbidden: when the rule does not allow it
        """
        account = settings.SLUICE.reseller_prefix + project if project else ""
        authorize(request, self.rule, thing_target(VOLUME, account))

    def ordered(self, operation: VolumeOperation) -> Response:
        """The answer about an operation that was started, after the wait that the query asks for."""
        found = ordering.wait(self.backend, operation, self.seconds)
        headers = {"Location": url_path("volumes", "operations", found.id)}
        return Response(VolumeOperationSerializer.render(found), HTTPStatus.ACCEPTED, headers=headers)


# ``/volumes/operations``: operations and their progress.

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
    """Show an operation on a volume, and advance it.

    The operation.
    """
    job = ordering.find(view.backend, operation)
    view.authorize_project(request, job.project)
    job = ordering.wait(view.backend, ordering.advance(view.backend, job), view.seconds)
    return Response(shapes.VolumeOperationSerializer.render(job))


# ``/volumes/metrics``: metrics of volumes and pools, for Prometheus.


@operation(
    "GET /volumes/metrics",
    Rule("sluice:volumes:metrics", ADMIN, "export metrics of volumes, tenants and pools of Cinder to Prometheus"),
    {(200, TEXT): OpenApiTypes.STR},
)
def volume_metrics(view: TextView, request: Request) -> Response:
    """Export rates and latencies of volumes, and free space of pools, in Prometheus' text format.

    The metrics contain ids of volumes and projects.
    """
    return Response(exposition(view.backend), content_type=CONTENT_TYPE)
