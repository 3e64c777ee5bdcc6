"""``rewrite``: jobs that rewrite stored objects by the present policies."""

from __future__ import annotations

import time
from argparse import Namespace
from typing import Any, Final

from sluice_client.command_base import crud
from sluice_client.command_base.arguments import WAIT_FOR_END, Argument, names_argument
from sluice_client.command_base.command import ShowCommand
from sluice_client.command_base.each import EachCommand
from sluice_client.command_base.targets import target_path
from sluice_client.command_base.watch import wait_for_job
from sluice_client.errors import ClientError
from sluice_client.resources.columns import MEGABYTE, Column, Data, fields, lines, printable, rate_text
from sluice_client.resources.policies import Columns

field = Column.field
_WIDTH: Final = 30
#: States in which a rewrite has not ended.
_OPEN: Final = ("collecting", "running", "paused")
STATES: Final = (*_OPEN, "cancelled", "done", "failed")
GOALS: Final = ("policies", "plain", "key")
_POLL: Final = 1.0


def share_done(data: Data) -> float:
    """The processed part of the objects that were found so far, 0 to 1."""
    if data["state"] == "done":
        return 1.0
    found = max(data["objects"], data["objects_done"])
    return data["objects_done"] / found if found else 0.0


def _percent(data: Data) -> str:
    return f"{share_done(data):.0%}" + ("" if data["listed"] else " of what was found so far")


def _rate(value: Any) -> str:
    return "" if value is None else rate_text(value)


def _example(row: Any) -> str:
    return f"{row['object']}: {row['reason']}"


def progress_line(data: Data, rate: float | None) -> str:
    """Return a bar, and the finished work, on one line.

    :param rate: recent bytes per second, None if unknown
    """
    share = share_done(data)
    words = [f"[{'#' * int(share * _WIDTH):{_WIDTH}}] {share:4.0%}"]
    words.append(f"{data['objects_done']} of {max(data['objects'], data['objects_done'])} objects")
    words.append(f"{data['rewritten']} rewritten, {data['bytes_rewritten'] / MEGABYTE:.1f} MB")
    if failed := sum(data["failed"].values()):
        words.append(f"{failed} failed")
    if rate is not None:
        words.append(rate_text(rate))
    if data["estimated_end"]:
        words.append(f"ends about {data['estimated_end']}")
    return ", ".join(words)


REWRITE_LIST: Final[Columns] = (
    field("ID", "id"),
    *fields("Target", "To", "State"),
    Column("Done", _percent),
    *fields("Rewritten", "Skipped", "Failed"),
    field("Estimated End", long=True),
    field("Created At", long=True),
    field("Created By", long=True),
)
REWRITE: Final[Columns] = (
    *fields("id", "target", "to", "state", "warning"),
    Column("done", _percent),
    *fields("accounts", "containers", "containers_done", "objects", "objects_done"),
    *fields("rewritten", "unchanged", "skipped", "failed"),
    *fields("bytes", "bytes_done", "bytes_rewritten", "working"),
    field("max_bw", human=_rate),
    *fields("max_objects_sec", "estimated_end", "ended_at", "created_at", "created_by"),
    field("examples", human=lines(_example)),
)


REWRITES: Final = crud.Resource(
    "rewrite",
    "/rewrites",
    REWRITE_LIST,
    REWRITE,
    key="id",
    filters=(
        Argument("--state", "only rewrites in this state", {"choices": STATES}),
        Argument("--target", "only those of this target"),
    ),
)


class ListRewrites(crud.ListResources, resource=REWRITES, words="rewrite list"):
    """List rewrites and their progress."""


class _WaitingCommand(ShowCommand):
    """Shows a rewrite, with ``--wait`` after its end."""

    columns = REWRITE

    def run(self, parsed_args: Namespace) -> int:
        """Called by cliff.

        :raises ClientError: when the job was cancelled or failed, or failed for some objects
        """
        status = super().run(parsed_args)
        if parsed_args.wait:
            _refuse_failed(self.raw)
        return status

    def finished(self, job: Data, timeout: float) -> Data:
        """Return ``job`` when it has ended; its progress is shown on standard error.

        :param timeout: seconds
        """
        seen, since = job["bytes_done"], time.monotonic()

        def fetch() -> Data:
            time.sleep(_POLL)
            return self.client.rewrite(job["id"])

        def line(data: Data) -> str:
            if data["state"] not in _OPEN:
                return progress_line(data, None)
            passed = time.monotonic() - since
            rate = (data["bytes_done"] - seen) / passed if passed else None
            return progress_line(data, rate) + (f", {data['warning']}" if data["warning"] else "")

        return wait_for_job(job, fetch, lambda found: found["state"] not in _OPEN, line, self.app.stderr, timeout)


def _refuse_failed(job: Data) -> None:
    if job["state"] == "cancelled":
        raise ClientError(f"rewrite {job['id']} was cancelled")
    if job["state"] == "failed":
        raise ClientError(f"rewrite {job['id']} has failed: {printable(job['warning'])}")
    if failed := sum(job["failed"].values()):
        raise ClientError(f"{failed} objects could not be rewritten, order the job again: {_reasons(job)}")


def _reasons(job: Data) -> str:
    return ", ".join(f"{count} × {printable(reason)}" for reason, count in job["failed"].items())


class CreateRewrite(_WaitingCommand, words="rewrite create"):
    """Rewrite stored objects: by the present policies, to plain bytes, or under the active key."""

    arguments = (
        Argument("target", "tenant[/container[/prefix]], or CLUSTER", {"metavar": "TARGET", "type": target_path}),
        Argument("to", "policies, plain or key", {"choices": GOALS, "metavar": "TO"}),
        Argument("--max-bw", "rate over all rewriters, as 20MBps; a bare number is MB/s", {"metavar": "RATE"}),
        Argument("--max-objects-sec", "objects per second over all rewriters", {"type": float, "metavar": "N"}),
        WAIT_FOR_END,
    )
    examples = ("AUTH_acme/logs policies", "AUTH_acme plain --max-bw 20MBps --wait", "CLUSTER key")

    def fetch(self, args: Namespace) -> Data:
        """The new job, with ``--wait`` after its end."""
        job = self.client.create_rewrite(args.target, args.to, args.max_bw, args.max_objects_sec)
        return self.finished(job, args.wait) if args.wait else job


class ShowRewrite(_WaitingCommand, words="rewrite show"):
    """Show a rewrite and its progress."""

    arguments = (REWRITES.argument("the rewrite's id"), WAIT_FOR_END)
    examples = ("01a21334e570-681b5258", "01a21334e570-681b5258 --wait")

    def fetch(self, args: Namespace) -> Data:
        """The job, with ``--wait`` after its end."""
        job = self.client.rewrite(args.id)
        return self.finished(job, args.wait) if args.wait else job


class _OrderCommand(EachCommand):
    """Sends a command to rewrites."""

    verb = ""
    arguments = (names_argument("id", "the rewrite's id"),)
    examples = ("01a21334e570-681b5258",)

    def each(self, name: str, args: Namespace) -> tuple[str, Any]:
        """Send the command to one rewrite."""
        job = self.client.order_rewrite(name, self.verb)
        return f"rewrite {printable(name)} is {job['state']}", job


class PauseRewrite(_OrderCommand, words="rewrite pause"):
    """Pause rewrites; objects in progress are finished."""

    verb = "pause"


class ResumeRewrite(_OrderCommand, words="rewrite resume"):
    """Continue paused rewrites."""

    verb = "resume"


class CancelRewrite(_OrderCommand, words="rewrite cancel"):
    """Cancel rewrites; rewritten objects stay rewritten."""

    verb = "cancel"


class DeleteRewrite(crud.DeleteResources, resource=REWRITES, words="rewrite delete"):
    """Delete rewrites that have ended."""

    examples = ("01a21334e570-681b5258",)
