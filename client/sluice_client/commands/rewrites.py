"""``rewrite``: jobs that bring stored objects to what policies say."""

from __future__ import annotations

import time
from argparse import Namespace
from typing import Any, Final

from sluice_client.command_base import crud
from sluice_client.command_base.command import Argument, EachCommand, ShowCommand, names_argument
from sluice_client.command_base.jobs import wait_for_job
from sluice_client.errors import ClientError
from sluice_client.resources.columns import Data, printable
from sluice_client.resources.rewrites import REWRITE, REWRITE_LIST, progress_line

#: In which a rewrite has not ended.
_OPEN: Final = ("collecting", "running", "paused")
STATES: Final = (*_OPEN, "cancelled", "done", "failed")
GOALS: Final = ("policies", "plain", "key")
_WAIT: Final = Argument("--wait", "show how far it is until it has ended", {"action": "store_true"})
_POLL: Final = 1.0

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
    """List rewrites and how far each is."""


class _WaitingCommand(ShowCommand):
    """Shows a rewrite, after it has ended if that is wanted."""

    columns = REWRITE

    def run(self, parsed_args: Namespace) -> int:
        """Called by cliff.

        :raises ClientError: when a job that was waited for was cancelled or failed, or failed for some objects
        """
        status = super().run(parsed_args)
        if parsed_args.wait:
            _refuse_failed(self.raw)
        return status

    def finished(self, job: Data) -> Data:
        """``job`` when it has ended; it is shown on standard error how far it is."""
        seen, since = job["bytes_done"], time.monotonic()

        def fetch() -> Data:
            time.sleep(_POLL)
            return self.client.rewrite(job["id"])

        def line(found: Data) -> str:
            if found["state"] not in _OPEN:
                return progress_line(found, None)
            passed = time.monotonic() - since
            rate = (found["bytes_done"] - seen) / passed if passed else None
            return progress_line(found, rate) + (f", {found['warning']}" if found["warning"] else "")

        return wait_for_job(job, fetch, lambda found: found["state"] not in _OPEN, line, self.app.stderr)


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
    """Have stored objects rewritten: to what policies say, to plain bytes, or to the active key."""

    arguments = (
        Argument("target", "tenant[/container[/prefix]], or CLUSTER", {"metavar": "TARGET"}),
        Argument("to", "policies, plain or key", {"choices": GOALS, "metavar": "TO"}),
        Argument("--max-bw", "rate over all rewriters, as 20MBps; a bare number is MB/s", {"metavar": "RATE"}),
        Argument("--max-objects-sec", "objects per second over all rewriters", {"type": float, "metavar": "N"}),
        _WAIT,
    )
    examples = ("AUTH_acme/logs policies", "AUTH_acme plain --max-bw 20MBps --wait", "CLUSTER key")

    def fetch(self, args: Namespace) -> Data:
        """The new job, ended if that is waited for."""
        job = self.client.create_rewrite(args.target, args.to, args.max_bw, args.max_objects_sec)
        return self.finished(job) if args.wait else job


class ShowRewrite(_WaitingCommand, words="rewrite show"):
    """Show a rewrite and how far it is."""

    arguments = (REWRITES.argument("the rewrite's id"), _WAIT)
    examples = ("01a21334e570-681b5258", "01a21334e570-681b5258 --wait")

    def fetch(self, args: Namespace) -> Data:
        """The job, ended if that is waited for."""
        job = self.client.rewrite(args.id)
        return self.finished(job) if args.wait else job


class _OrderCommand(EachCommand):
    """Orders something of rewrites."""

    verb = ""
    arguments = (names_argument("id", "the rewrite's id"),)
    examples = ("01a21334e570-681b5258",)

    def each(self, name: str, args: Namespace) -> tuple[str, Any]:
        """Order it of one rewrite."""
        job = self.client.order_rewrite(name, self.verb)
        return f"rewrite {printable(name)} is {job['state']}", job


class PauseRewrite(_OrderCommand, words="rewrite pause"):
    """Pause rewrites; objects that are under way are finished."""

    verb = "pause"


class ResumeRewrite(_OrderCommand, words="rewrite resume"):
    """Let rewrites go on where they were paused."""

    verb = "resume"


class CancelRewrite(_OrderCommand, words="rewrite cancel"):
    """End rewrites; what was rewritten stays so."""

    verb = "cancel"


class DeleteRewrite(crud.DeleteResources, resource=REWRITES, words="rewrite delete"):
    """Forget rewrites that have ended."""

    examples = ("01a21334e570-681b5258",)
