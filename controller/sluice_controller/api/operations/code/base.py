"""The base of the views of uploaded code of all kinds: its data, and earlier revisions.

A view reads an upload from the request by :func:`read_code`, and streams an answer by :func:`download`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from django.http import StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request
from rest_framework.response import Response

from sluice_controller.api.openapi import IF_MATCH, WAIT, header, operation, query_text
from sluice_controller.api.parsers import RawParser
from sluice_controller.api.permissions import authorize
from sluice_controller.api.resources import Declare, render_entry, url_path
from sluice_controller.api.serializers.code import ROLLBACKS, RollbackSerializer
from sluice_controller.api.view import View
from sluice_controller.catalog.backend import Backend
from sluice_controller.code import revisions
from sluice_controller.code.revisions import IncomingCode, RegisteredCode
from sluice_controller.code.rollout import wait_rolled_out
from sluice_controller.configuration.configuration import Authorize, Difference
from sluice_controller.identity.rules import Rule
from sluice_core.describe import TRIED
from sluice_core.errors import CallerError
from sluice_core.messages.uploads import CONTROLLER_CODE, FILTER_CODE, METRIC_CODE, Upload

MEDIA_TYPE: Final = "application/octet-stream"
SHA256: Final = header("X-Content-Sha256", "SHA-256 of the code in hexadecimal; code with another digest is refused")
MAIN: Final = query_text("main", "the class to run; by default that of the last revision, or the only suitable one")
#: Part of the description of every call that takes native code.
NATIVE_WARNING: Final = (
    "**Native code is for administrators only: there is no sandbox, it runs with all rights of the processes that "
    "load it.** It is checked and loaded before it is stored: a syntax error, an import that the nodes do not offer, "
    "a missing class or a broken contract are refused with the reason."
)
#: A body of bytes, for the schema.
BYTES: Final[Any] = {MEDIA_TYPE: OpenApiTypes.BINARY}
BYTES_OUT: Final[Any] = {(200, MEDIA_TYPE): OpenApiTypes.BINARY}


#: Kind of code → the rule for native code, and for filters of volumes.
NATIVE_RULES: Final = {
    FILTER_CODE: "sluice:filters:native",
    METRIC_CODE: "sluice:metrics:upload",
    CONTROLLER_CODE: "sluice:controllers:upload",
}


class CodeView(View):
    """Code of one kind; the last part of the path is its name."""

    #: the module of its kind, with ``find``, ``put_code`` and ``roll_back``
    service: Any
    #: the parts of the path of all code of its kind
    path: tuple[str, ...]

    def render(self, found: RegisteredCode) -> dict[str, Any]:
        """The representation of the code for its kind."""
        raise NotImplementedError

    def wait_settled(self, found: RegisteredCode, new: bool) -> None:
        """Wait, for up to the time in the query, until each live node has the code or has reported why not."""
        wait_rolled_out(self.backend, found, self.seconds)

    def authorize_native(self, request: Request, name: str) -> None:
        """Check a further rule if the code is native; called before anything is changed.

        :raises Forbidden: when the rule does not allow it
        """

    def respond(self, registered: RegisteredCode, new: bool = False) -> Response:
        """The answer about code."""
        location = url_path(*self.path, registered.upload.keyword) if new else ""
        return render_entry(self.render(registered), registered.version, location)

    def respond_settled(self, registered: RegisteredCode, new: bool = False) -> Response:
        """The answer about code that was changed, after :meth:`wait_settled`."""
        self.wait_settled(registered, new)
        return self.respond(registered, new)


class CodeDataView(CodeView):
    """The bytes of the code."""

    parser_classes = (RawParser,)

    def put_code(self, name: str, code: IncomingCode, by: str, expected: int | None) -> tuple[RegisteredCode, bool]:
        """Store ``code``; return the object that has it, and whether the object is new."""
        stored: tuple[RegisteredCode, bool] = self.service.put_code(self.backend, name, code, by, expected)
        return stored


def command_operation(call: str, rule: Rule, answer: Any, *parameters: OpenApiParameter) -> Declare:
    """Declares POST of a command about code, without a body."""
    return operation(call, rule, answer, *parameters, WAIT, IF_MATCH, takes=None)


def declare_download(view: type[CodeView], url: str, rule: Rule, *path: OpenApiParameter, **more: Any) -> None:
    """Declare GET of the code at ``url``, with its name and summary."""

    @operation(f"GET {url}/data", rule, BYTES_OUT, *path, description="The code.", view=view, **more)
    def download_code(view: CodeView, request: Request, **path: str) -> StreamingHttpResponse:
        """The code."""
        return download(view.backend, request, view.service.find(view.backend, *path.values()).upload)


def declare_upload(
    view: type[CodeDataView],
    url: str,
    rule: Rule,
    answer: Any,
    *parameters: OpenApiParameter,
    description: str,
    errors: Sequence[int] = (),
    **more: Any,
) -> None:
    """Declare PUT of the code at ``url``; ``description`` follows the warning about native code.

    :param errors: further errors that it may answer
    :param more: its name and summary, and further rules
    """

    @operation(
        f"PUT {url}/data",
        rule,
        answer,
        *parameters,
        MAIN,
        WAIT,
        SHA256,
        IF_MATCH,
        errors=(404, 409, 422, *errors),
        takes=BYTES,
        description=f"{NATIVE_WARNING} {description}",
        view=view,
        **more,
    )
    def upload_code(view: CodeDataView, request: Request, **path: str) -> Response:
        """The object that has the code."""
        (name,) = path.values()
        code = read_code(request, view.given["main"])
        view.authorize_native(request, name)
        return view.respond_settled(*view.put_code(name, code, request.user.name, view.given["expected"]))


def declare_rollback(
    view: type[CodeView],
    url: str,
    rule: Rule,
    answer: Any,
    *parameters: OpenApiParameter,
    errors: Sequence[int] = (),
    **more: Any,
) -> None:
    """Declare POST of an earlier revision of the code at ``url``.

    :param errors: further errors that it may answer
    :param more: its name, summary and description, and further rules
    """

    @operation(
        f"POST {url}/rollback",
        rule,
        answer,
        *parameters,
        WAIT,
        IF_MATCH,
        errors=(404, 409, *errors),
        takes=RollbackSerializer,
        examples=ROLLBACKS,
        view=view,
        **more,
    )
    def roll_back_code(view: CodeView, request: Request, **path: str) -> Response:
        """The object that has the earlier code again, as a new revision."""
        (name,) = path.values()
        number = revisions.requested_revision(request.data)
        view.authorize_native(request, name)
        by = request.user.name
        return view.respond_settled(view.service.roll_back(view.backend, name, number, by, **view.given))


def code_authorizer(request: Request) -> Authorize:
    """Return the check whether an imported configuration may bring native code: the same as for its upload."""

    def allow(changes: list[Difference]) -> None:
        for one in changes:
            if isinstance(one.new, Upload) and one.new.environment in TRIED:
                authorize(request, NATIVE_RULES[one.what], {})

    return allow


def read_code(request: Request, main: str = "") -> IncomingCode:
    """The code in a request.

    :raises CallerError: when the name of the class is not valid
    """
    if main and not main.isidentifier():
        raise CallerError(f"`main` is `{main}`, expected the name of a class")
    announced = request.headers.get("X-Content-Sha256", "").lower()
    size = int(request.META.get("CONTENT_LENGTH") or 0)  # BodyLimitMiddleware has checked that it is a number
    return IncomingCode(request.stream or request._request, size, announced, main)


def download(backend: Backend, request: Request, upload: Upload) -> StreamingHttpResponse:
    """The code in the answer; HEAD does not read it from Swift.

    :raises NotFound: when there is no code yet
    """
    code = () if request.method == "HEAD" and upload.sha256 else revisions.stored_code(backend, upload)
    headers = {"Content-Length": str(upload.size), "X-Content-Sha256": upload.sha256}
    return StreamingHttpResponse(code, content_type=MEDIA_TYPE, headers=headers)
