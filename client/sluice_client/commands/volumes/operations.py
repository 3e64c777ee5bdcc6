"""``volume operation``: operations on volumes, and how a command waits for one."""

from __future__ import annotations

import time
from abc import abstractmethod
from argparse import Namespace
from collections.abc import Iterable
from typing import Any, Final

from sluice_client.command_base import crud
from sluice_client.command_base.arguments import WAIT_FOR_END, Argument
from sluice_client.command_base.command import ShowCommand, SluiceCommand
from sluice_client.command_base.each import EachCommand
from sluice_client.command_base.watch import wait_for_job
from sluice_client.errors import ClientError
from sluice_client.resources.columns import Data, printable
from sluice_client.resources.volumes import OPERATION, OPERATION_LIST

STATES: Final = ("under_way", "done", "failed")
#: Seconds for which one request waits.
_PATIENCE: Final = 5.0

OPERATIONS: Final = crud.Resource(
    "operation",
    "/volumes/operations",
    OPERATION_LIST,
    OPERATION,
    key="id",
    filters=(
        Argument("--state", "only operations in this state", {"choices": STATES}),
        Argument("--volume", "only operations on the volume with this id"),
    ),
)


class WaitingCommand(SluiceCommand):
    """A command that may wait for operations."""

    def finished(self, operation: Data, wait: float) -> Data:
        """Return ``operation`` when it has ended, if ``wait`` is not 0.

        :param wait: seconds; 0 does not wait
        :raises ClientError: when it has failed, or has not ended in time
        """
        began, name, patience = time.monotonic(), operation["id"], min(_PATIENCE, wait)
        if wait:
            operation = wait_for_job(
                operation,
                lambda: self.client.volume_operation(name, patience),
                lambda found: bool(found["state"] != STATES[0]),
                lambda found: f"{found['what']} of {found['volume'] or 'a volume'}: {time.monotonic() - began:.0f} s",
                self.app.stderr,
                wait,
                seconds=1.0,
                at_once=False,
            )
        if operation["state"] == STATES[2]:
            raise ClientError(f"operation {operation['id']} has failed: {printable(operation['reason'])}")
        return operation


class OrderCommand(WaitingCommand, ShowCommand):
    """Submits one operation, and shows it."""

    columns = OPERATION

    def submit(self, args: Namespace) -> Data:
        """Submit the operation."""
        found: Data = self.forward(args, leave_out=WAIT_FOR_END.dest)
        return found

    def fetch(self, args: Namespace) -> Data:
        """The operation, with ``--wait`` after its end."""
        return self.finished(self.submit(args), args.wait)


class OrderEachCommand(WaitingCommand, EachCommand):
    """Submits an operation for each of several names."""

    @abstractmethod
    def submit(self, name: str, args: Namespace) -> Data:
        """Submit the operation for one name."""

    def each(self, name: str, args: Namespace) -> tuple[str, Any]:
        """Submit it for one name."""
        found = self.finished(self.submit(name, args), args.wait)
        return f"{found['what']} of {printable(name)} is {found['state']}, operation {found['id']}", found


class ListVolumeOperations(crud.ListResources, resource=OPERATIONS, words="volume operation list"):
    """List operations on volumes, oldest first."""

    def fetch(self, args: Namespace) -> Iterable[Data]:
        """The operations."""
        return self.client.volume_operations(args.state or "", args.volume or "")


class ShowVolumeOperation(OrderCommand, words="volume operation show"):
    """Show an operation on a volume, and continue it if it was interrupted."""

    arguments = (OPERATIONS.argument("the operation's id"), WAIT_FOR_END)
    examples = ("4f1c6b0a9d2e47f8a3b5c7d9e1f20364 --wait",)

    def fetch(self, args: Namespace) -> Data:
        """The operation; a failed one is shown, unless ``--wait`` is given."""
        found = self.submit(args)
        return self.finished(found, args.wait) if args.wait else found

    def submit(self, args: Namespace) -> Data:
        """The present operation."""
        return self.client.volume_operation(args.id)
