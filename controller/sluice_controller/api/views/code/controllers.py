"""``/controllers``: code that decides for the whole cluster."""

from __future__ import annotations

from http import HTTPStatus

from django.http import StreamingHttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from sluice_controller.api.openapi import REQUEST_ID, WAIT, WITH_BODY, answers
from sluice_controller.api.openapi import query as in_query
from sluice_controller.api.parsers import RawParser
from sluice_controller.api.serializers.controllers import (
    ControllerInstanceSerializer,
    ControllerInstancesSerializer,
    ControllerPageSerializer,
    ControllerSerializer,
)
from sluice_controller.api.serializers.uploads import ROLLBACKS, RollbackSerializer
from sluice_controller.api.views.base import View, expected_version
from sluice_controller.api.views.code.code import BYTES, BYTES_OUT, MAIN, NATIVE_WARNING, SHA256, download, given
from sluice_controller.api.views.listing import ETAG, GONE, IF_MATCH, LIST, LOCATION, gone, in_path, page, shown, url
from sluice_controller.catalog.waiting import LONGEST
from sluice_controller.code import controllers, revisions
from sluice_controller.code.revisions import RegisteredCode
from sluice_controller.validation.parameters import empty_body

_NAME = in_path("controller", "the controller's name")
_OK = {200: ControllerSerializer}


class ControllerBase(View):
    """What the views of one controller share."""

    def answer(self, found: RegisteredCode, location: str = "") -> Response:
        """The controller and how it fares."""
        where = controllers.instances(self.backend).get(found.upload.keyword, [])
        return shown(ControllerSerializer.show_on(where, found.upload), found.version, location)

    def seconds(self, request: Request) -> float:
        """How long the answer may wait."""
        return self.query(request, "wait").number("wait", 0.0, 0.0, LONGEST)

    def settled(self, found: RegisteredCode, seconds: float) -> Response:
        """The controller once actor hosts do what was asked, or say why not."""
        controllers.wait_settled(self.backend, found, seconds)
        return self.answer(found)


class ControllersView(View):
    """All controllers."""

    http_method_names = ("get", "head")
    rules = {"get": "sluice:controllers:list"}

    @extend_schema(
        operation_id="list_controllers",
        summary="List global controllers and how each of them fares",
        parameters=[*LIST, in_query("state", str, "only controllers in this state", enum=controllers.STATES)],
        responses=answers({200: ControllerPageSerializer}, 400),
    )
    def get(self, request: Request) -> Response:
        """A page of controllers."""
        given_query = self.query(request, "limit", "marker", "prefix", "state")
        state = given_query.one_of("state", controllers.STATES)
        where = controllers.instances(self.backend)
        known = {
            name: ControllerSerializer.show_on(where.get(name, []), one)
            for name, one in controllers.list_controllers(self.backend.policy_cache.contents()).items()
        }
        wanted = {name: one for name, one in known.items() if state in ("", one["state"])}
        return page(self, request, "controllers", wanted, lambda one: one, "state")


class ControllerView(ControllerBase):
    """One controller."""

    http_method_names = ("get", "delete", "head")
    rules = {"get": "sluice:controllers:show", "delete": "sluice:controllers:delete"}

    @extend_schema(
        operation_id="show_controller",
        summary="Show a controller",
        parameters=[_NAME, REQUEST_ID, ETAG],
        responses=answers(_OK, 400, 404),
    )
    def get(self, request: Request, controller: str) -> Response:
        """The controller."""
        self.query(request)
        return self.answer(controllers.find(self.backend, controller))

    @extend_schema(
        operation_id="delete_controller",
        summary="Forget a controller, and take back what it set",
        parameters=[_NAME, IF_MATCH, REQUEST_ID],
        responses=answers(GONE, 400, 404, 409, 412),
    )
    def delete(self, request: Request, controller: str) -> Response:
        """204."""
        self.query(request)
        controllers.delete(self.backend, controller, request.user.name, expected_version(request))
        return gone()


class ControllerDataView(ControllerBase):
    """The code of one controller."""

    http_method_names = ("get", "put", "head")
    parser_classes = (RawParser,)
    rules = {"get": "sluice:controllers:download", "put": "sluice:controllers:upload"}

    @extend_schema(
        operation_id="download_controller",
        summary="Give the code of a controller",
        parameters=[_NAME, REQUEST_ID],
        responses=BYTES_OUT,
    )
    def get(self, request: Request, controller: str) -> StreamingHttpResponse:
        """The code."""
        self.query(request)
        upload = controllers.find(self.backend, controller).upload
        return download(self.backend, request, upload)

    @extend_schema(
        operation_id="upload_controller",
        summary="Upload a controller, which is stopped then, or another revision of one",
        description=(
            f"{NATIVE_WARNING} It runs in a process of its own beside an actor host. While another revision cannot be "
            "loaded there, the earlier one goes on."
        ),
        parameters=[_NAME, MAIN, WAIT, SHA256, IF_MATCH, REQUEST_ID, ETAG, LOCATION],
        request=BYTES,
        responses=answers({**_OK, HTTPStatus.CREATED.value: ControllerSerializer}, 404, 409, 412, 422, *WITH_BODY),
    )
    def put(self, request: Request, controller: str) -> Response:
        """The controller as its code describes it."""
        given_query = self.query(request, "wait", "main")
        seconds = given_query.number("wait", 0.0, 0.0, LONGEST)
        code = given(request, given_query.text("main"))
        found, new = controllers.put_code(self.backend, controller, code, request.user.name, expected_version(request))
        if new:
            return self.answer(found, url("controllers", controller))
        return self.settled(found, seconds)


class ControllerStartView(ControllerBase):
    """Running."""

    http_method_names = ("post",)
    rules = {"post": "sluice:controllers:start"}

    @extend_schema(
        operation_id="start_controller",
        summary="Have an actor host run a controller",
        parameters=[_NAME, WAIT, IF_MATCH, REQUEST_ID, ETAG],
        request=None,
        responses=answers(_OK, 404, 409, 412, *WITH_BODY),
    )
    def post(self, request: Request, controller: str) -> Response:
        """The controller."""
        seconds = self.seconds(request)
        empty_body(request.data)
        found = controllers.start(self.backend, controller, request.user.name, expected_version(request))
        return self.settled(found, seconds)


class ControllerStopView(ControllerBase):
    """Not running."""

    http_method_names = ("post",)
    rules = {"post": "sluice:controllers:stop"}

    @extend_schema(
        operation_id="stop_controller",
        summary="Stop a controller, and take back what it set, in one change",
        parameters=[_NAME, WAIT, IF_MATCH, REQUEST_ID, ETAG],
        request=None,
        responses=answers(_OK, 404, 409, 412, *WITH_BODY),
    )
    def post(self, request: Request, controller: str) -> Response:
        """The controller."""
        seconds = self.seconds(request)
        empty_body(request.data)
        found = controllers.stop(self.backend, controller, request.user.name, expected_version(request))
        return self.settled(found, seconds)


class ControllerRollbackView(ControllerBase):
    """An earlier revision of a controller's code."""

    http_method_names = ("post",)
    rules = {"post": "sluice:controllers:rollback"}

    @extend_schema(
        operation_id="roll_back_controller",
        summary="Give a controller the code of an earlier revision again, as a new revision",
        parameters=[_NAME, WAIT, IF_MATCH, REQUEST_ID, ETAG],
        request=RollbackSerializer,
        responses=answers(_OK, 404, 409, 412, *WITH_BODY),
        examples=ROLLBACKS,
    )
    def post(self, request: Request, controller: str) -> Response:
        """The controller with the code that it had."""
        seconds = self.seconds(request)
        number = revisions.requested_revision(request.data)
        found = controllers.roll_back(self.backend, controller, number, request.user.name, expected_version(request))
        return self.settled(found, seconds)


class ControllerInstancesView(View):
    """Where a controller runs."""

    http_method_names = ("get", "head")
    rules = {"get": "sluice:controllers:instances"}

    @extend_schema(
        operation_id="list_controller_instances",
        summary="List the actor hosts that run a controller: one, but while it moves",
        parameters=[_NAME, *LIST],
        responses=answers({200: ControllerInstancesSerializer}, 400, 404),
    )
    def get(self, request: Request, controller: str) -> Response:
        """A page of hosts."""
        name = controllers.find(self.backend, controller).upload.keyword
        where = {one.host: one for one in controllers.instances(self.backend).get(name, [])}
        return page(self, request, "instances", where, ControllerInstanceSerializer.show)
