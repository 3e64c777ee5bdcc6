"""A node's store of whole objects: index, files and marks together, shared by its workers.

The store outlives its processes.  A worker that is killed during a write leaves at worst a file without an
entry, which the next worker that starts removes, or an entry without its file, which is a miss.  A full or
broken disk makes the store smaller; no request fails for it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from sluice_core.cache.write_marks import WriteMarks, timestamp_units
from sluice_core.errors import PeerError
from sluice_core.messages.predicate import Facts
from sluice_middleware.cache.files import CachedFile, DataFiles, pack_headers
from sluice_middleware.cache.index import LFU, LRU, IndexEntry, IndexTable, new_serial, open_table
from sluice_middleware.cache.sketch import CountMinSketch, open_sketch
from sluice_middleware.log import Logger
from sluice_middleware.wsgi.policy_lookup import download_facts

POLICIES: Final = (LRU, LFU)
#: Places in the index: one for this many bytes of the store, within bounds.
_BYTES_PER_PLACE: Final = 8 << 10
_FEWEST, _MOST = 1 << 12, 1 << 22
#: A worker recounts, and halves hits, after this many fillings, or after a fraction of the places if that is more.
_RECOUNT: Final = 1024
_RECOUNT_PART: Final = 16
#: Bytes of a file beside its body, approximately.
_OVERHEAD: Final = 1024
#: Seconds between two log lines of a worker about its disk.
_QUIET: Final = 60.0
#: Files without an entry are kept for this many seconds: a worker may still be writing them.
_GRACE: Final = 60.0


@dataclass(frozen=True, slots=True)
class MarkSnapshot:
    """The marks of an object before it was read from the disks."""

    token: int
    epoch: int


class CacheStore:
    """The parts, opened; see :func:`open_store`."""

    def __init__(
        self, marks: WriteMarks, table: IndexTable, files: DataFiles, sketch: CountMinSketch, limit: int, logger: Logger
    ) -> None:
        """
        :param marks: closed by the caller
        """
        self.marks = marks
        self.table = table
        self.files = files
        self.sketch = sketch
        self._limit = limit
        self._logger = logger
        self._fillings = 0
        self._quiet_until = 0.0

    def snapshot(self, key: bytes) -> MarkSnapshot:
        """The marks of the object; call it *before* the disks are read."""
        return MarkSnapshot(self.marks.token(key), self.marks.epoch)

    def unchanged(self, entry: IndexEntry) -> bool:
        """Whether no write to the object was seen since the last check with the disks, and none was missed."""
        token = self.marks.token(entry.key)
        return entry.token == token and not token & 1 and entry.epoch == self.marks.epoch

    def complete_facts(self, key: bytes, facts: Facts) -> Facts:
        """Add the size of the object's cached copy to ``facts``, and type and tags if the disks sent its headers."""
        entry = self.table.find(key)
        content = None if entry is None else self.files.open(key, entry.serial)
        if entry is None or content is None:
            return facts
        content.close()
        if not entry.checked:
            return replace(facts, size=content.length)
        return download_facts(facts.method, facts.name, list(content.headers.items()), content.length)

    def keep(
        self, key: bytes, snapshot: MarkSnapshot, headers: Mapping[str, str], body: Sequence[bytes], known: bool = True
    ) -> bool:
        """Store an object; return False when it is not worth its place, changed meanwhile or cannot be written.

        :param known: ``headers`` are those of a response; else they hold only the Etag, and the disks must send the
            rest
        """
        size = sum(map(len, body)) + _OVERHEAD
        if (known and self.snapshot(key) != snapshot) or not self._make_room(key, size):
            return False
        serial = new_serial()
        try:
            size = self.files.write(key, serial, headers, body)
        except OSError as error:
            self._complain("cannot store an object, removing others", error)
            self.shrink(max(size, self.table.used // 10))
            return False
        now = _now()
        hits = self.sketch.count(key) if self.table.by_hits else 0
        checked = now if known else 0
        self._enter(
            IndexEntry(key, snapshot.token, snapshot.epoch, serial, size, checked, expiry_time(headers), now, hits)
        )
        return True

    def confirm(
        self, entry: IndexEntry, content: CachedFile, snapshot: MarkSnapshot, headers: Mapping[str, str]
    ) -> None:
        """Record that the disks had this object at ``snapshot`` or later, with ``headers``."""
        serial = entry.serial
        size = entry.size
        if pack_headers(headers) != content.meta:
            try:
                if not self.files.rewrite_headers(entry.key, serial, content, headers):
                    serial = new_serial()
                    body = [b"".join(content.read(0, content.length))]
                    size = self.files.write(entry.key, serial, headers, body)
            except OSError as error:
                self._complain("cannot write headers anew", error)
                self.forget(entry)
                return
        self.table.put(
            entry._replace(
                token=snapshot.token,
                epoch=snapshot.epoch,
                serial=serial,
                size=size,
                checked=_now(),
                expires=expiry_time(headers),
                last=_now(),
            )
        )

    def forget(self, entry: IndexEntry) -> None:
        """Remove an object."""
        if self.table.drop(entry):
            self.files.remove(entry.key)

    def shrink(self, size: int) -> None:
        """Remove objects of ``size`` bytes in total, as far as there are any."""
        while size > 0:
            victim = self.table.victim()
            if victim is None:
                return
            self.forget(victim)
            self.table.count("evictions")
            size -= victim.size

    def sweep(self) -> None:
        """Remove files without an entry; one process at a time does it, others return at once."""
        with contextlib.suppress(OSError):
            descriptor = os.open(self.files.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                for path, key in self.files.walk():
                    if self.table.find(key) is None:
                        _remove_old(path)
                self.table.recount()
            finally:
                os.close(descriptor)

    def close(self) -> None:
        """Close all files."""
        self.table.close()
        self.sketch.close()

    def _complain(self, what: str, error: OSError) -> None:
        """Log the error, at most once in :data:`_QUIET` seconds."""
        now = time.monotonic()
        if now >= self._quiet_until:
            self._quiet_until = now + _QUIET
            self._logger.warning("sluice: cache: %s: %s", what, error)

    def _make_room(self, key: bytes, size: int) -> bool:
        if size > self._limit:
            return False
        asked = None
        while self.table.used + size > self._limit:
            victim = self.table.victim()
            if victim is None:
                self.table.recount()
                return self.table.used + size <= self._limit
            if self.table.by_hits:
                asked = self.sketch.count(key) if asked is None else asked
                if asked < victim.hits:
                    return False  # the victim has more hits
            self.forget(victim)
            self.table.count("evictions")
        return True

    def _enter(self, entry: IndexEntry) -> None:
        displaced = self.table.put(entry)
        if displaced is not None:
            self.files.remove(displaced.key)
            self.table.count("evictions")
        self.table.count("fills")
        self._fillings += 1
        if self._fillings % max(_RECOUNT, self.table.capacity // _RECOUNT_PART) == 0:
            self.table.recount()
            if self.table.by_hits:
                self.table.age()


def open_store(folder: Path, marks: WriteMarks, limit: int, policy: str, logger: Logger) -> CacheStore:
    """Open the store in ``folder``; create it if it is missing.

    :raises PeerError: when it can be neither opened nor created
    """
    try:
        objects = folder / "objects"
        objects.mkdir(exist_ok=True)
        places = min(_MOST, max(_FEWEST, limit // _BYTES_PER_PLACE))
        table = open_table(folder / "table", places, policy)
        sketch = open_sketch(folder / "sketch")
    except OSError as error:
        raise PeerError(f"no cache in `{folder}`: {error}") from error
    return CacheStore(marks, table, DataFiles(objects), sketch, limit, logger)


def expiry_time(headers: Mapping[str, str]) -> int:
    """The Unix second at which the object expires in Swift, 0 for never."""
    text = headers.get("X-Delete-At", "")
    return int(text) if text.isdecimal() else 0


def write_stamp(headers: Mapping[str, str]) -> int:
    """The stamp of the write that a response shows."""
    return timestamp_units(headers.get("X-Backend-Timestamp") or headers.get("X-Timestamp") or "")


def _now() -> int:
    return int(time.time())


def _remove_old(path: str) -> None:
    with contextlib.suppress(OSError):
        if os.stat(path).st_mtime < time.time() - _GRACE:
            os.unlink(path)
