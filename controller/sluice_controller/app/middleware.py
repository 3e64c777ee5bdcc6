"""Django middlewares: a request id with a log record and counters, and a limit on bodies."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable
from http import HTTPStatus

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils.encoding import escape_uri_path

from sluice_controller.app.logs import current_request, request_id
from sluice_controller.catalog.backend import count_request
from sluice_controller.errors import error_response

log = logging.getLogger("sluice_controller.requests")

GetResponse = Callable[[HttpRequest], HttpResponse]

#: What has code below it, in ``…/data``.
_CODE = ("/filters/", "/registry/metrics/", "/controllers/")
_parameter = re.compile(r"<(?:[a-z]+:)?([a-z_]+)>")


class RequestIdMiddleware:
    """Outermost: every answer carries its id, under both names that OpenStack clients look for, and is counted."""

    def __init__(self, get_response: GetResponse) -> None:
        self._next = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Called by Django for each request."""
        request.request_id = request_id(request.headers.get("X-Openstack-Request-Id", ""))
        before = current_request.set(request.request_id)
        try:
            begun = time.monotonic()
            response = self._next(request)
            response["X-Request-Id"] = response["X-Openstack-Request-Id"] = request.request_id
            response["Cache-Control"] = "no-store"
            _set_length(request, response)
            _record(request, response.status_code, time.monotonic() - begun)
            return response
        finally:
            current_request.reset(before)


def _record(request: HttpRequest, status: int, seconds: float) -> None:
    """Write one log record and count the request."""
    route = route_of(request)
    count_request(request.method, route, status, seconds)
    access = {
        "method": request.method,
        "route": route,
        "path": escape_uri_path(request.path),
        "status": status,
        "ms": round(seconds * 1000, 1),
        "identity": getattr(getattr(request, "user", None), "name", ""),
        "request": request.request_id,
    }
    log.info(
        "%(method)s %(path)s %(status)d %(ms).1f ms, by %(shown)s",
        {**access, "shown": access["identity"] or "nobody"},
        extra={"access": access},
    )


def route_of(request: HttpRequest) -> str:
    """The path template of the route, as the schema has it; ``unknown`` for a path without route."""
    match = getattr(request, "resolver_match", None)
    return "/" + _parameter.sub(r"{\1}", match.route) if match is not None else "unknown"


def _set_length(request: HttpRequest, response: HttpResponse) -> None:
    """Set ``Content-Length``, so that the body is not sent in chunks; a HEAD gets no body."""
    if response.status_code == HTTPStatus.NO_CONTENT or response.streaming:
        return
    response["Content-Length"] = str(len(response.content))
    if request.method == "HEAD":
        response.content = b""


class BodyLimitMiddleware:
    """Refuses a body of unknown length or above the limit before it is read."""

    def __init__(self, get_response: GetResponse) -> None:
        self._next = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Called by Django for each request."""
        limit = _limit(request.path)
        length = request.META.get("CONTENT_LENGTH") or "0"
        if "chunked" in request.META.get("HTTP_TRANSFER_ENCODING", "").lower():
            return error_response(411, "the body has no `Content-Length`")
        if not length.isdigit():
            return error_response(400, f"`Content-Length` is `{length}`, expected a number")
        if int(length) > limit:
            return error_response(413, f"the body has {length} bytes, expected at most {limit}")
        return self._next(request)


def _limit(path: str) -> int:
    """The largest body in bytes; uploaded code and imported configurations have limits of their own."""
    config = settings.SLUICE
    if path.startswith(_CODE) and path.endswith("/data"):
        return int(config.code_limit)
    return int(config.import_limit if path == "/import" else config.body_limit)
