"""The base of the views of uploaded code, of whichever kind: its data, and earlier revisions of it."""

from __future__ import annotations

from typing import Any

from django.http import StreamingHttpResponse
from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request
from rest_framework.response import Response

from sluice_controller.api.openapi import IF_MATCH, WAIT, operation
from sluice_controller.api.parsers import RawParser
from sluice_controller.api.serializers.uploads import ROLLBACKS, RollbackSerializer
from sluice_controller.api.views.base import View
from sluice_controller.api.views.code import transfer
from sluice_controller.api.views.resources import Declare, render_entry, url_path
from sluice_controller.code import revisions
from sluice_controller.code.revisions import IncomingCode, RegisteredCode


class CodeView(View):
    """Code of one kind; the last part of the path is its name."""

    #: the module of its kind, with ``find``, ``put_code`` and ``roll_back``
    service: Any
    #: the parts of the path of all code of its kind
    path: tuple[str, ...]

    def render(self, found: RegisteredCode) -> dict[str, Any]:
        """The code as its kind is shown."""
        raise NotImplementedError

    def wait_settled(self, found: RegisteredCode, new: bool) -> None:
        """Wait, as long as the query says, until ``found`` is used everywhere or somebody has said why not."""
        raise NotImplementedError

    def authorize_native(self, request: Request, name: str) -> None:
        """Decide a further rule where the code is native; called before anything is changed.

        :raises Forbidden: when the rule does not allow it
        """

    def respond(self, found: RegisteredCode, new: bool = False) -> Response:
        """The answer about code."""
        location = url_path(*self.path, found.upload.keyword) if new else ""
        return render_entry(self.render(found), found.version, location)

    def respond_settled(self, found: RegisteredCode, new: bool = False) -> Response:
        """The answer about code that was changed, once it is settled."""
        self.wait_settled(found, new)
        return self.respond(found, new)


class CodeDataView(CodeView):
    """The code itself."""

    parser_classes = (RawParser,)

    def put_code(self, name: str, code: IncomingCode, by: str, expected: int | None) -> tuple[RegisteredCode, bool]:
        """Store ``code``; what it belongs to, and whether that is new."""
        stored: tuple[RegisteredCode, bool] = self.service.put_code(self.backend, name, code, by, expected)
        return stored

    def get(self, request: Request, **path: str) -> StreamingHttpResponse:
        """The code."""
        return transfer.download(self.backend, request, self.service.find(self.backend, *path.values()).upload)

    def put(self, request: Request, **path: str) -> Response:
        """What the code belongs to."""
        (name,) = path.values()
        code = transfer.read_code(request, self.given["main"])
        self.authorize_native(request, name)
        return self.respond_settled(*self.put_code(name, code, request.user.name, self.given["expected"]))


class CodeRollbackView(CodeView):
    """An earlier revision of the code."""

    def post(self, request: Request, **path: str) -> Response:
        """What has that code again, as a new revision."""
        (name,) = path.values()
        number = revisions.requested_revision(request.data)
        self.authorize_native(request, name)
        by = request.user.name
        return self.respond_settled(self.service.roll_back(self.backend, name, number, by, **self.given))


def download_operation(rule: str, name: str, summary: str, *path: OpenApiParameter) -> Declare:
    """Declares GET of :class:`CodeDataView`."""
    answer = transfer.BYTES_OUT
    return operation(rule, name, answer, *path, errors=(404,), summary=summary, description="The code.")


def upload_operation(
    rule: str, name: str, summary: str, description: str, answer: Any, *parameters: OpenApiParameter
) -> Declare:
    """Declares PUT of :class:`CodeDataView`; ``description`` follows the warning about native code."""
    return operation(
        rule,
        name,
        answer,
        *parameters,
        transfer.MAIN,
        WAIT,
        transfer.SHA256,
        IF_MATCH,
        errors=(404, 409, 422),
        takes=transfer.BYTES,
        summary=summary,
        description=f"{transfer.NATIVE_WARNING} {description}",
    )


def rollback_operation(
    rule: str, name: str, summary: str, description: str, answer: Any, *path: OpenApiParameter
) -> Declare:
    """Declares POST of :class:`CodeRollbackView`."""
    return operation(
        rule,
        name,
        answer,
        *path,
        WAIT,
        IF_MATCH,
        errors=(404, 409),
        takes=RollbackSerializer,
        examples=ROLLBACKS,
        summary=summary,
        description=description,
    )
