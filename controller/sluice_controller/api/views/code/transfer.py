"""Upload and download of code: reading a request, streaming an answer, and the words of the schema."""

from __future__ import annotations

from typing import Any, Final

from django.http import StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from rest_framework.request import Request

from sluice_controller.api.openapi import header, query_text
from sluice_controller.api.permissions import authorize
from sluice_controller.catalog.backend import Backend
from sluice_controller.code import revisions
from sluice_controller.code.revisions import IncomingCode
from sluice_controller.configuration.configuration import Authorize, Difference
from sluice_core.describe import NATIVE
from sluice_core.errors import CallerError
from sluice_core.messages.uploads import CONTROLLER_CODE, FILTER_CODE, METRIC_CODE, Upload

MEDIA_TYPE: Final = "application/octet-stream"
SHA256: Final = header("X-Content-Sha256", "SHA-256 of the code in hexadecimal; another digest refuses it")
MAIN: Final = query_text("main", "the class to run; without it the one that has been, or the only one that fits")
#: In the description of every call that takes native code.
NATIVE_WARNING: Final = (
    "**Native code is for administrators only: there is no sandbox, it runs with all rights of the processes that "
    "load it.** It is read and tried before anything is stored: a syntax error, an import that the nodes do not offer, "
    "a missing class or a broken contract are refused with the reason."
)
#: A body of bytes, for the schema.
BYTES: Final[Any] = {MEDIA_TYPE: OpenApiTypes.BINARY}
BYTES_OUT: Final[Any] = {(200, MEDIA_TYPE): OpenApiTypes.BINARY}


#: Kind of code → the rule by which native one comes.
NATIVE_RULES: Final = {
    FILTER_CODE: "sluice:filters:native",
    METRIC_CODE: "sluice:metrics:upload",
    CONTROLLER_CODE: "sluice:controllers:upload",
}


def code_authorizer(request: Request) -> Authorize:
    """Decides whether an imported configuration may bring native code: as its upload would be decided."""

    def allow(changes: list[Difference]) -> None:
        for one in changes:
            if isinstance(one.new, Upload) and one.new.environment == NATIVE:
                authorize(request, NATIVE_RULES[one.what], {})

    return allow


def read_code(request: Request, main: str = "") -> IncomingCode:
    """The code that a request brings.

    :raises CallerError: when the name of the class cannot be one
    """
    if main and not main.isidentifier():
        raise CallerError(f"`main` is `{main}`, expected the name of a class")
    announced = request.headers.get("X-Content-Sha256", "").lower()
    return IncomingCode(request.stream or request._request, content_length(request), announced, main)


def content_length(request: Request) -> int:
    """Bytes of a body that the view reads by itself.

    :raises CallerError: when it says no number
    """
    length = request.META.get("CONTENT_LENGTH") or "0"
    if not length.isdigit():
        raise CallerError(f"`Content-Length` is `{length}`, expected a number")
    return int(length)


def download(backend: Backend, request: Request, upload: Upload) -> StreamingHttpResponse:
    """The code as it was uploaded; HEAD does not read it from Swift.

    :raises NotFound: when there is none yet
    """
    code = () if request.method == "HEAD" and upload.sha256 else revisions.stored_code(backend, upload)
    headers = {"Content-Length": str(upload.size), "X-Content-Sha256": upload.sha256}
    return StreamingHttpResponse(code, content_type=MEDIA_TYPE, headers=headers)
