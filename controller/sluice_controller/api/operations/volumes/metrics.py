"""``/volumes/metrics``: what volumes and pools do, for Prometheus."""

from __future__ import annotations

from drf_spectacular.types import OpenApiTypes
from rest_framework.request import Request
from rest_framework.response import Response

from sluice_controller.api.openapi import operation
from sluice_controller.api.prometheus import volumes
from sluice_controller.api.prometheus.cluster import CONTENT_TYPE
from sluice_controller.api.renderers import TEXT, TextView
from sluice_controller.identity.rules import ADMIN, Rule


@operation(
    "GET /volumes/metrics",
    Rule("sluice:volumes:metrics", ADMIN, "give Prometheus what volumes, tenants and pools of Cinder do"),
    {(200, TEXT): OpenApiTypes.STR},
)
def volume_metrics(view: TextView, request: Request) -> Response:
    """Give what volumes read, write and wait, and what pools have left, in Prometheus' text format.

    Ids of volumes and of projects are in it.
    """
    return Response(volumes.exposition(view.backend), content_type=CONTENT_TYPE)
