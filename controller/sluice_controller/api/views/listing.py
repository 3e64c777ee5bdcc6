"""What the views of named things share: pages of them, their headers, and what their rules are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any, Final, TypeVar
from urllib.parse import quote

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse
from rest_framework.request import Request
from rest_framework.response import Response

from sluice_controller.api.openapi import REQUEST_ID, header, query
from sluice_controller.api.views.base import View, etag
from sluice_controller.catalog import entries

T = TypeVar("T")

ETAG: Final = header("ETag", "its version, for `If-Match`", 200, 201)
IF_MATCH: Final = header("If-Match", "the `ETag` that it must still have")
LOCATION: Final = header("Location", "its path", 201)
FORCE: Final = query("force", OpenApiTypes.BOOL, "even while policies use it, which keep what it meant", default=False)
LIST: Final = [
    query("limit", OpenApiTypes.INT, "things on a page, 1 to 1000", default=100),
    query("marker", OpenApiTypes.STR, "`next_marker` of the page before"),
    query("prefix", OpenApiTypes.STR, "only what is called so in the beginning"),
    REQUEST_ID,
]
GONE: Final = {204: OpenApiResponse(description="gone")}


def in_path(name: str, text: str) -> OpenApiParameter:
    """A part of the path."""
    return OpenApiParameter(name, OpenApiTypes.STR, OpenApiParameter.PATH, description=text)


def page(
    view: View,
    request: Request,
    field: str,
    known: Mapping[str, T],
    show: Callable[[T], dict[str, Any]],
    *filters: str,
    **more: Any,
) -> Response:
    """One page of ``known``, by name, in ``field`` of the answer; ``filters`` are what else the query may say."""
    given = view.query(request, "limit", "marker", "prefix", *filters)
    limit = given.integer("limit", 100, 1, entries.LARGEST_PAGE)
    found = entries.page(known, limit, given.text("marker"), given.text("prefix"))
    return Response({**more, field: [show(one) for one in found.records], "next_marker": found.next_marker or None})


def shown(data: dict[str, Any], version: int, location: str = "") -> Response:
    """One thing; it is new when ``location`` says where it is."""
    headers = {"ETag": etag(version)}
    if location:
        return Response(data, HTTPStatus.CREATED, headers={**headers, "Location": location})
    return Response(data, headers=headers)


def gone() -> Response:
    """204."""
    return Response(status=HTTPStatus.NO_CONTENT)


def url(*parts: str) -> str:
    """A path out of names."""
    return "".join(f"/{quote(one, safe='')}" for one in parts)
