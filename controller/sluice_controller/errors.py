"""Answers every error with the same JSON: errors of Sluice, of REST framework, of Django, and bugs.

    {"error": {"code": 404, "title": "Not Found", "message": "...", "problems": [...]}}

``problems`` is empty unless the language found some.  A bug is logged with its traceback under
the request's id; the answer has only the id.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, JsonResponse
from rest_framework import exceptions
from rest_framework.response import Response

from sluice_core.errors import CallerError, PeerError, SluiceError
from sluice_dsl.diagnostics import PolicyErrors

log = logging.getLogger(__name__)

#: Seconds after which a client may try again.
RETRY_AFTER: Final = "2"

Problems = Sequence[Mapping[str, Any]]


class PreconditionFailed(CallerError):
    """``If-Match`` names another version than the present one."""

    status = 412


class Unchangeable(CallerError):
    """The object is read-only; the message has the reason."""

    status = 405


def check_version(what: str, version: int, expected: int | None) -> None:
    """Compare the version of ``what`` with the one in ``If-Match``.

    Called after the body was read: a precondition counts only for a request that is otherwise valid (RFC 9110, 13.2.1).

    :raises PreconditionFailed: when the versions differ
    """
    if expected is not None and expected != version:
        raise PreconditionFailed(f"{what} is at version {version}, `If-Match` names {expected}")


def error_body(status: int, message: str, problems: Problems = ()) -> dict[str, Any]:
    """The one shape of all errors."""
    title = HTTPStatus(status).phrase
    return {"error": {"code": status, "title": title, "message": message, "problems": list(problems)}}


def error_response(status: int, message: str, headers: Mapping[str, str] | None = None) -> JsonResponse:
    """An error outside of REST framework: middlewares and Django's own handlers."""
    return JsonResponse(error_body(status, message), status=status, headers=headers)


def exception_handler(error: Exception, context: Mapping[str, Any]) -> Response:
    """Called by REST framework with an exception of a view."""
    status, message, headers = _describe(error, context)
    problems = error.to_data() if isinstance(error, PolicyErrors) else []
    return Response(error_body(status, message, problems), status=status, headers=headers)


def _describe(error: Exception, context: Mapping[str, Any]) -> tuple[int, str, dict[str, str]]:
    request = context["request"]
    if isinstance(error, PolicyErrors):
        return error.status, _summary(error), {}
    if isinstance(error, CallerError):
        return error.status, str(error), {}
    if isinstance(error, PeerError):
        log.warning("%s %s: %s", request.method, request.get_full_path(), error)
        return error.status, str(error), {"Retry-After": RETRY_AFTER}
    if isinstance(error, exceptions.APIException):
        return _of_framework(error, request.method, context["view"])
    if isinstance(error, Http404):
        return 404, _missing_path(request.path), {}
    if isinstance(error, PermissionDenied):
        return 403, "not allowed", {}
    return 500, _log_bug(request, error), {}


def _summary(error: PolicyErrors) -> str:
    first = error.problems[0]
    more = len(error.problems) - 1
    rest = f", and {more} more in `problems`" if more else ""
    return f"line {first.line}, column {first.column}: {first.message}{rest}"


def _of_framework(error: exceptions.APIException, method: str, view: Any) -> tuple[int, str, dict[str, str]]:
    headers = {}
    if isinstance(error, exceptions.NotAuthenticated | exceptions.AuthenticationFailed):
        headers["WWW-Authenticate"] = getattr(error, "auth_header", "")
    taken = view.parser_classes[0].media_type
    messages = {
        exceptions.NotAuthenticated: "this needs a token in `X-Auth-Token`",
        exceptions.MethodNotAllowed: f"`{method}` is not supported here",
        exceptions.UnsupportedMediaType: f"the body has another media type, expected `{taken}`",
        exceptions.NotAcceptable: "answers are `application/json`, which `Accept` excludes",
    }
    return error.status_code, messages.get(type(error), str(error.detail)), headers


def _log_bug(request: Any, error: BaseException | None) -> str:
    request_id = getattr(request, "request_id", "-")
    kind = "an expected failure" if isinstance(error, SluiceError) else "a bug"
    log.error(
        "%s %s: %s, request %s", request.method, request.get_full_path(), kind, request_id, exc_info=error or True
    )
    return f"an internal error occurred; the log has more under `{request_id}`"


def _missing_path(path: str) -> str:
    return f"there is nothing at `{path}`"


def bad_request(request: HttpRequest, exception: Exception) -> JsonResponse:
    """Django's handler400: a request that reaches no view."""
    return error_response(400, "the request is malformed")


def not_found(request: HttpRequest, exception: Exception) -> JsonResponse:
    """Django's handler404."""
    return error_response(404, _missing_path(request.path))


def forbidden(request: HttpRequest, exception: Exception) -> JsonResponse:
    """Django's handler403."""
    return error_response(403, "not allowed")


def server_error(request: HttpRequest) -> JsonResponse:
    """Django's handler500: an exception outside of a view."""
    return error_response(500, _log_bug(request, None))
