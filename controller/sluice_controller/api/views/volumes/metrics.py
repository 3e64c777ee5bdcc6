"""``/volumes/metrics``: what volumes and pools do, for Prometheus."""

from __future__ import annotations

from drf_spectacular.types import OpenApiTypes
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from sluice_controller.api.openapi import operation
from sluice_controller.api.prometheus import volumes
from sluice_controller.api.prometheus.cluster import CONTENT_TYPE
from sluice_controller.api.views.renderers import TEXT, NonJSONView, TextRenderer


class VolumeMetricsView(NonJSONView):
    """Of volumes, of what tenants have of them, of the cluster, and of pools."""

    renderer_classes = (TextRenderer, JSONRenderer)

    @operation("sluice:volumes:metrics", "volume_metrics", {(200, TEXT): OpenApiTypes.STR})
    def get(self, request: Request) -> Response:
        """Give what volumes read, write and wait, and what pools have left, in Prometheus' text format.

        Ids of volumes and of projects are in it.
        """
        return Response(volumes.exposition(self.backend), content_type=CONTENT_TYPE)
