"""``/rewrites``: jobs that rewrite stored objects as policies require."""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

from rest_framework.request import Request
from rest_framework.response import Response

from sluice_controller.api.openapi import (
    GONE,
    LOCATION,
    MARKER,
    in_path,
    operation,
    query_limit,
    query_text,
    query_word,
)
from sluice_controller.api.operations.policies.policies import REPEATED
from sluice_controller.api.resources import no_content, url_path
from sluice_controller.api.serializers import rewrites as shapes
from sluice_controller.api.view import View
from sluice_controller.identity.rules import ADMIN, Rule
from sluice_controller.policies import idempotency, rewrites
from sluice_rewrites.messages import CANCELLED, PAUSED, RUNNING, STATES

_ID: Final = in_path("rewrite", "the id of the rewrite")
_SHAPE: Final = shapes.RewriteSerializer


@operation(
    "GET /rewrites",
    Rule("sluice:rewrites:list", ADMIN, "list rewrites of stored objects"),
    shapes.RewritePageSerializer,
    query_limit("rewrites on a page"),
    MARKER,
    query_word("state", "only rewrites in this state", STATES),
    query_text("target", "only those of this target, as it is shown"),
)
def list_rewrites(view: View, request: Request) -> Response:
    """List rewrites with their progress, oldest first.

    A page of rewrites. The last 200 of those that have ended are kept.
    """
    return Response(shapes.RewritePageSerializer.render(rewrites.page_jobs(view.backend, **view.given)))


@operation(
    "POST /rewrites",
    Rule("sluice:rewrites:create", ADMIN, "rewrite stored objects"),
    {201: _SHAPE},
    REPEATED,
    LOCATION,
    takes=shapes.NewRewriteSerializer,
    examples=shapes.REWRITES,
)
def create_rewrite(view: View, request: Request) -> Response:
    """Rewrite stored objects, as a job.

    Times, ETags, sizes, types, metadata and listings stay; objects that clients write meanwhile are not touched.
    A job whose target overlaps that of one that has not ended is refused (409).

    With `Idempotency-Key`, a request that the same identity sent before under the same key creates no job: the answer
    shows the job of the first request, if that is still kept.
    """
    made = rewrites.create(view.backend, request.data, request.user.name, idempotency.read_key(request))
    headers = {"Location": url_path("rewrites", made.job.id)}
    return Response(_SHAPE.render(made), HTTPStatus.CREATED, headers=headers)


@operation("GET /rewrites/<str:rewrite>", Rule("sluice:rewrites:show", ADMIN, "show a rewrite"), _SHAPE, _ID)
def show_rewrite(view: View, request: Request, rewrite: str) -> Response:
    """Show a rewrite with its progress.

    The rewrite.
    """
    return Response(_SHAPE.render(rewrites.find(view.backend, rewrite)))


@operation(
    "DELETE /rewrites/<str:rewrite>",
    Rule("sluice:rewrites:delete", ADMIN, "forget a rewrite that has ended"),
    GONE,
    _ID,
)
def delete_rewrite(view: View, request: Request, rewrite: str) -> Response:
    """Forget a rewrite that has ended.

    The answer has no body.
    """
    rewrites.delete(view.backend, rewrite)
    return no_content()


def _declare_order(call: str, state: str, purpose: str, summary: str) -> None:
    """Declare the POST of a command that brings a rewrite into another state."""
    word = call.rpartition("/")[2]

    @operation(
        call,
        Rule(f"sluice:rewrites:{word}", ADMIN, purpose),
        _SHAPE,
        _ID,
        takes=None,
        name=f"{word}_rewrite",
        summary=summary,
        description="The rewrite.",
    )
    def change_rewrite(view: View, request: Request, rewrite: str) -> Response:
        return Response(_SHAPE.render(rewrites.change(view.backend, rewrite, state)))


_declare_order(
    "POST /rewrites/<str:rewrite>/pause",
    PAUSED,
    "pause a rewrite",
    "Pause a rewrite; objects that are being rewritten are finished",
)
_declare_order(
    "POST /rewrites/<str:rewrite>/resume", RUNNING, "resume a rewrite", "Resume a rewrite where it was paused"
)
_declare_order(
    "POST /rewrites/<str:rewrite>/cancel", CANCELLED, "cancel a rewrite", "Cancel a rewrite; rewritten objects stay"
)
