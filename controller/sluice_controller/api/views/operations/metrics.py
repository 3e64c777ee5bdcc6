"""``/metrics``: this API and the cluster, for Prometheus."""

from __future__ import annotations

from drf_spectacular.types import OpenApiTypes
from rest_framework.permissions import AllowAny
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from sluice_controller.api.openapi import operation
from sluice_controller.api.permissions import OPEN
from sluice_controller.api.prometheus import CONTENT_TYPE, exposition
from sluice_controller.api.views.renderers import TEXT, NonJSONView, TextRenderer


class MetricsView(NonJSONView):
    """Numbers of calls, policies, nodes and actor hosts."""

    authentication_classes = ()
    permission_classes = (AllowAny,)
    renderer_classes = (TextRenderer, JSONRenderer)

    @operation(OPEN, "metrics", {(200, TEXT): OpenApiTypes.STR})
    def get(self, request: Request) -> Response:
        """Give the numbers of this API and of the cluster in Prometheus' text format; needs no token.

        Names of nodes and actor hosts are in it; tenants, policies and paths are not.
        """
        return Response(exposition(self.backend), content_type=CONTENT_TYPE)
