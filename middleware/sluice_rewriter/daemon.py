"""The loop of ``sluice-rewriter``: claims units of the jobs in Redis and processes them.

Theory of operation.  Any number of rewriters run, each with a Swift proxy application of its own, below gatekeeper and
authorization, and with the snapshot of its node's agent.  They coordinate through Redis alone.  A job waits until the
snapshot has the policies of the moment at which the job was created.  Without a snapshot no object is rewritten: a
missing snapshot does not mean that there are no policies.  A job for the cluster runs when all accounts are known,
which any rewriter checks (``sluice_rewrites.accounts``).

A rewriter processes one job for :data:`TURN` seconds and then the next, so that a job with a low rate limit, or
a large one, does not delay the others.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from sluice_core.errors import PeerError
from sluice_core.process.logs import log_fields, start_logging
from sluice_core.store.store import Store
from sluice_middleware.proxy.object_handler import ObjectHandler
from sluice_middleware.swift import green
from sluice_middleware.wsgi.internal_client import SwiftClient, load_app
from sluice_middleware.wsgi.response import App
from sluice_middleware.wsgi.worker_context import WorkerContext
from sluice_rewriter.object_rewriter import ObjectRewriter
from sluice_rewriter.settings import read_settings
from sluice_rewriter.unit_worker import Claim, UnitWorker
from sluice_rewrites import operations
from sluice_rewrites.accounts import read_collection
from sluice_rewrites.messages import COLLECTING, RUNNING, RewriteJob, RewriteUnit

log = logging.getLogger(__name__)

#: Seconds for which a rewriter processes one job.
TURN: Final = 10.0
#: Seconds between two searches for work.
_INTERVAL: Final = 0.5
#: Seconds between two checks whether all accounts are known.
_COLLECTING: Final = 2.0
#: The first and the longest pause after faults, seconds.
_FIRST_PAUSE: Final = 2.0
_LONGEST_PAUSE: Final = 30.0
#: Seconds of one wait for the rate, after which the job's state is checked.
_SLICE: Final = 1.0


@dataclass(eq=False)
class Rewriter:
    """:param app: Swift's proxy application without gatekeeper, authorization and Sluice
    :param concurrency: objects at a time
    """

    store: Store
    app: App
    context: WorkerContext
    concurrency: int
    stopped: bool = field(default=False, init=False)
    _pause: float = field(default=_FIRST_PAUSE, init=False)
    _waiting: str = field(default="", init=False)
    _collect_at: float = field(default=0.0, init=False)
    #: The job of the last unit.
    _last: tuple[int, str] = field(default=(0, ""), init=False)

    def run(self, on_ready: Callable[[], None] = lambda: None) -> None:
        """Process units until :meth:`stop`; unfinished units are released.

        :param on_ready: called whenever Redis was searched for work
        """
        self.context.start()
        while not self.stopped:
            with ExitStack() as working:  # what it fails by is logged with its id
                try:
                    busy = self._work_once(working)
                    on_ready()
                    self._pause = _FIRST_PAUSE
                except PeerError as error:
                    log.warning("%s; again in %.0f s", error, self._pause)
                    busy = self._wait_after_fault()
                except Exception:
                    log.exception("a bug; again in %.0f s", self._pause)
                    busy = self._wait_after_fault()
            if not busy:
                self._sleep(_INTERVAL)

    def _wait_after_fault(self) -> bool:
        self._sleep(self._pause)
        self._pause = min(self._pause * 2, _LONGEST_PAUSE)
        return False

    def stop(self, *_: Any) -> None:
        """Stop after the objects that are being rewritten; a signal handler may call it."""
        self.stopped = True

    def _work_once(self, working: ExitStack) -> bool:
        """Work at one unit; False when there is none.

        :param working: gets the log fields of its job
        :raises PeerError: when Swift or Redis is away
        """
        known = self.store.run(operations.JOBS.read_all(self.store.keys)).values()
        self._collect([job for job in known if job.state == COLLECTING])
        for job in in_turn((job for job in known if job.state == RUNNING), self._last):
            if not self._knows_policies_of(job):
                continue
            unit = self.store.run(operations.claim_unit(self.store.keys, job.id))
            if unit is not None:
                self._last = _age(job)
                working.enter_context(log_fields(rewrite=job.id))
                self._work(job, unit)
                return True
        return False

    def _collect(self, jobs: Sequence[RewriteJob]) -> None:
        """Start jobs whose accounts are all known, and end those whose accounts will not become known."""
        if not jobs or time.monotonic() < self._collect_at:
            return
        self._collect_at = time.monotonic() + _COLLECTING
        keys = self.store.keys
        for job in jobs:
            with log_fields(rewrite=job.id):
                collection = self.store.run(read_collection(keys, job.request))
                if collection.is_complete:
                    self.store.run(operations.begin_collected(keys, job, collection.accounts))
                elif collection.problem and self.store.run(operations.fail_collecting(keys, job, collection.problem)):
                    log.error("rewrite `%s` has failed: %s", job.id, collection.problem)

    def _work(self, job: RewriteJob, unit: RewriteUnit) -> None:
        end = time.monotonic() + TURN
        claim = Claim(self.store, unit, lambda: self.stopped or time.monotonic() >= end)
        handler = ObjectHandler(self.app, self.context.lookup, self.context.filters, log)
        rewriter = ObjectRewriter(handler, self._pace(job, claim))
        worker = UnitWorker(self.store, SwiftClient(self.app), rewriter.rewrite, self.concurrency)
        try:
            worker.work(job, claim)
        finally:
            claim.release()

    def _knows_policies_of(self, job: RewriteJob) -> bool:
        self.context.refresh()  # else a new job would wait for the next second
        position, problem = self.context.reader.position(), self.context.reader.problem
        reason = problem
        if not problem and job.history and (position.history != job.history or position.epoch < job.epoch):
            reason = f"rewrite `{job.id}` was ordered at epoch {job.epoch}, the snapshot stands at {position.epoch}"
        if reason != self._waiting:
            self._waiting = reason
            if reason:
                log.warning("no object is rewritten: %s", reason)
        return not reason

    def _pace(self, job: RewriteJob, claim: Claim) -> Callable[[int], bool]:
        """Wait before each object as the job's rates demand; return False when the job must not continue."""

        def wait(size: int) -> bool:
            cost = max(size / job.max_bw if job.max_bw else 0.0, 1 / job.max_objects if job.max_objects else 0.0)
            if not cost:
                return claim.is_active
            try:
                left = self.store.run(operations.reserve(self.store.keys, job.id, cost))
                while left > 0 and claim.is_active:
                    green.pause(min(left, _SLICE))
                    left -= _SLICE
                if not claim.is_active:  # else others would wait for a place that is not used
                    self.store.run(operations.reserve(self.store.keys, job.id, -cost))
            except PeerError as error:
                log.warning("rewrite `%s`: %s", job.id, error)
                return False
            return claim.is_active

        return wait

    def _sleep(self, seconds: float) -> None:
        while seconds > 0 and not self.stopped:
            green.pause(min(seconds, _SLICE))
            seconds -= _SLICE


def in_turn(jobs: Iterable[RewriteJob], last: tuple[int, str]) -> list[RewriteJob]:
    """``jobs``, oldest first, starting with those behind the job of age ``last``."""
    return sorted(jobs, key=lambda job: (_age(job) <= last, _age(job)))


def _age(job: RewriteJob) -> tuple[int, str]:
    return (job.created, job.id)


def make_rewriter(*paths: Path) -> Rewriter:
    """The rewriter that the configuration files describe.

    :raises OptionError: when one cannot be used
    """
    values = read_settings(*paths)
    start_logging(values["log_level"], values["log_format"])
    app = load_app(*paths)
    store = Store(values["redis_url"], values["redis_prefix"])
    context = WorkerContext(values, logging.getLogger("sluice"))
    return Rewriter(store, app, context, values["concurrency"])
