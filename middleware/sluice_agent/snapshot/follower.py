"""Follows Redis' change stream into the node's snapshot, and acknowledges.

Theory of operation:

* One task does everything that touches the snapshot and everything that is reported, so a report
  never overtakes another.  A change costs two round trips for all: the answer of a blocking read, and
  the next read, which carries the acknowledgement of what was just applied.
* The snapshot's own history and epoch say where to go on, also after a restart.  What was trimmed is
  loaded whole.
* Another history, a smaller epoch, or none where there was one (a wiped or failed-over Redis) changes
  nothing: the node goes on with what it has and reports ``stale_history``, until somebody adopts the new
  one.  So does another change under the number of the one that we stand at (``sluice_core.store.history_check``).
  With the option ``adopt = failover`` a node goes along by itself when its own history went back, and says
  so; never with another one.  A node without any snapshot takes what is there.
* Redis away: what is in the snapshot stays in force; we try again, with growing, jittered pauses.
* The snapshot cannot be written: the same, reported as ``failed``.
* No node asks for objects to be transformed on disks before all nodes that have some can: what they
  report is read now and then, while there is such a policy.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from sluice_agent.metrics.workers import Workers
from sluice_agent.settings import FAILOVER, Settings
from sluice_agent.snapshot.refusals import Capabilities
from sluice_agent.snapshot.storage_daemons import READY
from sluice_core.errors import PeerError
from sluice_core.messages.policies import NodeReport
from sluice_core.snapshot.reader import SnapshotError, SnapshotWriter
from sluice_core.store.history_check import HistoryCheck, made_at
from sluice_core.store.records import Gap, Head
from sluice_core.store.store import AsyncStore

log = logging.getLogger(__name__)

T = TypeVar("T")

OK: Final = "ok"
STALE: Final = "stale_history"
FAILED: Final = "failed"

_FIRST_PAUSE: Final = 0.05
_LONGEST_PAUSE: Final = 1.5
#: Milliseconds that a read waits for a change; then we look whether the history is still ours.
_BLOCK_MS: Final = 1000
_READER_CHECK: Final = 60.0
#: Seconds within which the workers that are there have come to a new agent: they look once a second.
_ALL_COME: Final = 1.5
_MOST_REFUSALS: Final = 100
#: Beside the snapshot, from one agent to the next.
_LINEAGE: Final = "lineage.json"
#: Seconds for which a node says that it went along with a failover.
_SAID_FOR: Final = 86_400.0


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a report says beside the snapshot: asked for each time."""

    workers: Callable[[], int] = lambda: 0
    dropped: Callable[[], int] = lambda: 0
    software: str = ""
    storage: Callable[[], str] = lambda: ""
    missing: Callable[[], Mapping[str, str]] = dict
    code: Callable[[], Mapping[str, int]] = dict
    sandbox: Callable[[], Mapping[str, str]] = dict


class Follower:
    """Keeps ``writer`` equal to what ``store`` says."""

    def __init__(
        self,
        settings: Settings,
        store: AsyncStore,
        writer: SnapshotWriter,
        capabilities: Capabilities,
        workers: Workers | None = None,
        surroundings: Surroundings | None = None,
    ) -> None:
        self._settings = settings
        self._store = store
        self._writer = writer
        self._capabilities = capabilities
        self._capabilities.others = None
        self._others_due = 0.0
        self._workers = workers
        self._surroundings = surroundings or Surroundings()
        self._started = time.time()
        self._all_come_by = time.monotonic() + _ALL_COME
        self._state = OK
        self._detail = ""
        self._slow = ""  # what an otherwise sound report should still say
        self._went_along = ("", 0.0)  # what was adopted unasked, and until when it is said
        self._known_adoption: Head | None = None  # None: not looked yet
        self._history_check = HistoryCheck()
        self._due = 0.0
        self._reader_check = time.monotonic() + _READER_CHECK
        self._loading = False
        self._judge_again = False

    async def run(self) -> None:
        """Follow until cancelled.

        :raises SnapshotError: at the start, when the folder is another agent's or cannot be made
        """
        self._open()
        try:
            await self._go_on()
        finally:
            try:
                self._history_check.save(self._writer.folder / _LINEAGE)
            except OSError as error:
                log.warning("a failover while this agent is away may go unnoticed: %s", error)

    async def _go_on(self) -> None:
        pause = _FIRST_PAUSE
        while True:
            try:
                await self._round()
                pause = _FIRST_PAUSE
                continue
            except SnapshotError as error:
                self._set(FAILED, str(error))
                await self._try_to_report()
            except PeerError as error:
                log.warning("%s; again in %.2f s at most", error, pause)
            await asyncio.sleep(pause * random.uniform(0.5, 1.0))  # noqa: S311 -- jitter
            pause = min(pause * 2, _LONGEST_PAUSE)

    @property
    def loading(self) -> bool:
        """Whether a thread replaces the snapshot now: nobody else may read it."""
        return self._loading

    def say_soon(self) -> None:
        """Something of the surroundings has changed that others want to know."""
        self._due = 0.0

    def judge_again(self) -> None:
        """What the workers can do has changed."""
        if self._loading:
            self._judge_again = True
            return
        self._judge_again = False
        try:
            moved = self._writer.rejudge(self._capabilities.refuse)
        except SnapshotError as error:
            self._judge_again = True
            self._set(FAILED, str(error))
            return
        if moved:
            log.info("judged again: %d assignments moved, %d refused", moved, len(self._writer.refused))
            self._due = 0.0

    def report(self) -> NodeReport:
        """What this node has to say now."""
        position = self._writer.position
        refused = [*sorted(self._surroundings.missing().items()), *sorted(self._writer.refused.items())]
        return NodeReport(
            self._settings.node,
            position.history,
            position.epoch,
            self._state,
            self._detail or self._slow or self._said_lately(),
            dict(refused[:_MOST_REFUSALS]),
            self._surroundings.workers(),
            self._writer.count,
            self._surroundings.dropped(),
            self._surroundings.software,
            self._started,
            time.time(),
            self._surroundings.storage(),
            dict(self._surroundings.code()),
            dict(self._surroundings.sandbox()),
        )

    # -- one thing after the other -----------------------------------------------------------

    def _open(self) -> None:
        position = self._writer.open()
        self._history_check.restore(self._writer.folder / _LINEAGE)
        if position.history:
            log.info("snapshot `%s` stands at epoch %d", self._writer.snapshot_id, position.epoch)
        else:
            log.warning("starting without a snapshot: %s", self._writer.problem)

    async def _round(self) -> None:
        """Look where Redis stands, then follow it while it is ours and answers."""
        head, adopted = await self._store.head_and_adopted()
        position = self._writer.position
        if not position.history or not self._writer.snapshot_id:
            if head.history:
                await self._load()
        elif not (wrong := await self._strayed(position, head)):
            self._known_adoption = adopted
            if self._writer.incomplete:
                log.info("loading everything: the snapshot was written by an agent that kept less of the registry")
                await self._load()
        elif self._is_adopted(head, adopted):
            log.warning("adopting history `%s` at epoch %d", head.history, head.epoch)
            await self._load()
        elif self._settings.adopt == FAILOVER and head.history == position.history:
            log.warning("going along with a failover: %s", wrong)
            await self._load()
            self._known_adoption = adopted
            self._went_along = (f"went along with a failover: {wrong}", time.monotonic() + _SAID_FOR)
        else:
            if self._known_adoption is None:
                self._known_adoption = adopted
            self._set(STALE, wrong)
            await self._wait()
            return
        if not self._writer.position.history:
            await self._store.changes_after(0, _BLOCK_MS, 1, self._report_if_due())  # wakes at the first change
            return
        self._set(OK)
        await self._follow()

    async def _strayed(self, position: Head, head: Head) -> str:
        """Why what Redis has is not what this node follows; empty when it is."""
        if head.history != position.history or head.epoch < position.epoch:
            return _what_is_wrong(position, head)
        made = await self._store.run(made_at(self._store.keys, position.epoch))
        if self._history_check.broken(position, made):
            return f"redis has another change {position.epoch} of history `{position.history}` than this node applied"
        return ""

    def _is_adopted(self, head: Head, adopted: Head) -> bool:
        """True when somebody said of *this* turn of history that it is to be taken.

        An adoption of another history is news by itself.  One of our own history, which went back,
        could be from before: it counts when it names the present epoch or has changed meanwhile.
        """
        if not head.history or adopted.history != head.history or adopted.epoch > head.epoch:
            return False
        if head.history != self._writer.position.history or adopted == head:
            return True
        return self._known_adoption is not None and adopted != self._known_adoption

    async def _follow(self) -> None:
        """Apply what comes; return when nothing came, or it is not ours."""
        while True:
            await self._look_at_others()
            if self._judge_again:
                self.judge_again()
            position = self._writer.position
            found = await self._store.changes_after(
                position.epoch, _BLOCK_MS, self._settings.batch, self._report_if_due()
            )
            if isinstance(found, Gap):
                log.info("loading everything: %s", found.reason)
                await self._load()
                return
            if not found:
                return
            if any(change.history != position.history for change in found):
                return
            self._writer.apply(found, self._capabilities.refuse)
            self._history_check.follow(found[-1])
            self._due = 0.0

    async def _look_at_others(self) -> None:
        """Hear which nodes cannot transform objects yet, as long as a policy wants that."""
        now = time.monotonic()
        if not self._capabilities.asked_for_storage or now < self._others_due:
            return
        self._others_due = now + self._settings.report_interval
        reports = await self._store.nodes()
        others = {
            one.node: one.storage
            for one in reports
            if one.storage not in ("", READY) and one.node != self._settings.node
        }
        if others != self._capabilities.others:
            self._capabilities.others = others
            self._judge_again = True

    async def _load(self) -> None:
        """Take everything anew; wait for the workers when they must open a new folder for it."""
        loaded = await self._store.load()
        position = Head(loaded.history, loaded.epoch)
        self._history_check.restart(position, await self._store.run(made_at(self._store.keys, loaded.epoch)))
        self._loading = True
        try:
            replaced = await _to_the_end(asyncio.to_thread(self._writer.reload, loaded, self._capabilities.refuse))
        finally:
            self._loading = False
        log.info("loaded %d assignments at epoch %d", self._writer.count, loaded.epoch)
        if self._judge_again:
            self.judge_again()
        self._due = 0.0
        self._slow = ""
        if replaced and self._workers is not None:
            # before that not all of them have come again, and one that has not still reads the old snapshot
            await asyncio.sleep(max(0.0, self._all_come_by - time.monotonic()))
            late = await self._workers.all_reading(self._writer.snapshot_id, self._settings.replace_wait)
            if late:
                self._slow = f"workers {', '.join(map(str, late))} do not read the replaced snapshot yet"
                log.warning("%s", self._slow)

    async def _wait(self) -> None:
        """Nothing to follow now; report, and look again in a while."""
        due = self._report_if_due()
        if due is not None:
            await self._store.report(due)
        await asyncio.sleep(_BLOCK_MS / 1000 * random.uniform(0.5, 1.0))  # noqa: S311 -- jitter

    # -- reports -----------------------------------------------------------------------------

    def _set(self, state: str, detail: str = "") -> None:
        if (state, detail) != (self._state, self._detail):
            log.log(logging.INFO if state == OK else logging.ERROR, "%s %s", state, detail)
            self._state, self._detail, self._due = state, detail, 0.0

    def _said_lately(self) -> str:
        text, until = self._went_along
        return text if time.monotonic() < until else ""

    def _report_if_due(self) -> NodeReport | None:
        now = time.monotonic()
        if now >= self._reader_check:
            self._reader_check = now + _READER_CHECK
            freed = self._writer.reader_check()
            if freed:
                log.info("freed the slots of %d killed readers", freed)
        if now < self._due:
            return None
        self._due = now + self._settings.report_interval
        if self._slow and self._workers is not None and not self._workers.others(self._writer.snapshot_id):
            self._slow = ""
        return self.report()

    async def _try_to_report(self) -> None:
        due = self._report_if_due()
        if due is None:
            return
        try:
            await self._store.report(due)
        except PeerError as error:
            self._due = 0.0
            log.warning("cannot report: %s", error)


async def _to_the_end(work: Coroutine[Any, Any, T]) -> T:
    """What a thread answers; when cancelled, first wait for it: the snapshot must not be closed under it."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise


def _what_is_wrong(position: Head, head: Head) -> str:
    ours = f"history `{position.history}` at epoch {position.epoch}"
    if not head.history:
        return f"redis has no history, this node has {ours}"
    return f"redis has history `{head.history}` at epoch {head.epoch}, this node has {ours}"
