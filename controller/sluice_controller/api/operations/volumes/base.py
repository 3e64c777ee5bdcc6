"""What views of volumes share: whose token it is, which volume, and operations as answers."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from django.conf import settings
from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request
from rest_framework.response import Response

from sluice_controller.api.openapi import header, in_path, operation, query_wait
from sluice_controller.api.permissions import authorize, thing_target
from sluice_controller.api.resources import Declare, url_path
from sluice_controller.api.serializers.volumes import VolumeOperationSerializer
from sluice_controller.api.view import View
from sluice_controller.identity.rules import Rule
from sluice_controller.volumes import ordering, volumes
from sluice_controller.volumes.cinder_access import Caller
from sluice_controller.volumes.volumes import VolumeView as FoundVolume
from sluice_core.messages.policies import VOLUME
from sluice_volumes.messages import VolumeOperation

VOLUME_NAME = in_path("volume", "the id of the volume, or its name where only one is called so")
WAIT = query_wait("until the operation has ended")
OPERATION_LOCATION = header("Location", "path of the operation", 202)
ORDERED = {202: VolumeOperationSerializer}


def order_operation(call: str, rule: Rule | str, *parameters: OpenApiParameter, **more: Any) -> Declare:
    """Declares a call that orders an operation on a volume; its answer is the operation."""
    return operation(call, rule, ORDERED, *parameters, WAIT, OPERATION_LOCATION, **more)


class VolumesBaseView(View):
    """The base of views of volumes."""

    def caller(self, request: Request) -> Caller:
        """Whoever asks, with the token that Cinder decides by."""
        return Caller(request.user, request.headers.get("X-Auth-Token", ""))

    def volume(self, request: Request, name: str) -> FoundVolume:
        """The volume called ``name``, about which the caller may do what the method's rule guards.

        :raises NotFound: also when Cinder does not show it to the caller
        """
        found = volumes.find(self.backend, self.caller(request), name)
        self.authorize_project(request, found.volume.project)
        return found

    def authorize_project(self, request: Request, project: str) -> None:
        """Decide the method's rule for volumes of a project.

        :raises Forbidden: when the rule does not allow it
        """
        account = settings.SLUICE.reseller_prefix + project if project else ""
        authorize(request, self.rule, thing_target(VOLUME, account))

    def ordered(self, operation: VolumeOperation) -> Response:
        """The answer about an operation that was ordered, as late as the query says."""
        found = ordering.wait(self.backend, operation, self.seconds)
        headers = {"Location": url_path("volumes", "operations", found.id)}
        return Response(VolumeOperationSerializer.render(found), HTTPStatus.ACCEPTED, headers=headers)
