"""``controller``: code that decides for the whole cluster."""

from __future__ import annotations

from typing import Final

from sluice_client.command_base.code_crud import (
    MAIN,
    DownloadCode,
    ListInstances,
    RollBackCode,
    StartCode,
    StopCode,
    UploadCode,
)
from sluice_client.command_base.crud import DeleteResources, ListResources, Resource, ShowResource
from sluice_client.resources import code

CONTROLLER: Final = Resource("controller", "/controllers", "controllers", code.CONTROLLER_LIST, code.CONTROLLER)


class ListControllers(ListResources):
    """List global controllers and how they fare."""

    resource = CONTROLLER


class ShowController(ShowResource):
    """Show a controller: what it watches, where it runs, and why not."""

    resource = CONTROLLER
    examples = ("busy -f json",)


class UploadController(UploadCode):
    """Bring the code of a controller, or another revision of it; a new one is stopped."""

    resource = CONTROLLER
    options = (MAIN,)
    examples = ("busy busy.py", "busy busy.py --main Busy --wait 10")


class StartController(StartCode):
    """Let actor hosts run controllers."""

    resource = CONTROLLER
    examples = ("busy --wait 10",)


class StopController(StopCode):
    """Stop controllers and take back what they set."""

    resource = CONTROLLER
    examples = ("busy",)


class RollBackController(RollBackCode):
    """Give a controller the code of an earlier revision again, as a new revision."""

    resource = CONTROLLER
    examples = ("busy", "busy --revision 1 --wait 10")


class DeleteController(DeleteResources):
    """Forget controllers and take back what they set."""

    resource = CONTROLLER
    examples = ("busy",)


class DownloadController(DownloadCode):
    """Write the code of a controller into a file."""

    resource = CONTROLLER
    examples = ("busy busy.py",)


class ListControllerInstances(ListInstances):
    """List the actor hosts that run a controller: one, but while it moves."""

    resource, instances = CONTROLLER, code.CONTROLLER_INSTANCE_LIST
    examples = ("busy --long",)
