"""Views whose answers are not JSON; their errors are."""

from __future__ import annotations

import csv
import io
import json
from http import HTTPStatus
from typing import Any, ClassVar, Final

from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.request import Request

from sluice_controller.api.view import View
from sluice_controller.configuration import yaml_adapter

TEXT: Final = "text/plain"
JSON_LINES: Final = "application/x-ndjson"
CSV: Final = "text/csv"


class YamlRenderer(BaseRenderer):
    """Documents."""

    media_type = yaml_adapter.MEDIA_TYPE
    format = "yaml"
    charset = None

    def render(self, data: Any, accepted_media_type: str | None = None, renderer_context: Any = None) -> bytes:
        """Called by REST framework with the view's answer."""
        return yaml_adapter.dump(data)


class JsonLinesRenderer(BaseRenderer):
    """The rows of a page, a line of JSON for each.

    :param field: the field of the answer with the rows
    """

    media_type = JSON_LINES
    format = "ndjson"
    charset = None
    field: ClassVar[str]

    def render(self, data: Any, accepted_media_type: str | None = None, renderer_context: Any = None) -> bytes:
        """Called by REST framework with the view's answer."""
        rows = (json.dumps(one, separators=(",", ":")) for one in data[self.field])
        return "".join(f"{row}\n" for row in rows).encode()


class CsvRenderer(BaseRenderer):
    """The rows of a list as comma-separated values, below a line of titles; null is an empty field.

    :param field: the field of the answer with the rows, each a list
    """

    media_type = CSV
    format = "csv"
    charset = "utf-8"
    field: ClassVar[str]
    titles: ClassVar[tuple[str, ...]]

    def render(self, data: Any, accepted_media_type: str | None = None, renderer_context: Any = None) -> bytes:
        """Called by REST framework with the view's answer."""
        text = io.StringIO()
        csv.writer(text).writerows([self.titles, *data[self.field]])
        return text.getvalue().encode()


class TextRenderer(BaseRenderer):
    """Bytes without a change."""

    media_type = TEXT
    format = "txt"

    def render(self, data: Any, accepted_media_type: str | None = None, renderer_context: Any = None) -> Any:
        """Called by REST framework with the view's answer."""
        return data


class NonJSONView(View):
    """A view whose answers have another form than JSON, and whose errors are JSON."""

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        """Called by REST framework with the answer."""
        if response.status_code >= HTTPStatus.BAD_REQUEST:
            request.accepted_renderer, request.accepted_media_type = JSONRenderer(), JSONRenderer.media_type
        return super().finalize_response(request, response, *args, **kwargs)


class TextView(NonJSONView):
    """A view that answers in Prometheus' text format."""

    renderer_classes = (TextRenderer, JSONRenderer)
