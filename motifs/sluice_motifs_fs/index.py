"""Which files are items, and which are sources of items: what a mount must know at each request, in memory.

It is filled by a scan of the folder.  Dictionaries are read without a lock, at the price of a lookup a request.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Final

_NONE: Final[frozenset[str]] = frozenset()


class ItemIndex:
    """Items and sources by name; ``items`` has their inodes."""

    def __init__(self) -> None:
        self.items: dict[str, int] = {}
        self.sources: dict[str, set[str]] = {}
        self._read_by_item: dict[str, tuple[str, ...]] = {}
        self._mutex = threading.RLock()

    def watches(self, name: str) -> bool:
        """Whether a file is an item or a source."""
        return name in self.items or name in self.sources

    def put(self, name: str, inode: int, sources: Iterable[str]) -> None:
        """Note an item, and what its motifs read; who looks meanwhile sees it before or after."""
        with self._mutex:
            now = tuple(sources)
            before = self._read_by_item.get(name, ())
            for source in now:
                self.sources.setdefault(source, set()).add(name)
            self.items[name] = inode
            self._read_by_item[name] = now
            self._stop_reading(name, before, now)

    def remove(self, name: str) -> None:
        """It is no item any more."""
        with self._mutex:
            self.items.pop(name, None)
            self._stop_reading(name, self._read_by_item.pop(name, ()), ())

    def _stop_reading(self, name: str, before: Iterable[str], now: Iterable[str]) -> None:
        for source in set(before).difference(now):
            readers = self.sources.get(source, set())
            readers.discard(name)
            if not readers:
                self.sources.pop(source, None)

    def concerns(self, name: str, to: str) -> bool:
        """Whether items or sources are concerned when a file or a folder gets another name."""
        if not self.items:
            return False
        return self.watches(name) or self.watches(to) or bool(self.items_below(name) or self.sources_below(name))

    def readers(self, source: str) -> frozenset[str]:
        """The items that read a source."""
        with self._mutex:
            return frozenset(self.sources.get(source, _NONE))

    def sources_below(self, name: str) -> list[str]:
        """The sources that are a file, or lie in a folder."""
        with self._mutex:
            return [one for one in self.sources if one == name or one.startswith(f"{name}/")]

    def items_below(self, name: str) -> list[str]:
        """The items that are a file, or lie in a folder."""
        with self._mutex:
            return [one for one in self.items if one == name or one.startswith(f"{name}/")]
