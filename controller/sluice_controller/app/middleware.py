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

from sluice_controller.api.authentication import is_authenticated
from sluice_controller.catalog.backend import count_request
from sluice_controller.errors import error_response
from sluice_core.process.logs import REQUEST_ID, log_fields, request_id

log = logging.getLogger("sluice_controller.requests")

GetResponse = Callable[[HttpRequest], HttpResponse]

#: Paths of code, which is at ``…/data`` below them.
_CODE = ("/filters/", "/registry/metrics/", "/controllers/")
_parameter = re.compile(r"<(?:[a-z]+:)?([a-z_]+)>")


class RequestIdMiddleware:
    """Outermost: every answer has its id, under both names that OpenStack clients read, and is counted.

    A caller that authenticates may give its request an id; others could forge the ids of the log.
    """

    def __init__(self, get_response: GetResponse) -> None:
        self._next = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Called by Django for each request."""
        given = request.headers.get(REQUEST_ID, "")
        request.request_id = request_id(given if given and is_authenticated(request) else "")
        with log_fields(request=request.request_id):
            begun = time.monotonic()
            response = self._next(request)
            response["X-Request-Id"] = response[REQUEST_ID] = request.request_id
            response["Cache-Control"] = "no-store"
            _set_location(request, response)
            _set_length(request, response)
            _record(request, response.status_code, time.monotonic() - begun)
            return response


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


def _set_location(request: HttpRequest, response: HttpResponse) -> None:
    """Put the prefix of all paths, which a proxy or a WSGI server may have removed, before a path of the API."""
    prefix = request.path.removesuffix(request.path_info)
    if prefix and response.get("Location", "").startswith("/"):
        response["Location"] = prefix + response["Location"]


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
        limit = _limit(request.path_info)
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
