"""Tells the other daemons what happened to items here, and takes in what they tell.

So each daemon knows all items, whoever attached or contracted them, and another owner of a space goes on with the same
order.  What is told is summed up for about two seconds; beyond a bound the opens of these are left out.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Final, TypeVar

from sluice_core.errors import PeerError
from sluice_core.store.store import Store
from sluice_motifs.items import ItemState, ItemTable
from sluice_motifs_swift.cluster.activity import (
    CONTRACTED,
    EXPANDED,
    FIRST,
    GONE,
    MOST_NAMES,
    MotifActivity,
    activity_after,
    last_activity,
    tell_activity,
)

log = logging.getLogger(__name__)

PERIOD: Final = 2.0
#: Names that may wait to be told.
_MOST_WAITING: Final = 100_000

Value = TypeVar("Value")


class ActivityExchange:
    """Implements ``ItemWatcher``; :meth:`start` and :meth:`stop` it.

    :param daemon: the name of this one
    :param clock: seconds, as of the runtime
    """

    def __init__(
        self, store: Store, items: ItemTable, daemon: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._store = store
        self._items = items
        self._daemon = daemon
        self._clock = clock
        self._mutex = threading.Lock()
        self._changed: dict[str, tuple[int, int]] = {}
        self._opened: dict[str, int] = {}
        self._made: dict[str, float] = {}
        #: Set in the thread that takes in what others tell, which is not told again.
        self._hearing = threading.local()
        self._marker = ""
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="motif activity", daemon=True)

    def start(self) -> None:
        """Begin to tell and to hear."""
        self._items.watch(self)
        with self._mutex:
            self._changed.clear()  # what there is already, the others know or find
        self._thread.start()

    def stop(self) -> None:
        """Tell what waits, and end."""
        self._stopping.set()
        self._thread.join()

    # ItemWatcher: called in any thread

    def changed(self, slot: int, name: str, before: ItemState | None, after: ItemState | None) -> None:
        if self._is_told_by_others():
            return
        state = (0, GONE) if after is None else (after.size, EXPANDED if after.expanded else CONTRACTED)
        with self._mutex:
            if len(self._changed) < _MOST_WAITING or name in self._changed:
                self._changed[name] = state

    def opened(self, slot: int, name: str) -> None:
        if self._is_told_by_others():
            return
        with self._mutex:
            if len(self._opened) < _MOST_WAITING or name in self._opened:
                self._opened[name] = self._opened.pop(name, 0) + 1

    def made(self, slot: int, name: str, seconds: float) -> None:
        if not self._is_told_by_others():
            with self._mutex:
                self._made[name] = seconds

    def scanned(self) -> None:
        """Others scan for themselves."""

    # In its own thread

    def step(self) -> None:
        """Tell what waits, and take in what others told.

        :raises PeerError: when Redis is away
        """
        keys = self._store.keys
        if not self._marker:
            self._marker = self._store.run(last_activity(keys)) or FIRST
        while (activity := self._next()) is not None:
            self._store.run(tell_activity(keys, activity))
        while True:
            found, marker = self._store.run(activity_after(keys, self._marker))
            if marker == self._marker:
                return
            self._marker = marker
            for one in found:
                if one.daemon != self._daemon:
                    self._take_in(one)

    def _run(self) -> None:
        while True:
            stopping = self._stopping.wait(PERIOD)
            try:
                self.step()
            except PeerError as error:
                log.warning("other daemons of motifs are not told: %s", error)
            except Exception:  # a fault must not end the exchange
                log.exception("other daemons of motifs are not told")
            if stopping:
                return

    def _next(self) -> MotifActivity | None:
        """A piece of what waits; None when nothing does."""
        with self._mutex:
            changed = _pop(self._changed)
            opened = _pop(self._opened)
            made = _pop(self._made)
        if not (changed or opened or made):
            return None
        return MotifActivity(
            self._daemon,
            tuple((name, size, state) for name, (size, state) in changed),
            tuple(opened),
            tuple(made),
        )

    def _take_in(self, activity: MotifActivity) -> None:
        now = self._clock()
        self._hearing.now = True
        try:
            for name, size, state in activity.changed:
                if state == GONE:
                    self._items.remove(name)
                else:
                    self._items.put(name, size, state == EXPANDED)
            for name, times in activity.opened:
                for _ in range(min(times, MOST_NAMES)):
                    self._items.note_open(name, now)
            for name, seconds in activity.made:
                self._items.note_expansion(name, seconds)
        finally:
            self._hearing.now = False

    def _is_told_by_others(self) -> bool:
        return getattr(self._hearing, "now", False)


def _pop(waiting: dict[str, Value]) -> list[tuple[str, Value]]:
    """The first of what waits, as many as one message holds."""
    names = list(waiting)[:MOST_NAMES]
    return [(name, waiting.pop(name)) for name in names]
