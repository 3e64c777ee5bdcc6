"""The index of a node's cache: a table in a file that all workers map into memory.

Theory of operation.  An entry is eight words in a bucket of eight entries, chosen by the object's
digest.  Workers write whole entries and may overwrite each other's.  That is harmless, since no entry is trusted
without confirmation: its *serial* is a random number that also stands in the data file, so an entry and a file of
different fillings never match; its *token* and *epoch* are compared with the node's marks, so an entry with the token
of another one is merely in doubt.

A worker that writes entries takes a lock, so that the bytes in use are counted right, but waits for it a
moment at most: a process that was stopped while it held the lock stops no other.  :meth:`IndexTable.recount` corrects
the count afterwards.
"""

from __future__ import annotations

import contextlib
import fcntl
import mmap
import os
import random
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from sluice_core.cache.mapped_file import map_file

LRU: Final = "lru"
LFU: Final = "lfu"

_WAYS: Final = 8
_ENTRY: Final = struct.Struct("<16sQQQQIIII")
_USE: Final = struct.Struct("<II")
_USE_AT: Final = 56
_WORD: Final = struct.Struct("<Q")
_HEADER: Final = 4096
_BUCKET: Final = _WAYS * _ENTRY.size
_MAGIC: Final = int.from_bytes(b"sluiTBL1", "little")
_NOBODY: Final = bytes(16)
_EMPTY: Final = bytes(_BUCKET)
#: The word of an entry that holds its size.
_SIZE_WORD: Final = 5
_USED_AT: Final = 8
#: Names of the counts, in the order in which they stand behind the bytes in use.
COUNTS: Final = ("hits", "misses", "fills", "evictions", "validations")
_COUNTS_AT: Final = 16
#: Entries of which the least worthy is removed, and buckets that are searched for that many.
_SAMPLE: Final = 16
_SEARCHED: Final = 64
#: After this many empty buckets the search ends: there is no entry to remove.
_FARTHEST: Final = 1 << 14
#: How often a worker tries to get the lock.
_PATIENCE: Final = 50


class IndexEntry(NamedTuple):
    """An object in the index.

    ``size`` is that of its file.  ``checked`` is the Unix second of the last check with the disks, 0 when its headers
    are not known yet; ``expires`` that of Swift's X-Delete-At, 0 for never.
    """

    key: bytes
    token: int
    epoch: int
    serial: int
    size: int
    checked: int
    expires: int
    last: int
    hits: int = 0
    at: int = 0


class IndexTable:
    """The mapped index; ``policy`` decides which entry is removed first."""

    def __init__(self, memory: mmap.mmap, policy: str, lock: int) -> None:
        """
        :param lock: a descriptor to lock, which :meth:`close` closes
        """
        self._memory = memory
        self._lock = lock
        self._buckets = (len(memory) - _HEADER) // _BUCKET
        #: Whether the entry with the fewest hits is removed first, rather than the least recently used one.
        self.by_hits = policy == LFU

    def find(self, key: bytes) -> IndexEntry | None:
        """The entry of the object, or None."""
        first = self._bucket(key)
        at: int = self._memory.find(key, first, first + _BUCKET)
        return self._entry(at) if at >= 0 and not (at - first) % _ENTRY.size else None

    def put(self, entry: IndexEntry) -> IndexEntry | None:
        """Write an entry (``at`` is set here); return the displaced entry if it was another object's, else None."""
        with self._locked():
            return self._put(entry)

    def _put(self, entry: IndexEntry) -> IndexEntry | None:
        first = self._bucket(entry.key)
        rest = [self._entry(at) for at in range(first, first + _BUCKET, _ENTRY.size)]
        mine = next((one for one in rest if one.key == entry.key), None)
        chosen = mine or next((one for one in rest if one.key == _NOBODY), None) or min(rest, key=self.worth)
        _ENTRY.pack_into(self._memory, chosen.at, *entry[:-1])
        self._add(_USED_AT, entry.size - (0 if chosen.key == _NOBODY else chosen.size))
        return chosen if chosen.key not in (entry.key, _NOBODY) else None

    def drop(self, entry: IndexEntry) -> bool:
        """Remove ``entry``; return False if another one is in its place."""
        with self._locked():
            if self._entry(entry.at)[:4] != entry[:4]:
                return False
            self._memory[entry.at : entry.at + _ENTRY.size] = bytes(_ENTRY.size)
            self._add(_USED_AT, -entry.size)
            return True

    def touch(self, entry: IndexEntry) -> None:
        """Count a hit of the entry."""
        _USE.pack_into(self._memory, entry.at + _USE_AT, int(time.time()), min(entry.hits + 1, 0xFFFFFFFF))
        self.count("hits")

    def count(self, name: str) -> None:
        """Increment ``name``, one of :data:`COUNTS`."""
        self._add(_COUNTS_AT + 8 * COUNTS.index(name), 1)

    def counts(self) -> dict[str, int]:
        """All counts, and ``used``, the bytes of all files."""
        words = struct.unpack_from(f"<{len(COUNTS)}Q", self._memory, _COUNTS_AT)
        return dict(zip(COUNTS, words, strict=True), used=self.used)

    @property
    def capacity(self) -> int:
        """The number of places for entries."""
        return self._buckets * _WAYS

    @property
    def used(self) -> int:
        """Bytes of all files, approximately."""
        found: int = _WORD.unpack_from(self._memory, _USED_AT)[0]
        return found

    def worth(self, entry: IndexEntry) -> tuple[int, int]:
        """The sort key of removal: the entry with the least key is removed first."""
        return (entry.hits, entry.last) if self.by_hits else (entry.last, entry.hits)

    def victim(self) -> IndexEntry | None:
        """The least worthy of a few random entries; None when the table seems to be empty."""
        start = random.randrange(self._buckets)  # noqa: S311 -- any will do
        entries: list[IndexEntry] = []
        for step in range(min(self._buckets, _FARTHEST)):
            first = _HEADER + (start + step) % self._buckets * _BUCKET
            if self._memory[first : first + _BUCKET] == _EMPTY:
                continue
            entries += [
                one for one in map(self._entry, range(first, first + _BUCKET, _ENTRY.size)) if one.key != _NOBODY
            ]
            if len(entries) >= _SAMPLE or (entries and step + 1 >= _SEARCHED):
                break
        return min(entries, key=self.worth, default=None)

    def age(self) -> None:
        """Halve all hits, so that formerly popular objects can be removed."""
        for one in self.entries():
            if one.hits:
                _USE.pack_into(self._memory, one.at + _USE_AT, one.last, one.hits // 2)

    def recount(self) -> None:
        """Recompute the bytes in use from all entries."""
        with self._locked(), memoryview(self._memory) as whole, whole[_HEADER:] as rest, rest.cast("Q") as words:
            _WORD.pack_into(self._memory, _USED_AT, sum(words[_SIZE_WORD :: _ENTRY.size // _WORD.size]))

    def entries(self) -> Iterator[IndexEntry]:
        """Yield all entries, in no order."""
        for at in range(_HEADER, _HEADER + self._buckets * _BUCKET, _ENTRY.size):
            if self._memory[at : at + 16] != _NOBODY:
                yield self._entry(at)

    def close(self) -> None:
        """Close the file."""
        self._memory.close()
        os.close(self._lock)

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        held = False
        for _ in range(_PATIENCE):
            with contextlib.suppress(OSError):
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                held = True
                break
            os.sched_yield()
        try:
            yield
        finally:
            if held:
                fcntl.flock(self._lock, fcntl.LOCK_UN)

    def _bucket(self, key: bytes) -> int:
        return _HEADER + int.from_bytes(key[:8], "little") % self._buckets * _BUCKET

    def _entry(self, at: int) -> IndexEntry:
        return IndexEntry._make((*_ENTRY.unpack_from(self._memory, at), at))

    def _add(self, at: int, number: int) -> None:
        before = _WORD.unpack_from(self._memory, at)[0]
        _WORD.pack_into(self._memory, at, max(0, before + number))


def open_table(path: Path, places: int, policy: str) -> IndexTable:
    """Open the table at ``path`` with at least this many places; a table of another size is created again, empty.

    :raises OSError: when the disk has no room for it, or permission is missing
    """
    buckets = 1
    while buckets * _WAYS < places:
        buckets *= 2
    memory = map_file(path, _HEADER + buckets * _BUCKET, _MAGIC)
    return IndexTable(memory, policy, os.open(path, os.O_RDONLY | os.O_CLOEXEC))


def new_serial() -> int:
    """A random number that no other filling has."""
    return int.from_bytes(os.urandom(8), "little") | 1
