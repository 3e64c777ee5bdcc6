"""``/controllers``: code that decides for the whole cluster."""

from __future__ import annotations

from http import HTTPStatus

from django.http import StreamingHttpResponse
from rest_framework.request import Request
from rest_framework.response import Response

from sluice_controller.api.openapi import (
    ETAG,
    GONE,
    IF_MATCH,
    LIST,
    LOCATION,
    WAIT,
    in_path,
    operation,
)
from sluice_controller.api.openapi import query as in_query
from sluice_controller.api.parsers import RawParser
from sluice_controller.api.serializers import controllers as shapes
from sluice_controller.api.serializers.uploads import ROLLBACKS, RollbackSerializer
from sluice_controller.api.views.base import View, expected_version
from sluice_controller.api.views.code.transfer import (
    BYTES,
    BYTES_OUT,
    MAIN,
    NATIVE_WARNING,
    SHA256,
    download,
    read_code,
)
from sluice_controller.api.views.resources import no_content, render_entry, render_page, url_path
from sluice_controller.catalog.waiting import LONGEST
from sluice_controller.code import controllers, revisions
from sluice_controller.code.revisions import RegisteredCode
from sluice_controller.validation.bodies import empty_body

_NAME = in_path("controller", "the controller's name")
_OK = {200: shapes.ControllerSerializer}


class ControllerBase(View):
    """What the views of one controller share."""

    def answer(self, found: RegisteredCode, location: str = "") -> Response:
        """The controller and how it fares."""
        where = controllers.instances(self.backend).get(found.upload.keyword, [])
        return render_entry(shapes.ControllerSerializer.render_on(where, found.upload), found.version, location)

    def seconds(self, request: Request) -> float:
        """How long the answer may wait."""
        return self.query(request, "wait").number("wait", 0.0, 0.0, LONGEST)

    def settled(self, found: RegisteredCode, seconds: float) -> Response:
        """The controller once actor hosts have followed the command, or have reported why not."""
        controllers.wait_settled(self.backend, found, seconds)
        return self.answer(found)


class ControllersView(View):
    """All controllers."""

    @operation(
        "sluice:controllers:list",
        "list_controllers",
        shapes.ControllerPageSerializer,
        *LIST,
        in_query("state", str, "only controllers in this state", enum=controllers.STATES),
    )
    def get(self, request: Request) -> Response:
        """List global controllers and how each of them fares.

        A page of controllers.
        """
        given_query = self.query(request, "limit", "marker", "prefix", "state")
        state = given_query.one_of("state", controllers.STATES)
        where = controllers.instances(self.backend)
        known = {
            name: shapes.ControllerSerializer.render_on(where.get(name, []), one)
            for name, one in controllers.list_controllers(self.backend.policy_cache.contents()).items()
        }
        wanted = {name: one for name, one in known.items() if state in ("", one["state"])}
        return render_page(self, request, "controllers", wanted, lambda one: one, "state")


class ControllerView(ControllerBase):
    """One controller."""

    @operation("sluice:controllers:show", "show_controller", _OK, _NAME, ETAG, errors=(404,))
    def get(self, request: Request, controller: str) -> Response:
        """Show a controller.

        The controller.
        """
        self.query(request)
        return self.answer(controllers.find(self.backend, controller))

    @operation("sluice:controllers:delete", "delete_controller", GONE, _NAME, IF_MATCH, errors=(404, 409))
    def delete(self, request: Request, controller: str) -> Response:
        """Forget a controller, and take back what it set.

        204.
        """
        self.query(request)
        controllers.delete(self.backend, controller, request.user.name, expected_version(request))
        return no_content()


class ControllerDataView(ControllerBase):
    """The code of one controller."""

    parser_classes = (RawParser,)

    @operation("sluice:controllers:download", "download_controller", BYTES_OUT, _NAME, errors=(404,))
    def get(self, request: Request, controller: str) -> StreamingHttpResponse:
        """Give the code of a controller.

        The code.
        """
        self.query(request)
        upload = controllers.find(self.backend, controller).upload
        return download(self.backend, request, upload)

    @operation(
        "sluice:controllers:upload",
        "upload_controller",
        {**_OK, HTTPStatus.CREATED.value: shapes.ControllerSerializer},
        _NAME,
        MAIN,
        WAIT,
        SHA256,
        IF_MATCH,
        LOCATION,
        errors=(404, 409, 422),
        description=NATIVE_WARNING
        + " It runs in a process of its own beside an actor host. While another revision cannot be "
        "loaded there, the earlier one goes on.",
        takes=BYTES,
    )
    def put(self, request: Request, controller: str) -> Response:
        """Upload a controller, which is stopped then, or another revision of one.

        The controller as its code describes it.
        """
        given_query = self.query(request, "wait", "main")
        seconds = given_query.number("wait", 0.0, 0.0, LONGEST)
        code = read_code(request, given_query.text("main"))
        found, new = controllers.put_code(self.backend, controller, code, request.user.name, expected_version(request))
        if new:
            return self.answer(found, url_path("controllers", controller))
        return self.settled(found, seconds)


class ControllerStartView(ControllerBase):
    """Running."""

    @operation(
        "sluice:controllers:start", "start_controller", _OK, _NAME, WAIT, IF_MATCH, errors=(404, 409), takes=None
    )
    def post(self, request: Request, controller: str) -> Response:
        """Have an actor host run a controller.

        The controller.
        """
        seconds = self.seconds(request)
        empty_body(request.data)
        found = controllers.start(self.backend, controller, request.user.name, expected_version(request))
        return self.settled(found, seconds)


class ControllerStopView(ControllerBase):
    """Not running."""

    @operation("sluice:controllers:stop", "stop_controller", _OK, _NAME, WAIT, IF_MATCH, errors=(404, 409), takes=None)
    def post(self, request: Request, controller: str) -> Response:
        """Stop a controller, and take back what it set, in one change.

        The controller.
        """
        seconds = self.seconds(request)
        empty_body(request.data)
        found = controllers.stop(self.backend, controller, request.user.name, expected_version(request))
        return self.settled(found, seconds)


class ControllerRollbackView(ControllerBase):
    """An earlier revision of a controller's code."""

    @operation(
        "sluice:controllers:rollback",
        "roll_back_controller",
        _OK,
        _NAME,
        WAIT,
        IF_MATCH,
        errors=(404, 409),
        takes=RollbackSerializer,
        examples=ROLLBACKS,
    )
    def post(self, request: Request, controller: str) -> Response:
        """Give a controller the code of an earlier revision again, as a new revision.

        The controller with the code that it had.
        """
        seconds = self.seconds(request)
        number = revisions.requested_revision(request.data)
        found = controllers.roll_back(self.backend, controller, number, request.user.name, expected_version(request))
        return self.settled(found, seconds)


class ControllerInstancesView(View):
    """Where a controller runs."""

    @operation(
        "sluice:controllers:instances",
        "list_controller_instances",
        shapes.ControllerInstancesSerializer,
        _NAME,
        *LIST,
        errors=(404,),
    )
    def get(self, request: Request, controller: str) -> Response:
        """List the actor hosts that run a controller: one, but while it moves.

        A page of hosts.
        """
        name = controllers.find(self.backend, controller).upload.keyword
        where = {one.host: one for one in controllers.instances(self.backend).get(name, [])}
        return render_page(self, request, "instances", where, shapes.ControllerInstanceSerializer.render)
