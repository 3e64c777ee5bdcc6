"""The table of the runtime's items: a name has a slot, and columns of typed arrays hold its state.

Slots are small integers, which replacement policies and ledgers use, too; those of removed items are used again.
An item takes its name (49 bytes and its letters), 34 bytes of columns and some 100 bytes of the dictionary.

Opens are counted at once (*eager*), or noted and counted when the figures are read or too many are waiting (*lazy*):
then a reader saves a lookup, and the figures are the same.
"""

from __future__ import annotations

import heapq
import threading
from array import array
from dataclasses import dataclass
from typing import Final, Protocol

#: The most opens that wait to be counted in lazy mode.
_WAITING: Final = 4096


@dataclass(frozen=True, slots=True)
class ItemStatistics:
    """The statistics of an item.

    :param size: plain bytes
    :param opens: since the item is in the table
    :param last_open: seconds of the runtime's clock; 0 without an open
    :param expansion_seconds: the mean of its expansions, later ones with more weight; 0 without expansions
    """

    size: int
    expanded: bool
    opens: int
    last_open: float
    expansion_seconds: float


@dataclass(frozen=True, slots=True)
class ItemState:
    """:param size: plain bytes
    :param expanded: whether it has its bytes
    """

    size: int
    expanded: bool


class ItemWatcher(Protocol):
    """Is notified of each change of an item, in order; its methods must not block."""

    def changed(self, slot: int, name: str, before: ItemState | None, after: ItemState | None) -> None:
        """Handle a change: the item is new (``before`` is None), removed (``after`` is None), or has changed."""

    def opened(self, slot: int, name: str) -> None:
        """Handle an open of an item."""

    def made(self, slot: int, name: str, seconds: float) -> None:
        """Handle an expansion of an item that took this many seconds."""

    def scanned(self) -> None:
        """Handle the end of a scan: the watcher was notified of all existing items."""


class ItemTable:
    """Items by name and by slot; may be used in any thread."""

    def __init__(self, eager: bool = True) -> None:
        self._eager = eager
        self._mutex = threading.RLock()
        self._slots: dict[str, int] = {}
        self._names: list[str | None] = []
        self._free = array("I")
        self._sizes = array("q")
        self._opens = array("I")
        self._last_opens = array("d")
        self._seconds = array("f")
        self._expanded = bytearray()
        self._waiting: list[tuple[str, float]] = []
        self._watchers: list[ItemWatcher] = []
        self._seen = bytearray()
        #: Whether a scan has found all existing items.
        self.complete = False

    def __len__(self) -> int:
        return len(self._slots)

    def slot(self, name: str) -> int | None:
        """The slot of an item; None when the table does not have it."""
        return self._slots.get(name)

    def name(self, slot: int) -> str | None:
        """The item of a slot; None when it is free."""
        return self._names[slot] if 0 <= slot < len(self._names) else None

    def names(self, under: str = "", marker: str = "", limit: int | None = None) -> list[str]:
        """The names that begin with ``under`` behind ``marker``, in order, ``limit`` at most."""
        with self._mutex:
            known = list(self._slots)
        found = [name for name in known if name > marker and name.startswith(under)]
        return sorted(found) if limit is None else heapq.nsmallest(limit, found)

    def watch(self, watcher: ItemWatcher) -> None:
        """Notify a watcher of all items, and of each change from now on."""
        with self._mutex:
            self._watchers.append(watcher)
            for name, slot in self._slots.items():
                watcher.changed(slot, name, None, self._state(slot))
            if self.complete:
                watcher.scanned()

    def put(self, name: str, size: int, expanded: bool) -> int:
        """Set the state of an item; return its slot."""
        with self._mutex:
            slot = self._slots.get(name)
            before = None if slot is None else self._state(slot)
            if slot is None:
                slot = self._slots[name] = self._new_slot()
                self._names[slot] = name
            self._sizes[slot] = size
            self._expanded[slot] = expanded
            self._seen[slot] = 1
            after = self._state(slot)
            if before != after:
                self._notify_change(slot, name, before, after)
            return slot

    def remove(self, name: str) -> int | None:
        """Remove an item; return the slot that it had."""
        with self._mutex:
            slot = self._slots.pop(name, None)
            if slot is not None:
                self._notify_change(slot, name, self._state(slot), None)
                self._names[slot] = None
                self._free.append(slot)
            return slot

    def begin_scan(self) -> None:
        """Record from now on which items are put."""
        with self._mutex:
            self._seen = bytearray(len(self._names))

    def keep(self, name: str) -> None:
        """Keep an item unchanged that could not be viewed since the scan began."""
        with self._mutex:
            slot = self._slots.get(name)
            if slot is not None:
                self._seen[slot] = 1

    def finish_scan(self, complete: bool = True) -> None:
        """Remove the items that were not put since the scan began.

        :param complete: whether the scan has seen all existing items
        """
        with self._mutex:
            for name in [name for name, slot in self._slots.items() if not self._seen[slot]]:
                self.remove(name)
            self.complete = complete
            for watcher in self._watchers:
                watcher.scanned()

    def note_open(self, name: str, now: float) -> None:
        """Count an open of an item; unknown items are ignored."""
        with self._mutex:
            self._waiting.append((name, now))
            slot = self._slots.get(name) if self._watchers else None
            if slot is not None:
                for watcher in self._watchers:
                    watcher.opened(slot, name)
            if self._eager or len(self._waiting) >= _WAITING:
                self._count()

    def note_expansion(self, name: str, seconds: float) -> None:
        """Record an expansion of an item that took this many seconds."""
        with self._mutex:
            slot = self._slots.get(name)
            if slot is not None:
                before = self._seconds[slot]
                self._seconds[slot] = seconds if before == 0.0 else (before + seconds) / 2
                for watcher in self._watchers:
                    watcher.made(slot, name, seconds)

    def statistics(self, name: str) -> ItemStatistics | None:
        """The statistics of an item; None when the table does not have it."""
        with self._mutex:
            self._count()
            slot = self._slots.get(name)
            if slot is None:
                return None
            return ItemStatistics(
                self._sizes[slot],
                bool(self._expanded[slot]),
                self._opens[slot],
                self._last_opens[slot],
                self._seconds[slot],
            )

    def _count(self) -> None:
        for name, now in self._waiting:
            slot = self._slots.get(name)
            if slot is not None:
                self._opens[slot] = min(self._opens[slot] + 1, 0xFFFFFFFF)
                self._last_opens[slot] = now
        self._waiting.clear()

    def _notify_change(self, slot: int, name: str, before: ItemState | None, after: ItemState | None) -> None:
        for watcher in self._watchers:
            watcher.changed(slot, name, before, after)

    def _state(self, slot: int) -> ItemState:
        return ItemState(self._sizes[slot], bool(self._expanded[slot]))

    def _new_slot(self) -> int:
        if self._free:
            slot = self._free.pop()
            self._opens[slot], self._last_opens[slot], self._seconds[slot] = 0, 0.0, 0.0
            return slot
        self._names.append(None)
        self._sizes.append(0)
        self._opens.append(0)
        self._last_opens.append(0.0)
        self._seconds.append(0.0)
        self._expanded.append(0)
        self._seen.append(1)
        return len(self._names) - 1
