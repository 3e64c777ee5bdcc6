"""Keeps spaces at their targets in the background, for daemons and mounts.

Theory of operation

* The events of the runtime's item table wait in a queue, in their order, for the one thread that uses the keeper.  A
  few other threads, whose number is the budget, run the jobs that it starts.
* All spaces are checked each second, and a space that has just grown above its target at once: otherwise it would
  exceed the target by the bytes of a second.
* Every daemon keeps the figures of all spaces, and one owns each space, by a lease.  Only the owner contracts and
  fills, so two daemons never work against each other, and another daemon takes over with the figures that it has.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

from sluice_core.errors import PeerError
from sluice_motif_control.messages import SpaceStatus
from sluice_motifs.items import ItemState
from sluice_motifs.runtime import Runtime
from sluice_motifs.space.jobs import Finished, JobThreads
from sluice_motifs.space.keeper import SpaceConfig, SpaceKeeper
from sluice_motifs.space.space_index import SpaceRules
from sluice_motifs.space.space_items import ABOVE, SUSPENDED, THRASHING, SpaceItems
from sluice_motifs.storage.leases import LASTS, release
from sluice_motifs.storage.shim import Lease, Leases

log = logging.getLogger(__name__)

#: Seconds between two checks of all spaces.
PERIOD: Final = 1.0
#: Seconds after which an unchanged state is reported again; below ``sluice_motif_control.spaces.LIFE``.
REPORT_AGAIN: Final = 5.0
#: States that more bytes do not change.
_STUCK: Final = (ABOVE, THRASHING, SUSPENDED)


class SpaceController:
    """The spaces of one process; implements ``ItemWatcher``.  :meth:`start` and :meth:`stop` it.

    :param owner: the name of the process
    """

    def __init__(
        self,
        runtime: Runtime,
        rules: SpaceRules,
        leases: Leases,
        owner: str,
        config: SpaceConfig | None = None,
    ) -> None:
        self._config = config = config or SpaceConfig()
        self._runtime = runtime
        self._leases = leases
        self._owner = owner
        self._events: queue.SimpleQueue[Callable[[], object]] = queue.SimpleQueue()
        self._threads = JobThreads(lambda finished: self._events.put(partial(self._finish, finished)))
        self._keeper = SpaceKeeper(runtime, rules, self._threads.run, config)
        #: Spaces to be checked once no event waits: many contractions end together.
        self._changed: dict[str, SpaceItems] = {}
        self._owned: dict[str, Lease] = {}
        #: When the lease of a space is to be renewed, or tried again.
        self._due: dict[str, float] = {}
        #: The state of each space that is owned here, at its last check.
        self.statuses: dict[str, SpaceStatus] = {}
        #: The last report without its time, and when to report it again.
        self._reported: list[SpaceStatus] = []
        self._report_due = 0.0
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="motif spaces", daemon=True)

    def start(self) -> None:
        """Begin to keep spaces."""
        self._runtime.items.watch(self)
        self._thread.start()

    def stop(self) -> None:
        """Wait for running jobs, and release the spaces."""
        self._stopping.set()
        self._events.put(lambda: None)
        self._thread.join()
        self._threads.stop()
        for lease in self._owned.values():
            release(self._leases, lease)

    def space_of(self, name: str) -> dict[str, Any]:
        """The state of an item's space; empty without one, or when another daemon owns it."""
        slot = self._runtime.items.slot(name)
        space = None if slot is None else self._keeper.space_of(slot)
        status = None if space is None else self.statuses.get(space.rule.path)
        if status is None:
            return {}
        names = ("path", "target", "used", "state", "reason")
        return {name: getattr(status, name) for name in names}

    # ItemWatcher: called in any thread

    def changed(self, slot: int, name: str, before: ItemState | None, after: ItemState | None) -> None:
        self._events.put(partial(self._change, slot, name, before, after))

    def opened(self, slot: int, name: str) -> None:
        self._events.put(partial(self._keeper.opened, slot, name))

    def made(self, slot: int, name: str, seconds: float) -> None:
        self._events.put(partial(self._keeper.made, slot, name, seconds))

    def scanned(self) -> None:
        self._events.put(self._keeper.scanned)

    def closed(self, name: str) -> None:
        """Handle the close of an item; may be called in any thread."""
        slot = self._runtime.items.slot(name)
        if slot is not None:
            self._events.put(partial(self._close, slot))

    # From here on: in the one thread

    def process_event(self, seconds: float) -> bool:
        """Process the next event; return False without one within this many seconds."""
        try:
            work = self._events.get(timeout=seconds) if seconds > 0 else self._events.get_nowait()
        except queue.Empty:
            return False
        work()
        if self._events.empty():
            changed, self._changed = self._changed, {}
            for space in changed.values():
                if space.owned:
                    self._keeper.keep(space)
        return True

    def step(self) -> None:
        """Read the policies, check all spaces, and report those that this daemon owns.

        :raises PeerError: when Redis is unreachable
        """
        self._keeper.update()
        statuses = {}
        for path, space in sorted(self._keeper.spaces.items()):
            space.owned = self._own(path)
            if space.owned:
                self._keeper.keep(space)
                statuses[path] = space.status(self._config.clock(), self._config.now(), self._owner)
        self.statuses = statuses
        for path in [path for path in self._due if path not in self._keeper.spaces]:
            del self._due[path]
            if path in self._owned:
                release(self._leases, self._owned.pop(path))
        self._report(list(statuses.values()))

    def _run(self) -> None:
        due = 0.0
        while not self._stopping.is_set():
            left = due - self._config.clock()
            if left > 0:
                self.process_event(left)
                continue
            due = self._config.clock() + PERIOD
            try:
                self.step()
            except PeerError as error:
                log.warning("spaces: %s", error)
            except Exception:  # a bug must not stop the thread
                log.exception("spaces are not kept for a moment")

    def _report(self, statuses: Sequence[SpaceStatus]) -> None:
        now = self._config.clock()
        undated = [replace(one, at=0.0) for one in statuses]
        if undated and (undated != self._reported or now >= self._report_due):
            self._config.report(statuses)
            self._reported, self._report_due = undated, now + REPORT_AGAIN

    def _own(self, path: str) -> bool:
        """Whether this daemon keeps a space."""
        now = self._config.clock()
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

    def _change(self, slot: int, name: str, before: ItemState | None, after: ItemState | None) -> None:
        self._keeper.changed(slot, name, before, after)
        space = self._keeper.space_of(slot)
        if space is not None and space.owned and space.above and space.state not in _STUCK:
            self._changed[space.rule.path] = space

    def _close(self, slot: int) -> None:
        self._keeper.unpark(slot)
        space = self._keeper.space_of(slot)
        if space is not None and space.owned and space.above:
            self._changed[space.rule.path] = space

    def _finish(self, finished: Finished) -> None:
        space = self._keeper.finish(finished)
        if space is not None and space.owned and not self._stopping.is_set():
            self._changed[space.rule.path] = space
