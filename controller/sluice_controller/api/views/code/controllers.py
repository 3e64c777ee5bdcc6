"""``/controllers``: code that decides for the whole cluster."""

from __future__ import annotations

from typing import Any, Final

from rest_framework.request import Request
from rest_framework.response import Response

from sluice_controller.api.openapi import LIST, LOCATION, in_path, operation, operations, query_word
from sluice_controller.api.serializers.code import controllers as shapes
from sluice_controller.api.views.base import View
from sluice_controller.api.views.code import base
from sluice_controller.api.views.resources import delete_operation, no_content, render_page, show_operation
from sluice_controller.code import controllers
from sluice_controller.code.revisions import RegisteredCode

_NAME: Final = in_path("controller", "the controller's name")
_SHAPE: Final = shapes.ControllerSerializer


class ControllerBase(base.CodeView):
    """What the views of one controller share."""

    service, path = controllers, ("controllers",)

    def render(self, found: RegisteredCode) -> dict[str, Any]:
        """The controller and how it fares."""
        where = controllers.instances(self.backend).get(found.upload.keyword, [])
        return _SHAPE.render_on(where, found.upload)

    def wait_settled(self, found: RegisteredCode, new: bool) -> None:
        """Until actor hosts follow, or have said why not; a new one is stopped, so there is nothing to wait for."""
        if not new:
            controllers.wait_settled(self.backend, found, self.seconds)


class ControllersView(View):
    """All controllers."""

    @operation(
        "sluice:controllers:list",
        "list_controllers",
        shapes.ControllerPageSerializer,
        *LIST,
        query_word("state", "only controllers in this state", controllers.STATES),
    )
    def get(self, request: Request) -> Response:
        """List global controllers and how each of them fares.

        A page of controllers.
        """
        where = controllers.instances(self.backend)
        known = {
            name: _SHAPE.render_on(where.get(name, []), one)
            for name, one in controllers.list_controllers(self.backend.policy_cache.contents()).items()
        }
        wanted = {name: one for name, one in known.items() if self.given["state"] in ("", one["state"])}
        return render_page(self.given, "controllers", wanted, dict)


class ControllerView(ControllerBase):
    """One controller."""

    @show_operation("sluice:controllers:show", "show_controller", "Show a controller", _SHAPE, _NAME)
    def get(self, request: Request, controller: str) -> Response:
        """The controller."""
        return self.respond(controllers.find(self.backend, controller))

    @delete_operation(
        "sluice:controllers:delete", "delete_controller", "Forget a controller, and take back what it set", _NAME
    )
    def delete(self, request: Request, controller: str) -> Response:
        """204."""
        controllers.delete(self.backend, controller, request.user.name, **self.given)
        return no_content()


@operations(
    get=base.download_operation(
        "sluice:controllers:download", "download_controller", "Give the code of a controller", _NAME
    ),
    put=base.upload_operation(
        "sluice:controllers:upload",
        "upload_controller",
        "Upload a controller, which is stopped then, or another revision of one",
        "It runs in a process of its own beside an actor host. While another revision cannot be loaded there, the "
        "earlier one goes on.",
        {200: _SHAPE, 201: _SHAPE},
        _NAME,
        LOCATION,
    ),
)
class ControllerDataView(ControllerBase, base.CodeDataView):
    """The code of one controller."""


class ControllerStartView(ControllerBase):
    """Running."""

    @base.command_operation("sluice:controllers:start", "start_controller", _SHAPE, _NAME)
    def post(self, request: Request, controller: str) -> Response:
        """Have an actor host run a controller.

        The controller.
        """
        found = controllers.start(self.backend, controller, request.user.name, **self.given)
        return self.respond_settled(found)


class ControllerStopView(ControllerBase):
    """Not running."""

    @base.command_operation("sluice:controllers:stop", "stop_controller", _SHAPE, _NAME)
    def post(self, request: Request, controller: str) -> Response:
        """Stop a controller, and take back what it set, in one change.

        The controller.
        """
        found = controllers.stop(self.backend, controller, request.user.name, **self.given)
        return self.respond_settled(found)


@operations(
    post=base.rollback_operation(
        "sluice:controllers:rollback",
        "roll_back_controller",
        "Give a controller the code of an earlier revision again, as a new revision",
        "The controller with the code that it had.",
        _SHAPE,
        _NAME,
    )
)
class ControllerRollbackView(ControllerBase, base.CodeRollbackView):
    """An earlier revision of a controller's code."""


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
        return render_page(self.given, "instances", where, shapes.ControllerInstanceSerializer.render)
