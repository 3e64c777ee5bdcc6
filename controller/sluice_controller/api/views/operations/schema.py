"""``/schema``: this API, described."""

from __future__ import annotations

from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from sluice_controller.api.openapi import REQUEST_ID, answers
from sluice_controller.api.views.base import View


class SchemaView(View):
    """OpenAPI 3.1."""

    rules = {"get": "sluice:schema:show"}

    @extend_schema(
        operation_id="schema",
        summary="Describe this API as OpenAPI 3.1",
        parameters=[REQUEST_ID],
        responses=answers({200: OpenApiTypes.OBJECT}, 400),
    )
    def get(self, request: Request) -> Response:
        """The description."""
        self.query(request)
        return Response(SchemaGenerator().get_schema(request=None, public=True))
