"""The shims between the motif runtime and LevelDB: of the present database, and of a snapshot.

A shim reads a key's metadata, then its bytes, then the metadata again: metadata are unique, so the bytes
belong to them if they have not changed. A motif's write is swapped against the metadata that it has read.
"""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

from sluice_core.errors import DecodeError, NotFound
from sluice_motifs.api import ExpansionError, SourceGone
from sluice_motifs.dependencies.freshness import Templates
from sluice_motifs.expansion.opening import ExpansionConfig, Opened
from sluice_motifs.runtime import Runtime
from sluice_motifs.storage.leases import LocalLeases
from sluice_motifs.storage.records import ItemView, Plain, Record
from sluice_motifs.storage.shim import NoCopies, Shim
from sluice_motifs_kv.store import Change, Entry, Reader, Store, item_key, item_name

log = logging.getLogger(__name__)

#: Seconds between two views of an item that another thread has leased.
RETRY_INTERVAL: Final = 0.002
_ALGORITHM: Final = "sha256"


class _Runtime(Runtime):
    def _note_expanded(self, view: ItemView) -> None:
        """Do nothing: the store reports each write, and bytes that were not stored need no report."""


class KeyValueShim(Shim):
    """The common part of both shims: all reads of ``Shim``, through the runtime of their items.

    Items are keys, by the names of ``entries``. There are no identities here: a process with the database may read all
    keys.
    """

    def __init__(self, reader: Reader, templates: Templates) -> None:
        self._reader = reader
        self._copies = NoCopies()
        config = ExpansionConfig(spawn=lambda work: work(), pause=lambda _: time.sleep(RETRY_INTERVAL))
        self.runtime = _Runtime(self, LocalLeases(), templates, eager=False, config=config)
        #: called with each item that was read, and whether it was contracted or stale
        self.note_read: Callable[[bool], None] = lambda made: None

    @property
    def copies(self) -> NoCopies:
        return self._copies

    def view(self, name: str) -> ItemView | None:
        key = item_key(name)
        raw = self._reader.metadata(key)
        return None if raw is None else _view(name, Entry.decode(key, raw), raw)

    def scan(self) -> Iterator[ItemView]:
        for key, raw in self._reader.scan():
            try:
                entry = Entry.decode(key, raw)
                if entry.record:
                    yield _view(item_name(key), entry, raw)
            except DecodeError as error:
                log.warning("%s", error)

    def read(self, name: str, reader: str, chain: tuple[str, ...], version: str = "") -> Iterator[bytes]:
        value = self.get(item_key(name), chain)
        if value is None:
            raise SourceGone(name)
        yield value

    def own_bytes(self, seen: ItemView) -> Iterator[bytes]:
        value = self.value(seen)
        if value is None:
            raise ExpansionError(f"`{seen.name}` is another one now")
        yield value

    def get(self, key: bytes, chain: tuple[str, ...] = ()) -> bytes | None:
        """The value of a key, made again if it is contracted or stale; None if the key does not exist.

        :raises ExpansionError: when it cannot be made
        """
        while True:
            raw = self._reader.metadata(key)
            if raw is None:
                return None
            if Entry.decode(key, raw).record:
                try:
                    value = self._read(self.runtime.notify_open(item_name(key), chain))
                except NotFound:
                    return None
            else:
                value = self._reader.value(key)
                if value is None and self._reader.metadata(key) == raw:
                    raise _missing(item_name(key))
            if value is not None:
                return value

    def _read(self, opened: Opened) -> bytes | None:
        """Read the bytes of an open item, and close it; return None when it was contracted or written meanwhile."""
        made = opened.expansion is not None
        try:
            value = b"".join(opened.read()) if made else self.value(opened.view)
        finally:
            self.runtime.notify_close(opened)
        if value is not None:
            self.note_read(made)
        return value

    def value(self, seen: ItemView) -> bytes | None:
        """The bytes of an item as it was viewed; None when it was contracted or written meanwhile.

        :raises ExpansionError: when its bytes are missing although it is not contracted
        """
        key = item_key(seen.name)
        value = self._reader.value(key)
        if self._reader.metadata(key) != seen.opaque:
            return None
        if value is None and not seen.contracted:
            raise _missing(seen.name)
        return value


class SnapshotShim(KeyValueShim):
    """Items as they were when a snapshot was taken.

    An item that is contracted in it is made from its sources in it, for each reader, and not stored.
    """

    def __init__(self, reader: Reader, templates: Templates) -> None:
        super().__init__(reader, templates)
        self._annotated: dict[str, ItemView] = {}

    def view(self, name: str) -> ItemView | None:
        return self._annotated.get(name) or super().view(name)

    def annotate(self, seen: ItemView, record: Record) -> bool:
        self._annotated[seen.name] = replace(seen, record=record)
        return True

    def contract(self, seen: ItemView, record: Record) -> bool:
        return False

    def expand(self, seen: ItemView, record: Record, pieces: Iterator[bytes]) -> bool:
        for _ in pieces:  # its readers get them from the shared stream
            pass
        return False

    def replace(self, seen: ItemView, record: Record, pieces: Iterator[bytes]) -> bool:
        return self.expand(seen, record, pieces)


class DatabaseShim(KeyValueShim):
    """Items of the present database.

    :param fits: whether this many bytes may be stored; others are made again for each reader
    """

    def __init__(self, store: Store, templates: Templates, fits: Callable[[int], bool]) -> None:
        super().__init__(store, templates)
        self._store = store
        self._fits = fits
        self._unlimited: set[str] = set()

    @contextmanager
    def unlimited(self, name: str) -> Iterator[None]:
        """Context in which the bytes that are made of an item are stored whatever their size."""
        self._unlimited.add(name)
        try:
            yield
        finally:
            self._unlimited.discard(name)

    def annotate(self, seen: ItemView, record: Record) -> bool:
        value = self.value(seen)
        if value is None and not seen.contracted:
            return False
        without_digest = value is not None and not seen.plain.digest  # the motif is its first one
        plain = plain_of(seen.plain.version, value) if value is not None and without_digest else seen.plain
        return self.swap(seen.name, seen, record, plain, value)

    def contract(self, seen: ItemView, record: Record) -> bool:
        return self.swap(seen.name, seen, record, seen.plain, None)

    def expand(self, seen: ItemView, record: Record, pieces: Iterator[bytes]) -> bool:
        value = b"".join(pieces)
        if self._is_kept(seen.name, value):
            return self.swap(seen.name, seen, record, seen.plain, value)
        return record != seen.record and self.swap(seen.name, seen, record, seen.plain, None)

    def replace(self, seen: ItemView, record: Record, pieces: Iterator[bytes]) -> bool:
        value = b"".join(pieces)
        plain = plain_of(str(self._store.new_version()), value)
        return self.swap(seen.name, seen, record, plain, value if self._is_kept(seen.name, value) else None)

    def swap(self, name: str, seen: ItemView | None, record: Record, plain: Plain, value: bytes | None) -> bool:
        """Replace ``seen``, None for a missing key, by an item; return False when the metadata have changed.

        :param value: its bytes; None contracts it
        :raises CallerError: when the record is longer than an item can hold
        """
        entry = Entry(int(plain.version), plain.size)
        if record.motifs:
            state = self._store.new_version()
            entry = Entry(entry.version, plain.size, plain.digest, state, value is None, record.encode())
        return self._store.swap(Change(item_key(name), entry, value), None if seen is None else seen.opaque)

    def _is_kept(self, name: str, value: bytes) -> bool:
        return name in self._unlimited or self._fits(len(value))


def _missing(name: str) -> ExpansionError:
    return ExpansionError(f"the bytes of `{name}` are missing from the database")


def plain_of(version: str, value: bytes) -> Plain:
    """A value with motifs as clients see it."""
    return Plain(version, len(value), hashlib.new(_ALGORITHM, value, usedforsecurity=False).hexdigest(), _ALGORITHM)


def _view(name: str, entry: Entry, raw: bytes) -> ItemView:
    record = Record.decode(entry.record) if entry.record else Record()
    plain = Plain(str(entry.version), entry.size, entry.digest, _ALGORITHM)
    return ItemView(name, plain, record, entry.contracted, opaque=raw)
