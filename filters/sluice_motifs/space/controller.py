"""Keeps spaces at their targets: contracts in the background, stops short of thrashing, fills spare space again.

Theory of operation

* The runtime's item table tells of each change and open; these wait in a queue, in their order, for the one thread that
  keeps all figures.  What this thread decides is done by a few others, whose number is the budget.
* Every daemon keeps the figures of all spaces, and one owns each space, by a lease.  Only the owner contracts and
  fills, so two never work against each other, and another one takes over with what it knows already.
* Nothing is filled before a scan (``Runtime.restart``) has found all items: a space that seems empty would be filled
  beyond its target.
* An item whose bytes must stay leaves the order for a while, so that it is not judged again each second.
* What a client or the API contracts is not filled again before somebody reads it.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from sluice_core.errors import PeerError
from sluice_core.motifs.messages import SpaceStatus
from sluice_motifs.expansion.observers import Tell
from sluice_motifs.items import ItemState
from sluice_motifs.runtime import Runtime
from sluice_motifs.space.jobs import Finished, Jobs
from sluice_motifs.space.keeper import SpaceKeeper
from sluice_motifs.space.space_index import SpaceIndex, SpaceRules
from sluice_motifs.storage.leases import LASTS, release
from sluice_motifs.storage.shim import Lease, Leases

log = logging.getLogger(__name__)

#: Seconds between two looks at all spaces.
PERIOD: Final = 1.0
#: Seconds after which it is reported again that nothing has changed; below ``sluice_core.motifs.spaces.LIFE``.
REPORT_AGAIN: Final = 5.0
#: Seconds within which an item that is read again was contracted too early, and the share of all seconds that such
#: reads may take.
WINDOW: Final = 300.0
SHARE: Final = 0.01


def _ignore(*args: object) -> None:
    """Tell nobody."""


@dataclass(frozen=True, slots=True)
class SpaceSurroundings:
    """What spaces are kept in.

    :param guard: why nothing may be contracted now; empty when it may
    :param report: takes the status of the spaces that are owned here; raises PeerError
    :param clock: seconds; never goes back
    :param now: unix seconds
    :param at_once: contractions and refills at a time
    :param window: seconds, and share of all seconds, that re-expansions may take: as of ``ThrashingGuard``
    """

    guard: Callable[[], str] = str
    report: Callable[[Sequence[SpaceStatus]], object] = _ignore
    tell: Tell = _ignore
    clock: Callable[[], float] = time.monotonic
    now: Callable[[], float] = time.time
    at_once: int = 8
    window: float = WINDOW
    share: float = SHARE


class SpaceController:
    """The spaces of one daemon; implements ``ItemWatcher``.  :meth:`start` and :meth:`stop` it.

    :param owner: the name of the daemon
    """

    def __init__(
        self,
        runtime: Runtime,
        rules: SpaceRules,
        leases: Leases,
        owner: str,
        around: SpaceSurroundings | None = None,
    ) -> None:
        self._around = around = around or SpaceSurroundings()
        self._runtime = runtime
        self._leases = leases
        self._owner = owner
        self._index = SpaceIndex(rules, runtime.items.name, around.window, around.share)
        self._told: queue.SimpleQueue[tuple[Any, ...]] = queue.SimpleQueue()
        self._jobs = Jobs(around.at_once, lambda finished: self._told.put((self._finish, finished)))
        self._keeper = SpaceKeeper(runtime, self._index, self._jobs, around.guard, around.tell, around.clock)
        self._owned: dict[str, Lease] = {}
        #: When the lease of a space is to be renewed, or asked for again.
        self._due: dict[str, float] = {}
        self._statuses: dict[str, SpaceStatus] = {}
        #: What was reported last, apart from the time, and when to report it again.
        self._reported: list[SpaceStatus] = []
        self._report_due = 0.0
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="motif spaces", daemon=True)

    def start(self) -> None:
        """Begin to keep spaces."""
        self._runtime.items.watch(self)
        self._thread.start()

    def stop(self) -> None:
        """Finish what is under way, and leave the spaces to others."""
        self._stopping.set()
        self._told.put((_ignore,))
        self._thread.join()
        self._jobs.stop()
        for lease in self._owned.values():
            release(self._leases, lease)

    def space_of(self, name: str) -> dict[str, Any]:
        """What is known of the space of an item; empty when it has none, or another daemon owns it."""
        slot = self._runtime.items.slot(name)
        place = None if slot is None else self._index.place(slot)
        status = None if place is None else self._statuses.get(place.space.rule.path)
        if status is None:
            return {}
        names = ("path", "target", "used", "state", "reason")
        return {name: getattr(status, name) for name in names}

    # ItemWatcher: called in any thread

    def changed(self, slot: int, name: str, before: ItemState | None, after: ItemState | None) -> None:
        self._told.put((self._change, slot, name, after))

    def opened(self, slot: int, name: str) -> None:
        self._told.put((self._open, slot))

    def made(self, slot: int, name: str, seconds: float) -> None:
        self._told.put((self._note_expansion, slot, name, seconds))

    def scanned(self) -> None:
        self._told.put((self._note_scan,))

    # From here on: in the one thread

    def hear(self, seconds: float) -> bool:
        """Take in the next thing that is told; False when there is none within so many seconds."""
        try:
            work, *arguments = self._told.get(timeout=seconds) if seconds > 0 else self._told.get_nowait()
        except queue.Empty:
            return False
        work(*arguments)
        return True

    def step(self) -> None:
        """Take in what policies say, look at all spaces, and report those that are owned here.

        :raises PeerError: when Redis is away
        """
        self._index.update(self._around.clock())
        self._keeper.unpark()
        statuses = {}
        for path, space in sorted(self._index.spaces.items()):
            if self._own(path):
                self._keeper.keep(space)
                statuses[path] = space.status(self._around.clock(), self._around.now(), self._owner)
        self._statuses = statuses
        for path in [path for path in self._due if path not in self._index.spaces]:
            del self._due[path]
            if path in self._owned:
                release(self._leases, self._owned.pop(path))
        self._report(list(statuses.values()))

    def _run(self) -> None:
        due = 0.0
        while not self._stopping.is_set():
            left = due - self._around.clock()
            if left > 0:
                self.hear(left)
                continue
            due = self._around.clock() + PERIOD
            try:
                self.step()
            except PeerError as error:
                log.warning("spaces: %s", error)
            except Exception:  # a fault must not end the keeping of all spaces
                log.exception("spaces are not kept for a moment")

    def _report(self, statuses: Sequence[SpaceStatus]) -> None:
        now = self._around.clock()
        found = [replace(one, at=0.0) for one in statuses]
        if found and (found != self._reported or now >= self._report_due):
            self._around.report(statuses)
            self._reported, self._report_due = found, now + REPORT_AGAIN

    def _own(self, path: str) -> bool:
        """Whether this daemon keeps a space."""
        now = self._around.clock()
        if now < self._due.get(path, now):
            return path in self._owned
        self._due[path] = now + LASTS / 4
        lease = self._owned.pop(path, None)
        try:
            if lease is None or not self._leases.renew(lease):
                lease = self._leases.acquire(f"space {path}")
        except PeerError as error:
            log.warning("space `%s` is not kept here: %s", path, error)
            return False
        if lease is not None:
            self._owned[path] = lease
        return lease is not None

    def _change(self, slot: int, name: str, after: ItemState | None) -> None:
        now = self._around.clock()
        job, before = self._jobs.find(slot), self._index.state(slot)
        self._index.change(slot, name, after, now, as_victim=job is not None and not job.fills)
        place = self._index.place(slot)
        if place is None or before is None or after is None or not before.expanded or after.expanded:
            return
        # what the owner did not choose was asked for, or is out of date: making it again is not for a target's sake
        if place.space.rule.path not in self._owned or (job is not None and not job.fills):
            place.space.thrashing.contracted(name, before.size, now)

    def _open(self, slot: int) -> None:
        place = self._index.place(slot)
        if place is not None:
            place.space.note_open(self._around.clock())
            place.part.open(self._index.number(slot))

    def _note_expansion(self, slot: int, name: str, seconds: float) -> None:
        job, place = self._jobs.find(slot), self._index.place(slot)
        if place is not None and (job is None or not job.fills):
            place.space.note_expansion(name, seconds, self._around.clock())

    def _finish(self, finished: Finished) -> None:
        space = self._keeper.finish(finished)
        if space is not None and space.rule.path in self._owned and not self._stopping.is_set():
            self._keeper.keep(space)

    def _note_scan(self) -> None:
        self._keeper.may_fill = True
