"""``/controllers``: uploaded controllers, which decide for the whole cluster."""

from __future__ import annotations

from typing import Any, Final

from rest_framework.request import Request
from rest_framework.response import Response

from sluice_controller.api.openapi import LIST, LOCATION, in_path, operation, query_word
from sluice_controller.api.operations.code import base
from sluice_controller.api.resources import delete_operation, no_content, render_page, show_operation
from sluice_controller.api.serializers import code as shapes
from sluice_controller.api.view import View
from sluice_controller.code import controllers
from sluice_controller.code.revisions import RegisteredCode
from sluice_controller.identity.rules import ADMIN, Rule
from sluice_core.messages.uploads import CONTROLLER_CODE

_NAME: Final = in_path("controller", "the controller's name")
_URL: Final = "/controllers/<name:controller>"
_SHAPE: Final = shapes.ControllerSerializer


class ControllerBase(base.CodeView):
    """The common part of the views of one controller."""

    service, path = controllers, ("controllers",)

    def render(self, registered: RegisteredCode) -> dict[str, Any]:
        """The controller and its state."""
        where = controllers.instances(self.backend).get(registered.upload.keyword, [])
        return _SHAPE.render_on(where, registered.upload)

    def wait_settled(self, registered: RegisteredCode, new: bool) -> None:
        """Wait until actor hosts run it, or have reported why not; a new controller is stopped, so there is no wait."""
        if not new:
            controllers.wait_settled(self.backend, registered, self.seconds)


@operation(
    "GET /controllers",
    Rule("sluice:controllers:list", ADMIN, "list controllers"),
    shapes.ControllerPageSerializer,
    *LIST,
    query_word("state", "only controllers in this state", controllers.STATES),
)
def list_controllers(view: View, request: Request) -> Response:
    """List global controllers with their state.

    A page of controllers.
    """
    where = controllers.instances(view.backend)
    known = {
        name: _SHAPE.render_on(where.get(name, []), one)
        for name, one in controllers.list_controllers(view.backend.policy_cache.contents()).items()
    }
    wanted = {name: one for name, one in known.items() if view.given["state"] in ("", one["state"])}
    return render_page(view.given, "controllers", wanted, dict)


@show_operation(
    "GET /controllers/<name:controller>",
    Rule("sluice:controllers:show", ADMIN, "show a controller"),
    _SHAPE,
    _NAME,
    summary="Show a controller",
)
def show_controller(view: ControllerBase, request: Request, controller: str) -> Response:
    """The controller."""
    return view.respond(controllers.find(view.backend, controller))


@delete_operation(
    "DELETE /controllers/<name:controller>",
    Rule("sluice:controllers:delete", ADMIN, "delete a controller"),
    _NAME,
    summary="Delete a controller, and take back its assignments",
)
def delete_controller(view: ControllerBase, request: Request, controller: str) -> Response:
    """204."""
    controllers.delete(view.backend, controller, request.user.name, **view.given)
    return no_content()


class ControllerDataView(ControllerBase, base.CodeDataView):
    """The code of one controller."""


base.declare_download(
    ControllerDataView,
    _URL,
    Rule("sluice:controllers:download", ADMIN, "download a controller's code"),
    _NAME,
    name="download_controller",
    summary="Download the code of a controller",
)
base.declare_upload(
    ControllerDataView,
    _URL,
    Rule(
        base.NATIVE_RULES[CONTROLLER_CODE],
        ADMIN,
        "upload a controller's code, which runs with all rights of the actor hosts",
    ),
    {200: _SHAPE, 201: _SHAPE},
    _NAME,
    LOCATION,
    name="upload_controller",
    summary="Upload a controller, which is stopped at first, or another revision of one",
    description="It runs in a process of its own beside an actor host. While a new revision cannot be loaded there, "
    "the earlier one keeps running.",
)


@base.command_operation(
    "POST /controllers/<name:controller>/start",
    Rule("sluice:controllers:start", ADMIN, "start a controller"),
    _SHAPE,
    _NAME,
)
def start_controller(view: ControllerBase, request: Request, controller: str) -> Response:
    """Start a controller on an actor host.

    The controller.
    """
    found = controllers.start(view.backend, controller, request.user.name, **view.given)
    return view.respond_settled(found)


@base.command_operation(
    "POST /controllers/<name:controller>/stop",
    Rule("sluice:controllers:stop", ADMIN, "stop a controller and take back its assignments"),
    _SHAPE,
    _NAME,
)
def stop_controller(view: ControllerBase, request: Request, controller: str) -> Response:
    """Stop a controller, and take back its assignments, in one change.

    The controller.
    """
    found = controllers.stop(view.backend, controller, request.user.name, **view.given)
    return view.respond_settled(found)


base.declare_rollback(
    ControllerBase,
    _URL,
    Rule("sluice:controllers:rollback", ADMIN, "roll back a controller to earlier code"),
    _SHAPE,
    _NAME,
    name="roll_back_controller",
    summary="Roll back a controller to the code of an earlier revision, as a new revision",
    description="The controller with the restored code.",
)


@operation(
    "GET /controllers/<name:controller>/instances",
    Rule("sluice:controllers:instances", ADMIN, "show which actor host runs a controller"),
    shapes.ControllerInstancesSerializer,
    _NAME,
    *LIST,
)
def list_controller_instances(view: View, request: Request, controller: str) -> Response:
    """List the actor hosts that run a controller: one, except while it moves.

    A page of hosts.
    """
    name = controllers.find(view.backend, controller).upload.keyword
    where = {one.host: one for one in controllers.instances(view.backend).get(name, [])}
    return render_page(view.given, "instances", where, shapes.ControllerInstanceSerializer.render)
