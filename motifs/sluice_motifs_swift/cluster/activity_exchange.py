"""Sends the events of items to the other daemons, and applies theirs: opened, made, contracted, attached.

So each daemon knows all items, independent of the daemon that attached or contracted them, and another owner of a space
continues with the same order.  Messages sum up about two seconds; opens beyond a limit are left out.

Activities are in a capped stream in Redis.  Lost ones (of a daemon that could not read for too long) cost accuracy
until the next scan, but not correctness.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from sluice_core.errors import DecodeError, PeerError
from sluice_core.messages.base import Message
from sluice_core.store.change_stream import stream_fields
from sluice_core.store.keys import Keys
from sluice_core.store.operation import Operation, nothing
from sluice_core.store.store import Store
from sluice_motifs.items import ItemState, ItemTable

log = logging.getLogger(__name__)

#: The most entries of the stream, and names in one of them.
LENGTH: Final = 5000
MOST_NAMES: Final = 2000
#: The id before all entries.
FIRST: Final = "0-0"
#: The states of an item in a change.
GONE: Final = -1
CONTRACTED: Final = 0
EXPANDED: Final = 1
_FIELD: Final = b"activity"


@dataclass(frozen=True, slots=True)
class MotifActivity(Message):
    """The events of items in about two seconds.

    :param changed: name, plain bytes, and :data:`GONE`, :data:`CONTRACTED` or :data:`EXPANDED`
    :param opened: names, each as often as it was opened, in the order of the last open
    :param made: name, and seconds of its expansion
    """

    daemon: str
    changed: tuple[tuple[str, int, int], ...] = ()
    opened: tuple[tuple[str, int], ...] = ()
    made: tuple[tuple[str, float], ...] = ()


def add_activity(keys: Keys, activity: MotifActivity) -> Operation[None]:
    """Send an activity to the other daemons."""
    return Operation((("XADD", keys.motif_activity, "MAXLEN", "~", LENGTH, "*", _FIELD, activity.encode()),), nothing)


def last_activity(keys: Keys) -> Operation[str]:
    """The id of the newest entry."""

    def parse(replies: list[Any]) -> str:
        return replies[0][0][0].decode() if replies[0] else FIRST

    return Operation((("XREVRANGE", keys.motif_activity, "+", "-", "COUNT", 1),), parse)


def activity_after(keys: Keys, marker: str, most: int = 100) -> Operation[tuple[list[MotifActivity], str]]:
    """The activities behind ``marker``, and the id of the last one; those that cannot be decoded are left out."""

    def parse(replies: list[Any]) -> tuple[list[MotifActivity], str]:
        activities, last = [], marker
        for entry, fields in replies[0]:
            last = entry.decode()
            try:
                activities.append(MotifActivity.decode(stream_fields(fields)[_FIELD]))
            except (DecodeError, KeyError):  # of a newer daemon
                continue
        return activities, last

    return Operation((("XRANGE", keys.motif_activity, f"({marker}", "+", "COUNT", most),), parse)


PERIOD: Final = 2.0
#: The most names that wait to be sent.
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
        #: Set in the thread that applies received activities, which are not sent again.
        self._applying = threading.local()
        self._marker = ""
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="motif activity", daemon=True)

    def start(self) -> None:
        """Start to send and to receive."""
        self._items.watch(self)
        with self._mutex:
            self._changed.clear()  # the others know the present items, or scan for them
        self._thread.start()

    def stop(self) -> None:
        """Send the waiting events, and stop."""
        self._stopping.set()
        self._thread.join()

    # ItemWatcher: called in any thread

    def changed(self, slot: int, name: str, before: ItemState | None, after: ItemState | None) -> None:
        if self._is_remote():
            return
        state = (0, GONE) if after is None else (after.size, EXPANDED if after.expanded else CONTRACTED)
        with self._mutex:
            if len(self._changed) < _MOST_WAITING or name in self._changed:
                self._changed[name] = state

    def opened(self, slot: int, name: str) -> None:
        if self._is_remote():
            return
        with self._mutex:
            if len(self._opened) < _MOST_WAITING or name in self._opened:
                self._opened[name] = self._opened.pop(name, 0) + 1

    def made(self, slot: int, name: str, seconds: float) -> None:
        if not self._is_remote():
            with self._mutex:
                self._made[name] = seconds

    def scanned(self) -> None:
        """Do nothing: other daemons scan for themselves."""

    # In its own thread

    def step(self) -> None:
        """Send the waiting events, and apply received ones.

        :raises PeerError: when Redis is unreachable
        """
        keys = self._store.keys
        if not self._marker:
            self._marker = self._store.run(last_activity(keys)) or FIRST
        while (activity := self._next()) is not None:
            self._store.run(add_activity(keys, activity))
        while True:
            activities, marker = self._store.run(activity_after(keys, self._marker))
            if marker == self._marker:
                return
            self._marker = marker
            for one in activities:
                if one.daemon != self._daemon:
                    self._apply(one)

    def _run(self) -> None:
        while True:
            stopping = self._stopping.wait(PERIOD)
            try:
                self.step()
            except PeerError as error:
                log.warning("events are not sent to other motif daemons: %s", error)
            except Exception:  # a bug must not end the exchange
                log.exception("events are not sent to other motif daemons")
            if stopping:
                return

    def _next(self) -> MotifActivity | None:
        """A part of the waiting events; None without any."""
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

    def _apply(self, activity: MotifActivity) -> None:
        now = self._clock()
        self._applying.now = True
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
            self._applying.now = False

    def _is_remote(self) -> bool:
        return getattr(self._applying, "now", False)


def _pop(waiting: dict[str, Value]) -> list[tuple[str, Value]]:
    """The first of the waiting events, as many as one message holds."""
    names = list(waiting)[:MOST_NAMES]
    return [(name, waiting.pop(name)) for name in names]
