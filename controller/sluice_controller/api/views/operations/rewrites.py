"""``/rewrites``: jobs that bring stored objects to what policies say."""

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
from sluice_controller.api.serializers.operations import rewrites as shapes
from sluice_controller.api.views.base import View
from sluice_controller.api.views.policies.policies import REPEATED
from sluice_controller.api.views.resources import no_content, url_path
from sluice_controller.policies import idempotency, rewrites
from sluice_core.rewrites.messages import CANCELLED, PAUSED, RUNNING, STATES

_ID: Final = in_path("rewrite", "the id of the rewrite")
_SHAPE: Final = shapes.RewriteSerializer


class RewritesView(View):
    """All rewrites."""

    @operation(
        "sluice:rewrites:list",
        "list_rewrites",
        shapes.RewritePageSerializer,
        query_limit("rewrites on a page"),
        MARKER,
        query_word("state", "only rewrites in this state", STATES),
        query_text("target", "only those of this target, as it is shown"),
    )
    def get(self, request: Request) -> Response:
        """List rewrites and how far each is, oldest first.

        A page of rewrites. The last 200 of those that have ended are kept.
        """
        return Response(shapes.RewritePageSerializer.render(rewrites.page_jobs(self.backend, **self.given)))

    @operation(
        "sluice:rewrites:create",
        "create_rewrite",
        {201: _SHAPE},
        REPEATED,
        LOCATION,
        errors=(409,),
        takes=shapes.NewRewriteSerializer,
        examples=shapes.REWRITES,
    )
    def post(self, request: Request) -> Response:
        """Have stored objects rewritten.

        Times, ETags, sizes, types, metadata and listings stay; whatever clients write meanwhile stays as they wrote it.
        A job whose target overlaps that of one that has not ended is refused (409).

        With `Idempotency-Key`, what the same identity sent before under the same key orders nothing: the answer shows
        the job that it became then, if that is still kept.
        """
        made = rewrites.create(self.backend, request.data, request.user.name, idempotency.read_key(request))
        headers = {"Location": url_path("rewrites", made.job.id)}
        return Response(_SHAPE.render(made), HTTPStatus.CREATED, headers=headers)


class RewriteView(View):
    """One rewrite."""

    @operation("sluice:rewrites:show", "show_rewrite", _SHAPE, _ID, errors=(404,))
    def get(self, request: Request, rewrite: str) -> Response:
        """Show a rewrite and how far it is.

        The rewrite.
        """
        return Response(_SHAPE.render(rewrites.find(self.backend, rewrite)))

    @operation("sluice:rewrites:delete", "delete_rewrite", GONE, _ID, errors=(404, 409))
    def delete(self, request: Request, rewrite: str) -> Response:
        """Forget a rewrite that has ended.

        204.
        """
        rewrites.delete(self.backend, rewrite)
        return no_content()


class RewritePauseView(View):
    """Not going on for now."""

    @operation("sluice:rewrites:pause", "pause_rewrite", _SHAPE, _ID, errors=(404, 409), takes=None)
    def post(self, request: Request, rewrite: str) -> Response:
        """Pause a rewrite; objects that are under way are finished.

        The rewrite.
        """
        return Response(_SHAPE.render(rewrites.change(self.backend, rewrite, PAUSED)))


class RewriteResumeView(View):
    """Going on."""

    @operation("sluice:rewrites:resume", "resume_rewrite", _SHAPE, _ID, errors=(404, 409), takes=None)
    def post(self, request: Request, rewrite: str) -> Response:
        """Let a rewrite go on where it was paused.

        The rewrite.
        """
        return Response(_SHAPE.render(rewrites.change(self.backend, rewrite, RUNNING)))


class RewriteCancelView(View):
    """Ended early."""

    @operation("sluice:rewrites:cancel", "cancel_rewrite", _SHAPE, _ID, errors=(404, 409), takes=None)
    def post(self, request: Request, rewrite: str) -> Response:
        """End a rewrite; what was rewritten stays so.

        The rewrite.
        """
        return Response(_SHAPE.render(rewrites.change(self.backend, rewrite, CANCELLED)))
