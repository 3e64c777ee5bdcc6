"""``/health``: for load balancers and monitoring, without a token."""

from __future__ import annotations

from http import HTTPStatus

from drf_spectacular.utils import OpenApiResponse
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response

from sluice_controller.api.openapi import operation
from sluice_controller.api.permissions import OPEN
from sluice_controller.api.serializers.nodes import HealthSerializer
from sluice_controller.api.views.base import View
from sluice_controller.catalog.liveness import dependency_health
from sluice_controller.errors import RETRY_AFTER


class HealthView(View):
    """Whether this API can do its work, and how what it depends on fares."""

    authentication_classes = ()
    permission_classes = (AllowAny,)

    @operation(
        OPEN,
        "health",
        {
            200: HealthSerializer,
            503: OpenApiResponse(HealthSerializer, "Redis is away: nothing can be read or changed"),
        },
    )
    def get(self, request: Request) -> Response:
        """Say whether the controller works; needs no token.

        503 when Redis is away; a degraded cluster is still served with 200.
        """
        found = dependency_health(self.backend)
        status = "ok" if set(found.values()) == {"ok"} else "degraded"
        body = {"status": status, "dependencies": found}
        if found["redis"] == "ok":
            return Response(body)
        return Response(body, HTTPStatus.SERVICE_UNAVAILABLE, headers={"Retry-After": RETRY_AFTER})
