"""Applies the change stream in Redis to the node's snapshot, and acknowledges each epoch.

Theory of operation:

* One task makes all changes to the snapshot and sends all reports, so reports keep their order.  A change costs two
  round trips: the answer of a blocking read, and the next read, which carries the acknowledgement of the change that
  was just applied.
* The history and epoch in the snapshot say where to continue, also after a restart.  When the stream was trimmed past
  that epoch, everything is loaded.
* Another history, a smaller epoch, or no history where there was one (Redis was wiped, or failed over) changes nothing:
  the node keeps its snapshot and reports ``stale_history`` until an operator adopts the new history.  The same holds
  for another change under the number of the node's present epoch (:mod:`sluice_core.store.history_check`); each read
  of changes checks for it in the same round trip.  With the option ``adopt = failover`` a node adopts its own history
  when that lost changes, and reports it; it never adopts another history without an operator.  A node without a
  snapshot adopts the history in Redis.
* While Redis is unreachable, the snapshot stays in force; the follower retries with growing, jittered pauses.
* When the snapshot cannot be written, it does the same and reports ``failed``.
* No node transforms objects on disks before all nodes with disks can: their reports are read every few seconds while
  such a policy is assigned.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import time
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from sluice_agent.metrics.worker_server import WorkerServer
from sluice_agent.settings import FAILOVER, Settings
from sluice_agent.snapshot.capabilities import Capabilities
from sluice_agent.snapshot.reporter import FAILED, OK, STALE, NodeReporter
from sluice_agent.snapshot.storage_daemons import READY
from sluice_core.errors import PeerError
from sluice_core.messages.nodes import NodeReport
from sluice_core.snapshot.reader import SnapshotError, SnapshotWriter
from sluice_core.store.history_check import HistoryCheck, change_digest
from sluice_core.store.records import Gap, Head, Replaced
from sluice_core.store.store import AsyncStore

log = logging.getLogger(__name__)

T = TypeVar("T")

_FIRST_PAUSE: Final = 0.05
_LONGEST_PAUSE: Final = 1.5
#: Milliseconds for which a read waits for a change; then the history is checked again.
_BLOCK_MS: Final = 1000
_READER_CHECK_SECONDS: Final = 60.0
#: Seconds within which the running workers connect to a new agent: they try once a second.
_CONNECT_SECONDS: Final = 1.5


@dataclass(eq=False)
class SnapshotFollower:
    """Keeps the snapshot of ``writer`` equal to ``store``."""

    settings: Settings
    store: AsyncStore
    writer: SnapshotWriter
    capabilities: Capabilities
    workers: WorkerServer | None
    reporter: NodeReporter

    def __post_init__(self) -> None:
        self.capabilities.unready_nodes = None
        self._node_read_due = 0.0
        self._workers_connected_by = time.monotonic() + _CONNECT_SECONDS
        self._known_adoption: Head | None = None  # None: not read yet
        self._history_check = HistoryCheck()
        self._reader_check = time.monotonic() + _READER_CHECK_SECONDS
        #: Whether a thread replaces the snapshot now: no other code may read it.
        self.is_loading = False
        self._recheck_needed = False

    async def run(self) -> None:
        """Follow until cancelled.

        :raises SnapshotError: at the start, when another agent uses the folder or it cannot be created
        """
        self._open()
        pause = _FIRST_PAUSE
        while True:
            try:
                await self._synchronize()
                pause = _FIRST_PAUSE
                continue
            except SnapshotError as error:
                self.reporter.set_state(FAILED, str(error))
                self._free_dead_readers()
                await self.reporter.try_to_send()
            except PeerError as error:
                log.warning("%s; again in %.2f s at most", error, pause)
            await asyncio.sleep(pause * random.uniform(0.5, 1.0))  # noqa: S311 -- jitter
            pause = min(pause * 2, _LONGEST_PAUSE)

    def recheck_assignments(self) -> None:
        """Decide again which assignments the node refuses, since its capabilities have changed."""
        if self.is_loading:
            self._recheck_needed = True
            return
        self._recheck_needed = False
        try:
            moved = self.writer.rejudge(self.capabilities.refuse)
        except SnapshotError as error:
            self._recheck_needed = True
            self.reporter.set_state(FAILED, str(error))
            return
        if moved:
            log.info("checked again: %d assignments moved, %d refused", moved, len(self.writer.refused))
            self.reporter.report_soon()

    def _open(self) -> None:
        position = self.writer.open()
        self._history_check.restart(position, self.writer.last_digest)
        if position.history:
            log.info("snapshot `%s` stands at epoch %d", self.writer.snapshot_id, position.epoch)
        else:
            log.warning("starting without a snapshot: %s", self.writer.problem)

    async def _synchronize(self) -> None:
        """Compare the snapshot with the store, then follow while the history is the node's and the store answers."""
        head, adopted = await self.store.head_and_adopted()
        position = self.writer.position
        if not position.history or not self.writer.snapshot_id:
            if head.history:
                await self._load()
        elif not (divergence := await self._divergence(position, head)):
            self._known_adoption = adopted
            if self.writer.incomplete:
                log.info("loading everything: the snapshot was written by an agent that kept less of the registry")
                await self._load()
        elif self._is_adopted(head, adopted):
            log.warning("adopting history `%s` at epoch %d", head.history, head.epoch)
            await self._load()
        elif self.settings.adopt == FAILOVER and head.history == position.history:
            log.warning("going along with a failover: %s", divergence)
            await self._load()
            self._known_adoption = adopted
            self.reporter.note_failover(divergence)
        else:
            if self._known_adoption is None:
                self._known_adoption = adopted
            self.reporter.set_state(STALE, divergence)
            await self._wait()
            return
        if not self.writer.position.history:
            await self.store.changes_after(0, _BLOCK_MS, 1, self._due_report())  # wakes at the first change
            return
        self.reporter.set_state(OK)
        await self._apply_changes()

    async def _divergence(self, position: Head, head: Head) -> str:
        """Return why the store's history is not the one of this node; empty when it is."""
        if head.history != position.history or head.epoch < position.epoch:
            return _describe_divergence(position, head)
        found = await self.store.run(change_digest(self.store.keys, position.epoch))
        if self._history_check.broken(position, found):
            return f"redis has another change {position.epoch} of history `{position.history}` than this node applied"
        return ""

    def _is_adopted(self, head: Head, adopted: Head) -> bool:
        """Return whether an operator adopted *this* change of the history.

        The adoption of another history is new by itself.  An adoption of the node's own history, which lost changes,
        could be an old one: it counts when it names the present epoch or has changed meanwhile.
        """
        if not head.history or adopted.history != head.history or adopted.epoch > head.epoch:
            return False
        if head.history != self.writer.position.history or adopted == head:
            return True
        return self._known_adoption is not None and adopted != self._known_adoption

    async def _apply_changes(self) -> None:
        """Apply changes as they arrive; return when none arrived, or one belongs to another history."""
        while True:
            await self._read_other_nodes()
            if self._recheck_needed:
                self.recheck_assignments()
            position = self.writer.position
            known = self._history_check.digest(position)
            changes = await self.store.changes_after(
                position.epoch, _BLOCK_MS, self.settings.batch, self._due_report(), known
            )
            if isinstance(changes, Replaced):
                return  # the next comparison finds and reports it
            if isinstance(changes, Gap):
                log.info("loading everything: %s", changes.reason)
                await self._load()
                return
            if not changes:
                return
            if any(change.history != position.history for change in changes):
                return
            self.writer.apply(changes, self.capabilities.refuse)
            self._history_check.follow(changes[-1])
            self.reporter.report_soon()

    async def _read_other_nodes(self) -> None:
        """Read which nodes cannot transform objects on disks yet, while a policy needs that."""
        now = time.monotonic()
        if not self.capabilities.needs_storage_state or now < self._node_read_due:
            return
        self._node_read_due = now + self.settings.report_interval
        unready = {
            report.node: report.storage
            for report in await self.store.nodes()
            if report.storage not in ("", READY) and report.node != self.settings.node
        }
        if unready != self.capabilities.unready_nodes:
            self.capabilities.unready_nodes = unready
            self._recheck_needed = True

    async def _load(self) -> None:
        """Load everything; wait for the workers when they must open a replaced snapshot."""
        loaded = await self.store.load()
        position = Head(loaded.history, loaded.epoch)
        self._history_check.restart(position, loaded.digest)
        self.is_loading = True
        try:
            replaced = await _finish(asyncio.to_thread(self.writer.reload, loaded, self.capabilities.refuse))
        finally:
            self.is_loading = False
        log.info("loaded %d assignments at epoch %d", self.writer.count, loaded.epoch)
        if self._recheck_needed:
            self.recheck_assignments()
        self.reporter.report_soon()
        self.reporter.set_late_workers([])
        if replaced and self.workers is not None:
            # before that, workers may not have connected again; a worker without a connection still reads the old
            # snapshot
            await asyncio.sleep(max(0.0, self._workers_connected_by - time.monotonic()))
            late = await self.workers.wait_until_reading(self.writer.snapshot_id, self.settings.replace_wait)
            self.reporter.set_late_workers(late)

    async def _wait(self) -> None:
        """Report, and pause: the node has no history to follow now."""
        self._free_dead_readers()
        await self.reporter.send_if_due()
        await asyncio.sleep(_BLOCK_MS / 1000 * random.uniform(0.5, 1.0))  # noqa: S311 -- jitter

    def _due_report(self) -> NodeReport | None:
        self._free_dead_readers()
        return self.reporter.due_report()

    def _free_dead_readers(self) -> None:
        now = time.monotonic()
        if now >= self._reader_check:
            self._reader_check = now + _READER_CHECK_SECONDS
            freed = self.writer.reader_check()
            if freed:
                log.info("freed the slots of %d killed readers", freed)


async def _finish(work: Coroutine[Any, Any, T]) -> T:
    """Return the result of a thread; when cancelled, wait for it first: it uses the snapshot, which must stay open."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        while not task.done():
            with contextlib.suppress(asyncio.CancelledError):  # cancelled again
                await asyncio.wait([task])
        raise


def _describe_divergence(position: Head, head: Head) -> str:
    ours = f"history `{position.history}` at epoch {position.epoch}"
    if not head.history:
        return f"redis has no history, this node has {ours}"
    return f"redis has history `{head.history}` at epoch {head.epoch}, this node has {ours}"
