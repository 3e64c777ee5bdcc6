"""A gunicorn worker that answers the requests that gunicorn refuses with the error body of the API.

A malformed request line or header may contain a token, so neither the log nor the answer repeats it.
"""

from __future__ import annotations

import contextlib
import json
import logging
import ssl
from http import HTTPStatus
from typing import Any, Final

from gunicorn.http import errors
from gunicorn.util import write_nonblock
from gunicorn.workers.gthread import ThreadWorker

from sluice_controller.app.server import LONGEST_LINE
from sluice_controller.errors import error_body
from sluice_core.process.logs import request_id

log = logging.getLogger("sluice_controller.requests")

#: The first matching entry gives the status and the message; other faults of the parser are 400.
_REASONS: Final[tuple[tuple[type[Exception], int, str], ...]] = (
    (errors.LimitRequestLine, 414, f"the request line is too long, expected at most {LONGEST_LINE} bytes"),
    (errors.LimitRequestHeaders, 431, "the headers are too many or too long"),
    (errors.ExpectationFailed, 417, "`Expect` is not `100-continue`"),
    (errors.UnsupportedTransferCoding, 501, "`Transfer-Encoding` names a coding that is not supported"),
    (errors.ForbiddenProxyRequest, 403, "this address may not act as a proxy"),
    (errors.InvalidHeaderName, 400, "the name of a header is not valid"),
    (errors.InvalidHeader, 400, "the value of a header is not valid, or contradicts another header"),
    (errors.ParseException, 400, "this is not an HTTP request"),
    (ssl.SSLError, 400, "this is not an HTTP request"),
)


class Worker(ThreadWorker):
    """gunicorn's threaded worker with the API's error bodies."""

    def handle_error(self, req: Any, client: Any, addr: Any, exc: Exception) -> None:
        """Called by gunicorn with an exception of its own, or of the application."""
        status, message = describe_error(exc)
        name = request_id("")
        if status == HTTPStatus.INTERNAL_SERVER_ERROR:
            log.error("a bug outside of the application, request %s", name, exc_info=exc)
        else:
            log.info("refused a request from %s: %d, %s", (addr or ("a socket",))[0], status, message)
        with contextlib.suppress(OSError):  # the client may have closed the connection
            write_nonblock(client, error_response(status, message, name))


def describe_error(error: Exception) -> tuple[int, str]:
    """Status and message for an exception of gunicorn."""
    if isinstance(error, errors.InvalidResponseHeader | errors.InvalidResponseHeaderName):
        return 500, "an internal error occurred"
    for kind, status, message in _REASONS:
        if isinstance(error, kind):
            return status, message
    return 500, "an internal error occurred"


def error_response(status: int, message: str, name: str) -> bytes:
    """A whole HTTP response with an error body, after which the connection is closed."""
    body = json.dumps(error_body(status, message)).encode()
    head = (
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\nConnection: close\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\nCache-Control: no-store\r\n"
        f"X-Request-Id: {name}\r\nX-Openstack-Request-Id: {name}\r\n\r\n"
    )
    return head.encode() + body
