"""What the API says of itself: ``/health`` and ``/metrics``, which need no token, and ``/schema``."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from http import HTTPStatus
from threading import Lock
from typing import Any, Final

from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse
from rest_framework.request import Request
from rest_framework.response import Response

from sluice_controller.api.openapi import operation
from sluice_controller.api.permissions import OPEN
from sluice_controller.api.prometheus.cluster import CONTENT_TYPE, exposition
from sluice_controller.api.renderers import TEXT, TextView
from sluice_controller.api.serializers.cluster.nodes import HealthSerializer
from sluice_controller.api.view import View
from sluice_controller.catalog.nodes import dependency_health
from sluice_controller.errors import RETRY_AFTER
from sluice_controller.identity.rules import Rule

#: The schema is made by one thread: drf-spectacular loads its extensions meanwhile, and another one would fail.
_generation: Final = Lock()


@operation(
    "GET /health",
    OPEN,
    {200: HealthSerializer, 503: OpenApiResponse(HealthSerializer, "Redis is away: nothing can be read or changed")},
)
def health(view: View, request: Request) -> Response:
    """Say whether the controller works; needs no token.

    503 when Redis is away; a degraded cluster is still served with 200.
    """
    found = dependency_health(view.backend)
    status = "ok" if set(found.values()) == {"ok"} else "degraded"
    body = {"status": status, "dependencies": found}
    if found["redis"] == "ok":
        return Response(body)
    return Response(body, HTTPStatus.SERVICE_UNAVAILABLE, headers={"Retry-After": RETRY_AFTER})


@operation("GET /metrics", OPEN, {(200, TEXT): OpenApiTypes.STR})
def metrics(view: TextView, request: Request) -> Response:
    """Give the numbers of this API and of the cluster in Prometheus' text format; needs no token.

    Names of nodes and actor hosts are in it; tenants, policies and paths are not.
    """
    return Response(exposition(view.backend), content_type=CONTENT_TYPE)


@operation(
    "GET /schema", Rule("sluice:schema:show", "@", "describe this API; everybody with a token"), OpenApiTypes.OBJECT
)
def schema(view: View, request: Request) -> Response:
    """Describe this API as OpenAPI 3.1.

    The description.
    """
    with _generation:
        return Response(_schema())


@cache
def _schema() -> Mapping[str, Any]:
    found: Mapping[str, Any] = SchemaGenerator().get_schema(request=None, public=True)
    return found
