"""``/changes``: who changed what when, and going back."""

from __future__ import annotations

from datetime import UTC, datetime

from drf_spectacular.types import OpenApiTypes
from rest_framework.request import Request
from rest_framework.response import Response

from sluice_controller.api.openapi import WAIT, header, operation, query
from sluice_controller.api.serializers import changes as shapes
from sluice_controller.api.views.base import View, etag, expected_version
from sluice_controller.api.views.code.transfer import code_authorizer
from sluice_controller.catalog.selectors import LARGEST_PAGE
from sluice_controller.catalog.waiting import LONGEST, wait_acknowledged
from sluice_controller.configuration import changes
from sluice_controller.configuration.configuration import configuration_at, replace_configuration
from sluice_controller.validation.bodies import empty_body
from sluice_core.errors import CallerError, NotFound

PLAN = query("plan", OpenApiTypes.BOOL, "only say what would change", default=False)
FORCE = query("force", OpenApiTypes.BOOL, "even if stored objects could not be read any more", default=False)
VERSION = header("ETag", "the version of the configuration, for `If-Match`", 200)
IF_MATCH = header("If-Match", "the `ETag` that the configuration must still have")
_LARGEST = 10**15


def read_since(text: str) -> float:
    """Unix time of ISO 8601 (without an offset it is UTC) or of seconds.

    :raises CallerError: when it is neither
    """
    if not text:
        return 0.0
    if text.isascii() and text.isdigit() and len(text) < 12:
        return float(text)
    try:
        found = datetime.fromisoformat(text)
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        raise CallerError(f"`since` is `{text}`, expected a time such as 2026-01-31T12:00:00Z") from None


def read_epoch(text: str) -> int:
    """The epoch in a path.

    :raises NotFound: when there can be none of it
    """
    if not (text.isascii() and text.isdigit() and len(text) < 16):
        raise NotFound(f"there is no change `{text}`, expected the number of an epoch")
    return int(text)


class ChangesView(View):
    """The change stream."""

    @operation(
        "sluice:changes:list",
        "list_changes",
        shapes.ChangePageSerializer,
        query("limit", OpenApiTypes.INT, "changes on a page, 1 to 1000", default=100),
        query("marker", OpenApiTypes.STR, "`next_marker` of the page before"),
        query("policy", OpenApiTypes.STR, "only changes about this policy"),
        query("by", OpenApiTypes.STR, "only changes by this identity"),
        query("since", OpenApiTypes.STR, "only changes from this time on, ISO 8601 or unix seconds"),
    )
    def get(self, request: Request) -> Response:
        """List changes, newest first: who changed what when.

        What actors set and take back is listed as well, by `actors@host`. Only the newest changes are kept:
        `trimmed` says whether older ones were forgotten, `oldest` from where on they are known. With a filter a
        page may hold few changes, or none, and still have a next one.
        """
        given = self.query(request, "limit", "marker", "policy", "by", "since")
        wanted = changes.ChangeFilter(given.text("policy"), given.text("by"), read_since(given.text("since")))
        limit = given.integer("limit", 100, 1, LARGEST_PAGE)
        page = changes.list_changes(self.backend, wanted, limit, given.text("marker"))
        return Response(shapes.ChangePageSerializer.render(page))


class ChangeView(View):
    """One change."""

    @operation(
        "sluice:changes:show",
        "show_change",
        shapes.ChangeDetailSerializer,
        header("ETag", "the epoch: a change never changes", 200),
        errors=(404,),
    )
    def get(self, request: Request, epoch: str) -> Response:
        """Show a change, with what it replaced.

        The change.
        """
        self.query(request)
        found = changes.find_change(self.backend, read_epoch(epoch))
        known = found.differences
        differences = None if known is None else shapes.DifferenceSerializer.render_all(known)
        data = shapes.ChangeDetailSerializer.render(found.change, differences=differences)
        return Response(data, headers={"ETag": etag(found.change.epoch)})


class RollbackView(View):
    """Going back."""

    @operation(
        "sluice:changes:rollback",
        "roll_back",
        shapes.OutcomeSerializer,
        PLAN,
        FORCE,
        WAIT,
        IF_MATCH,
        VERSION,
        errors=(404, 409),
        takes=None,
    )
    def post(self, request: Request, epoch: str) -> Response:
        """Go back to the configuration as it stood after a change, as a new change.

        Policies, the registry and uploaded code become what they were; what is the same is not touched. Actors
        of policies that come back begin anew. 409 when what was replaced since is not known any more.
        """
        given = self.query(request, "plan", "force", "wait")
        seconds = given.number("wait", 0.0, 0.0, LONGEST)
        empty_body(request.data)
        plan, force = given.flag("plan"), given.flag("force")
        wanted = configuration_at(self.backend, read_epoch(epoch))
        expected, allow = expected_version(request), code_authorizer(request)
        outcome = replace_configuration(self.backend, wanted, request.user.name, plan, force, expected, allow)
        wait_acknowledged(self.backend, outcome.epoch, seconds)
        return Response(shapes.OutcomeSerializer.render(outcome, plan=plan), headers={"ETag": etag(outcome.version)})
