"""``/schema``: this API, described."""

from __future__ import annotations

from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.types import OpenApiTypes
from rest_framework.request import Request
from rest_framework.response import Response

from sluice_controller.api.openapi import operation
from sluice_controller.api.views.base import View


class SchemaView(View):
    """OpenAPI 3.1."""

    @operation("sluice:schema:show", "schema", OpenApiTypes.OBJECT)
    def get(self, request: Request) -> Response:
        """Describe this API as OpenAPI 3.1.

        The description.
        """
        return Response(SchemaGenerator().get_schema(request=None, public=True))
