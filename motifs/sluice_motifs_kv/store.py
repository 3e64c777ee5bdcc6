"""LevelDB through plyvel, which only this module calls: metadata and bytes of keys, written together or not at all.

Each key has an entry of metadata, and its bytes under another prefix unless it is contracted.  Metadata are separate
from bytes so that versions are compared, and a database is scanned, without reading values.  Both are written in one
batch, so an item is whole or contracted, however the process ends.

LevelDB belongs to one process.  All writes hold one lock, under which a write can depend on the metadata
that its caller has read (:meth:`Store.swap`); metadata are unique, since each has a version of its own.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

import msgpack
import plyvel

from sluice_core.errors import CallerError, DecodeError, PeerError

#: Prefixes of keys in LevelDB: metadata by key, bytes by key.
METADATA: Final = b"m"
VALUES: Final = b"v"
#: The key of the upper bound of all assigned versions.
RESERVED_VERSIONS: Final = b"s"
#: Versions that are reserved at once, so that assigning one writes nothing; those of a killed process are skipped.
_RESERVED_AT_ONCE: Final = 1 << 20
_FORMAT: Final = 1


@dataclass(frozen=True, slots=True)
class Entry:
    """The metadata of one key.

    :param version: assigned once, for one write of a client or one new content made by a motif
    :param size: bytes of the value, whether it has them or not
    :param digest: SHA-256 of the value in hexadecimal, for values with motifs; else empty
    :param state: assigned for each write of a value with motifs, so that its metadata are unique
    :param contracted: whether it has no bytes
    :param record: the text of a ``Record``; empty for a value without motifs
    """

    version: int
    size: int
    digest: str = ""
    state: int = 0
    contracted: bool = False
    record: str = ""

    def encode(self) -> bytes:
        fields: list[Any] = [_FORMAT, self.version, self.size]
        if self.record:
            fields += [self.digest, self.state, self.contracted, self.record]
        packed: bytes = msgpack.packb(fields)
        return packed

    @classmethod
    def decode(cls, key: bytes, raw: bytes) -> Self:
        """
        :raises DecodeError: for metadata that this version does not know
        """
        try:
            fields = msgpack.unpackb(raw)
        except (ValueError, msgpack.UnpackException) as error:
            raise DecodeError(f"the metadata of key `{item_name(key)}` are damaged", raw) from error
        match fields:
            case [int(form), int(version), int(size)] if form == _FORMAT:
                return cls(version, size)
            case [int(form), int(version), int(size), str(digest), int(state), bool(contracted), str(record)] if (
                form == _FORMAT
            ):
                return cls(version, size, digest, state, contracted, record)
        raise DecodeError(f"the metadata of key `{item_name(key)}` are of another version, or damaged", raw)


def item_name(key: bytes) -> str:
    """The runtime's name of a key: its text, with bytes that are no UTF-8 as surrogates."""
    return key.decode("utf-8", "surrogateescape")


def item_key(name: str) -> bytes:
    """The key of an item.

    :raises CallerError: for a name that :func:`item_name` cannot return
    """
    try:
        return name.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise CallerError(f"`{name!a}` is the name of no key") from error


@dataclass(frozen=True, slots=True)
class Change:
    """The new state of one key.

    :param entry: its metadata; None deletes the key
    :param value: its bytes; None when it is deleted or contracted
    """

    key: bytes
    entry: Entry | None = None
    value: bytes | None = None


class Reader:
    """The present keys, or those of a snapshot.

    :param metadata: through which plyvel reads metadata: a part of the database, or of a snapshot
    :param values: the same for bytes
    """

    def __init__(self, path: Path, metadata: Any = None, values: Any = None) -> None:
        self._path = path
        self._metadata = metadata
        self._values = values

    def metadata(self, key: bytes) -> bytes | None:
        """Encoded metadata; None if the key does not exist.

        :raises PeerError: when LevelDB cannot read
        """
        return self._get(self._metadata, key)

    def value(self, key: bytes) -> bytes | None:
        """Bytes; None without bytes.

        :raises PeerError: when LevelDB cannot read
        """
        return self._get(self._values, key)

    def _get(self, part: Any, key: bytes) -> bytes | None:
        try:
            stored: bytes | None = part.get(key)
        except plyvel.Error as error:
            raise self._unreadable(error) from error
        return stored

    def scan(self) -> Iterator[tuple[bytes, bytes]]:
        """All keys with their encoded metadata."""
        try:
            yield from self._metadata.iterator(fill_cache=False)
        except plyvel.Error as error:
            raise self._unreadable(error) from error

    def _unreadable(self, error: plyvel.Error) -> PeerError:
        return PeerError(f"`{self._path}` cannot be read: {error}")


class Store(Reader):
    """One database.

    :param options: of ``plyvel.DB``
    :param committed: called with each change after it was written, in the order of the writes
    """

    def __init__(self, path: Path, options: Mapping[str, Any], committed: Callable[[Change], None]) -> None:
        super().__init__(path)
        self._options = {"create_if_missing": True, **options}
        self._committed = committed
        self._writing = threading.Lock()
        self._numbering = threading.Lock()
        self._next_version = 0
        self._reserved = 0

    def open(self) -> None:
        """
        :raises PeerError: when it cannot be opened, or another process has it
        """
        try:
            self._db = plyvel.DB(str(self._path), **self._options)
            self._next_version = self._reserved = int(self._db.get(RESERVED_VERSIONS) or b"1")
        except plyvel.Error as error:
            raise PeerError(f"`{self._path}` cannot be opened: {error}") from error
        self._metadata = self._db.prefixed_db(METADATA)
        self._values = self._db.prefixed_db(VALUES)

    def close(self) -> None:
        """Close the database; again without effect.  Iterators and snapshots end."""
        self._db.close()

    def snapshot(self) -> StoreSnapshot:
        """A snapshot of the present keys."""
        with self._writing:
            return StoreSnapshot(self._path, self._metadata.snapshot(), self._values.snapshot())

    def new_version(self) -> int:
        """A version that is greater than all assigned before, also by killed processes."""
        with self._numbering:
            if self._next_version >= self._reserved:
                self._reserved = self._next_version + _RESERVED_AT_ONCE
                batch = self._db.write_batch(sync=True)
                batch.put(RESERVED_VERSIONS, b"%d" % self._reserved)
                self._commit(batch)
            self._next_version += 1
            return self._next_version - 1

    def write(self, changes: Iterable[Change], sync: bool = False) -> None:
        """Make changes in their order, all or none.

        :param sync: return when they are on the disk; otherwise they survive a crash of the process, but not of the
            machine
        """
        with self._writing:
            self._write(changes, sync)

    def swap(self, change: Change, seen: bytes | None) -> bool:
        """Make a change if the key's encoded metadata are still ``seen``; return False when they are not."""
        with self._writing:
            if self.metadata(change.key) != seen:
                return False
            self._write([change], False)
            return True

    def _write(self, changes: Iterable[Change], sync: bool) -> None:
        made = list(changes)
        batch = self._db.write_batch(sync=sync)
        for change in made:
            if change.entry is None:
                batch.delete(METADATA + change.key)
            else:
                batch.put(METADATA + change.key, change.entry.encode())
            if change.value is None:
                batch.delete(VALUES + change.key)
            else:
                batch.put(VALUES + change.key, change.value)
        self._commit(batch)
        for change in made:
            self._committed(change)

    def _commit(self, batch: Any) -> None:
        try:
            batch.write()
        except plyvel.Error as error:
            raise PeerError(f"`{self._path}` cannot be written: {error}") from error


class StoreSnapshot(Reader):
    """All keys at one moment."""

    def keys(self, bounds: Mapping[str, Any]) -> Iterator[bytes]:
        """Keys in their order.

        :param bounds: of ``plyvel.DB.iterator``: which keys, and whether backwards
        :raises CallerError: when they contradict each other
        """
        try:
            keys: Iterator[bytes] = self._metadata.iterator(include_value=False, **bounds)
        except TypeError as error:
            raise CallerError(f"{error}".lower()) from error
        return self._checked(keys)

    def _checked(self, keys: Iterator[bytes]) -> Iterator[bytes]:
        try:
            yield from keys
        except plyvel.Error as error:
            raise self._unreadable(error) from error

    def close(self) -> None:
        """Release the snapshot, so that LevelDB can drop old data."""
        self._metadata.close()
        self._values.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
