"""What stands around every request: an id, a line in the log, and a limit on the body."""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable
from http import HTTPStatus

from django.conf import settings
from django.http import HttpRequest, HttpResponse

from sluice_controller.failures import error_response

log = logging.getLogger("sluice_controller.requests")

Next = Callable[[HttpRequest], HttpResponse]


class RequestIdMiddleware:
    """Outermost: every answer carries its id, under both names that OpenStack clients look for."""

    def __init__(self, get_response: Next) -> None:
        self._next = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Called by Django for each request."""
        request.request_id = f"req-{uuid.uuid4()}"
        begun = time.monotonic()
        response = self._next(request)
        response["X-Request-Id"] = response["X-Openstack-Request-Id"] = request.request_id
        response["Cache-Control"] = "no-store"
        _measure(request, response)
        took = (time.monotonic() - begun) * 1000
        log.info(
            "%s %s %d %.1f ms %s",
            request.method,
            request.get_full_path(),
            response.status_code,
            took,
            request.request_id,
        )
        return response


def _measure(request: HttpRequest, response: HttpResponse) -> None:
    """Say how long the body is, so that it need not go in chunks; HEAD gets the length alone."""
    if response.status_code == HTTPStatus.NO_CONTENT:
        return
    if response.streaming:
        return
    response["Content-Length"] = str(len(response.content))
    if request.method == "HEAD":
        response.content = b""


class BodyLimitMiddleware:
    """Refuses a body before it is read: of unknown length, or too large (code of filters may be larger)."""

    def __init__(self, get_response: Next) -> None:
        self._next = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Called by Django for each request."""
        code = request.path.startswith("/filters/") and request.path.endswith("/data")
        limit = settings.SLUICE.code_limit if code else settings.SLUICE.body_limit
        length = request.META.get("CONTENT_LENGTH") or "0"
        if "chunked" in request.META.get("HTTP_TRANSFER_ENCODING", "").lower():
            return error_response(411, "the body has no `Content-Length`")
        if not length.isdigit():
            return error_response(400, f"`Content-Length` is `{length}`, expected a number")
        if int(length) > limit:
            return error_response(413, f"the body has {length} bytes, expected at most {limit}")
        return self._next(request)
