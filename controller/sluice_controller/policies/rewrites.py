"""Rewrites: jobs that rewrite stored objects as policies require, to plain bytes, or with the active key.

Jobs are in Redis beside the configuration and not in it, so they are not part of an export or a rollback.
Rewriters claim their units (``sluice_rewrites``); the API creates jobs and shows their progress.

Two overlapping jobs may be created at once, and Redis does not compare targets.  So a job is written as paused, which
no rewriter claims, and all jobs are read again.  If an overlapping job was written before, the new one is withdrawn.
Redis writes one after the other, so the later one always sees the earlier one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from sluice_controller.catalog import entries
from sluice_controller.catalog.backend import Backend
from sluice_controller.catalog.entries import Page
from sluice_controller.catalog.vocabulary import account_of
from sluice_controller.validation.bodies import Body, read_rate
from sluice_core.errors import CallerError, Conflict, NotFound
from sluice_core.jobs import longest_ended, new_job_id, request_id
from sluice_core.store.operation import Operation
from sluice_rewrites import operations
from sluice_rewrites.accounts import (
    AccountCollection,
    close_request,
    new_request,
    open_request,
    read_collection,
)
from sluice_rewrites.messages import (
    CANCELLED,
    COLLECTING,
    FAILED,
    GOALS,
    OPEN_STATES,
    PAUSED,
    RUNNING,
    RewriteJob,
    RewriteProgress,
)

#: The name of the target that covers all accounts.
CLUSTER: Final = "CLUSTER"
#: The number of jobs that are kept after their end.
KEPT: Final = 200
#: The least limit of a job in objects per second.
_LEAST_OBJECTS: Final = 0.001
_MOST_OBJECTS: Final = 1e9
_NO_REWRITER: Final = "no rewriter works at it: does `sluice-rewriter` run on any node?"
#: Seconds for which a new job may be without a rewriter before it has a warning.
_PATIENCE: Final = 10.0


@dataclass(frozen=True, slots=True)
class RewriteView:
    """A job, its progress, the time of the read (Unix seconds), and the progress of accounts if it collects them."""

    job: RewriteJob
    progress: RewriteProgress
    now: float
    collection: AccountCollection | None = None

    @property
    def state(self) -> str:
        """One of ``sluice_rewrites.messages.STATES``."""
        return self.job.state

    @property
    def has_ended(self) -> bool:
        """Whether the job has ended."""
        return self.state not in OPEN_STATES

    @property
    def target(self) -> str:
        """``account[/container[/prefix]]``, or :data:`CLUSTER`."""
        return target_text(self.job)

    @property
    def accounts(self) -> int:
        """The number of accounts that it covers; 0 while that is not known."""
        return 1 if self.job.account else self.progress.accounts

    @property
    def estimated_end(self) -> float | None:
        """Unix seconds at which it ends at its present rate; None if that is not known."""
        done, total = self.progress.counts.seen, self.progress.objects
        if self.state != RUNNING or self.progress.listings or not done or not self.progress.started:
            return None
        worked = self.now - self.progress.started - self.progress.paused
        return self.now + worked * max(total / done - 1.0, 0.0)

    @property
    def warning(self) -> str:
        """Why the job makes no progress or why it failed; empty if it makes progress."""
        if self.state == FAILED:
            return self.progress.reason
        if self.collection is not None and not self.collection.is_complete:
            return self.collection.problem or self.collection.progress
        waits = self.state in (COLLECTING, RUNNING) and not self.progress.claimed
        return _NO_REWRITER if waits and self.now - self.job.created / 1000 > _PATIENCE else ""


def target_text(job: RewriteJob) -> str:
    """The target of a job as text."""
    parts = [job.account, job.container, job.prefix]
    return "/".join(parts[: 3 if job.prefix else 2 if job.container else 1]) or CLUSTER


def create(backend: Backend, data: Any, by: str, key: str = "") -> RewriteView:
    """Create a job, or find the one that the same request created before.

    :param key: the text that identifies this request; empty without one
    :raises CallerError: when the body or the target is not valid
    :raises Conflict: when a job for an overlapping target has not ended
    """
    body = Body(data, "target", "to", "max_bw", "max_objects_sec")
    account, container, prefix = _read_target(backend, body.text("target", longest=2048))
    max_bw = read_rate("max_bw", body.value("max_bw")) if body.has("max_bw") else 0.0
    has_rate = body.has("max_objects_sec")
    max_objects = body.number("max_objects_sec", 0.0, _LEAST_OBJECTS, _MOST_OBJECTS) if has_rate else 0.0
    goal = body.one_of("to", GOALS)
    head, created = backend.store.head(), int(backend.now() * 1000)
    job = RewriteJob(
        request_id(16, by, key, data) if key else new_job_id(created), account, container, prefix, goal,
        PAUSED, created, by, max_bw, max_objects, head.history, head.epoch, "" if account else new_request(),
    )  # fmt: skip
    known = list_jobs(backend)
    before = known.get(job.id)
    # A paused job may belong to an earlier attempt that was about to start it.
    if before is not None and before.state != PAUSED:
        return before
    _refuse_overlap(job, known)
    return _start(backend, job)


def _start(backend: Backend, job: RewriteJob) -> RewriteView:
    """Create ``job``, and remove those that ended longest ago.

    :raises Conflict: when an overlapping job was created just before
    """
    keys = backend.store.keys
    if job.request:
        backend.store.run(open_request(keys, job.request))
    if not backend.store.run(operations.create_job(keys, job)) and job.request:
        backend.store.run(close_request(keys, job.request))  # an earlier attempt has its own
    known = list_jobs(backend)
    written = known[job.id].progress.started if job.id in known else 0.0
    try:
        _refuse_overlap(job, {name: one for name, one in known.items() if one.progress.started <= written})
    except Conflict:
        backend.store.run(operations.change_state(keys, job.id, CANCELLED))
        backend.store.run(operations.delete_job(keys, job.id))
        raise
    ended = ((view.progress.ended, name) for name, view in known.items() if view.has_ended)
    for name in longest_ended(ended, KEPT - 1):
        backend.store.run(operations.delete_job(keys, name))
    return change(backend, job.id, RUNNING)


def _refuse_overlap(job: RewriteJob, known: Mapping[str, RewriteView]) -> None:
    for other in known.values():
        if other.job.id != job.id and not other.has_ended and _overlap(job, other.job):
            raise Conflict(
                f"rewrite `{other.job.id}` of `{other.target}` has not ended, which overlaps "
                f"`{target_text(job)}`; wait for it or cancel it"
            )


def list_jobs(backend: Backend) -> dict[str, RewriteView]:
    """Id → job, oldest first."""
    jobs = backend.store.run(operations.JOBS.read_all(backend.store.keys))
    return _views(backend, sorted(jobs.values(), key=lambda job: (job.created, job.id)))


def page_jobs(backend: Backend, limit: int, marker: str = "", state: str = "", target: str = "") -> Page[RewriteView]:
    """Jobs in the order of their creation, of one state and one target if given."""
    wanted = {
        f"{one.job.created:015d}-{name}": one
        for name, one in list_jobs(backend).items()
        if state in ("", one.state) and target in ("", one.target)
    }
    return entries.page(wanted, limit, marker)


def find(backend: Backend, job_id: str) -> RewriteView:
    """
    :raises NotFound: when there is no such job
    """
    job = backend.store.run(operations.JOBS.read(backend.store.keys, job_id))
    views = _views(backend, [job] if job else [])
    if not views:
        raise NotFound(f"there is no rewrite `{job_id}`")
    return views[job_id]


def change(backend: Backend, job_id: str, state: str) -> RewriteView:
    """Pause, resume or cancel a job.

    :raises NotFound: when there is no such job
    :raises Conflict: when it has ended
    """
    changed = backend.store.run(operations.change_state(backend.store.keys, job_id, state))
    view = find(backend, job_id)
    if changed is None:
        raise Conflict(f"rewrite `{job_id}` has ended, it is {view.state}")
    return view


def delete(backend: Backend, job_id: str) -> None:
    """Delete a job that has ended.

    :raises NotFound: when there is no such job
    :raises Conflict: when it has not ended
    """
    found = find(backend, job_id)
    if not found.has_ended:
        raise Conflict(f"rewrite `{job_id}` is {found.state}, cancel it first")
    backend.store.run(operations.delete_job(backend.store.keys, job_id))


def _views(backend: Backend, jobs: Sequence[RewriteJob]) -> dict[str, RewriteView]:
    """Id → job; one pipeline reads the progress of all of them."""
    parts = [operations.read_progress(backend.store.keys, job.id) for job in jobs]

    def parse(replies: list[Any]) -> list[RewriteProgress]:
        rest = iter(replies)
        return [one.parse(list(islice(rest, len(one.commands)))) for one in parts]

    commands = tuple(command for one in parts for command in one.commands)
    progress = backend.store.run(Operation(commands, parse)) if commands else []
    now = backend.now()
    # A job that was deleted between the two reads has no progress any more.
    return {
        job.id: RewriteView(job, one, now, _collection(backend, job))
        for job, one in zip(jobs, progress, strict=True)
        if one.started
    }


def _collection(backend: Backend, job: RewriteJob) -> AccountCollection | None:
    if job.state != COLLECTING:
        return None
    return backend.store.run(read_collection(backend.store.keys, job.request))


def _read_target(backend: Backend, text: str) -> tuple[str, str, str]:
    if text.strip().upper() == CLUSTER:
        return "", "", ""
    tenant, _, rest = text.partition("/")
    container, _, prefix = rest.partition("/")
    if not tenant or ("/" in text and not container):
        raise CallerError(f"`target` is `{text}`, expected tenant[/container[/prefix]] or {CLUSTER}")
    account = account_of(backend.native, tenant)
    if account.startswith("."):
        raise CallerError(f"`target`: account `{account}` is Swift's own, its objects stay as they are")
    return account, container, prefix


def _overlap(job: RewriteJob, other: RewriteJob) -> bool:
    if not job.account or not other.account or job.account != other.account:
        return not (job.account and other.account)
    if not job.container or not other.container or job.container != other.container:
        return not (job.container and other.container)
    return job.prefix.startswith(other.prefix) or other.prefix.startswith(job.prefix)
