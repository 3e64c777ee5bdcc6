"""``controller``: code that decides for the whole cluster."""

from __future__ import annotations

from typing import Final

from sluice_client.command_base import code_crud, crud
from sluice_client.resources import code

CONTROLLER: Final = crud.Resource(
    "controller",
    "/controllers",
    code.CONTROLLER_LIST,
    code.CONTROLLER,
    upload_options=(code_crud.MAIN,),
)


class ListControllers(crud.ListResources, resource=CONTROLLER, words="controller list"):
    """List global controllers and their states."""


class ShowController(crud.ShowResource, resource=CONTROLLER, words="controller show"):
    """Show a controller: the metrics that it watches, where it runs, and why not."""

    examples = ("busy -f json",)


class UploadController(code_crud.UploadCode, resource=CONTROLLER, words="controller upload"):
    """Upload the code of a controller, or another revision of it; a new one is stopped."""

    examples = ("busy busy.py", "busy busy.py --main Busy --wait 10")


class StartController(code_crud.StartCode, resource=CONTROLLER, words="controller start"):
    """Start controllers on actor hosts."""

    examples = ("busy --wait 10",)


class StopController(code_crud.StopCode, resource=CONTROLLER, words="controller stop"):
    """Stop controllers and remove their assignments."""

    examples = ("busy",)


class RollBackController(code_crud.RollBackCode, resource=CONTROLLER, words="controller rollback"):
    """Roll back a controller to the code of an earlier revision, as a new revision."""

    examples = ("busy", "busy --revision 1 --wait 10")


class DeleteController(crud.DeleteResources, resource=CONTROLLER, words="controller delete"):
    """Delete controllers and their assignments."""

    examples = ("busy",)


class DownloadController(code_crud.DownloadCode, resource=CONTROLLER, words="controller download"):
    """Write the code of a controller into a file."""

    examples = ("busy busy.py",)


class ListControllerInstances(
    code_crud.ListInstances, resource=CONTROLLER, words="controller instance list", earlier="controller instances"
):
    """List the actor hosts that run a controller: one, except while it moves."""

    columns = code.CONTROLLER_INSTANCE_LIST
    examples = ("busy --long",)
