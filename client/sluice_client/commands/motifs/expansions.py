"""``motif expand``: one object, or all that are contracted, with how far it is."""

from __future__ import annotations

import time
from argparse import Namespace
from typing import Final

from sluice_client.command_base.command import Argument, ShowCommand
from sluice_client.commands.motifs.motifs import WAIT, object_path
from sluice_client.errors import ApiError, ClientError, Unreachable
from sluice_client.resources.columns import Data, printable
from sluice_client.resources.motifs import OBJECT, OPERATION, operation_line

_POLL: Final = 1.0
_BUSY: Final = 503
#: Seconds between two lines where there is no terminal.
_LINES: Final = 10.0


class ExpandMotif(ShowCommand, words="motif expand"):
    """Make the bytes of an object again, or with `--all` those of all contracted objects of a target, or of the
    cluster."""

    columns = OPERATION
    arguments = (
        Argument("target", "account/container/object; with --all account or account/container",
                 {"metavar": "TARGET", "nargs": "?", "default": ""}),
        Argument("--all", "all contracted objects of the target; how far it is stands on standard error",
                 {"action": "store_true"}),
        Argument("--background", "with --all: do not wait for its end", {"action": "store_true"}),
        WAIT,
    )  # fmt: skip
    examples = ("acme/c/copy", "--all", "--all acme/thumbs --background")

    def run(self, parsed_args: Namespace) -> int:
        """Called by cliff.

        :raises ClientError: when an operation that was waited for was cancelled, or failed for some objects
        """
        if not parsed_args.all:
            if parsed_args.background:
                raise ClientError("`--background` is said of `--all`")
            self.columns = OBJECT  # type: ignore[misc]
        status = super().run(parsed_args)
        if parsed_args.all and not parsed_args.background:
            _refuse_failed(self.raw)
        return status

    def fetch(self, args: Namespace) -> Data:
        """The object, or the operation as it is in the end."""
        if not args.all:
            return self.client.act_on_motif(*object_path(args.target), "expand", wait=args.wait)
        account, _, container = args.target.partition("/")
        operation = self.client.expand_all(account, container)
        return operation if args.background else self._finished(operation)

    def _finished(self, operation: Data) -> Data:
        shown = 0.0
        terminal = self.app.stderr if self.app.stderr.isatty() else None
        while not operation["ended_at"]:
            now = time.monotonic()
            if terminal is not None or now - shown >= _LINES:
                line = printable(operation_line(operation))
                self.app.stderr.write(f"\r\x1b[K{line}" if terminal is not None else f"{line}\n")
                self.app.stderr.flush()
                shown = now
            operation = self._again(operation)
        if terminal is not None:
            terminal.write(f"\r\x1b[K{printable(operation_line(operation))}\n")
        return operation

    def _again(self, operation: Data) -> Data:
        try:
            return self.client.motif_operation(operation["id"], _POLL)
        except (ApiError, Unreachable) as error:
            if isinstance(error, ApiError) and error.status != _BUSY:
                raise
            time.sleep(_POLL)  # away for a moment
            return operation


def _refuse_failed(operation: Data) -> None:
    if operation["state"] == "cancelled":
        raise ClientError(f"operation {operation['id']} was cancelled")
    if operation["failed"]:
        examples = "; ".join(f"{one['item']}: {one['reason']}" for one in operation["examples"][-3:])
        raise ClientError(f"{operation['failed']} objects could not be expanded: {printable(examples)}")
