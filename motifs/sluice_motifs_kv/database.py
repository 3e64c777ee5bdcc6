"""LevelDB with elastic values: the interface of ``plyvel.DB``, and motifs.

    with Database("graph", templates=[ShortestPaths], limit=10 << 20) as database:
        database.put(b"edges", edges)
        paths = database.get_or_make(b"paths from 7", Motif("shortest_paths", {"vertex": 7}))

A value with a motif counts against the limit, and may be contracted; its bytes are made when it is read.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypedDict, Unpack

from sluice_core.errors import CallerError, Conflict, NotFound
from sluice_motifs.api import Template
from sluice_motifs.contraction.preparation import HEAD
from sluice_motifs.dependencies.freshness import Freshness, Templates, find_template, internal_sources
from sluice_motifs.expansion.calls import Call, pieces_of
from sluice_motifs.space.one_space import OneSpace
from sluice_motifs.storage.records import ItemView, Motif, Plain, Record
from sluice_motifs.storage.shim import find_item
from sluice_motifs_kv.elasticity import Elasticity, SpaceStatistics
from sluice_motifs_kv.shim import RETRY_INTERVAL, DatabaseShim, SnapshotShim, plain_of
from sluice_motifs_kv.store import Change, Entry, Store, StoreSnapshot, item_name

#: A key with its value; None deletes it.
Write = tuple[bytes, bytes | None]


class Bounds(TypedDict, total=False):
    """The keys that an iterator yields, as of ``plyvel.DB.iterator``: with a prefix, or from ``start`` to ``stop``."""

    start: bytes | None
    stop: bytes | None
    include_start: bool
    include_stop: bool
    prefix: bytes | None
    reverse: bool


class Snapshot:
    """Reads a database as it was, contracted values included; close it, so that LevelDB can drop old data.

    A value that was contracted then is made from its sources as they were then. It is not stored, and no policy
    counts it.
    """

    def __init__(self, reader: StoreSnapshot, templates: Templates) -> None:
        self._reader = reader
        self._shim = SnapshotShim(reader, templates)

    def get(self, key: bytes, default: Any = None) -> Any:
        """The value of a key, else ``default``.

        :raises ExpansionError: when its bytes cannot be made
        """
        value = self._shim.get(key)
        return default if value is None else value

    def iterator(
        self, *, include_key: bool = True, include_value: bool = True, **bounds: Unpack[Bounds]
    ) -> Iterator[Any]:
        """Pairs of keys and values in the order of the keys, or only one of both.

        :raises CallerError: when the bounds contradict each other
        :raises ExpansionError: when the bytes of a value cannot be made
        """
        keys = self._held(self._reader.keys(bounds))
        if not include_value:
            return keys if include_key else (None for _ in keys)
        pairs = ((key, self._shim.get(key)) for key in keys)
        return pairs if include_key else (value for _, value in pairs)

    def __iter__(self) -> Iterator[tuple[bytes, bytes]]:
        return self.iterator()

    def close(self) -> None:
        """Close the snapshot."""
        self._reader.close()

    def __del__(self) -> None:
        # A shim and its runtime refer to each other.  If the garbage collector clears such a cycle with an open plyvel
        # snapshot, the snapshot uses a database that is cleared already, and crashes (plyvel 1.5.1, Python 3.13).
        self.close()

    def _held(self, keys: Iterator[bytes]) -> Iterator[bytes]:
        """``keys``, with a reference that keeps the snapshot open."""
        yield from keys

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class WriteBatch:
    """Collects writes that are made together or not at all; as a context manager it makes them at its end.

    :param transaction: as a context manager make no write when an exception ends it
    """

    def __init__(self, write: Callable[[Sequence[Write]], None], transaction: bool) -> None:
        self._write = write
        self._transaction = transaction
        self._writes: list[Write] = []

    def put(self, key: bytes, value: bytes) -> None:
        """Write a value."""
        self._writes.append((key, value))

    def delete(self, key: bytes) -> None:
        """Delete a key, if it exists."""
        self._writes.append((key, None))

    def clear(self) -> None:
        """Drop the collected writes."""
        self._writes.clear()

    def write(self) -> None:
        """Make the writes in their order, and start a new collection."""
        self._write(self._writes)
        self.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None or not self._transaction:
            self.write()


class Database:
    """One database; :meth:`open` and :meth:`close` it. All other methods may be called from any thread.

    :param templates: classes that motifs may name
    :param limit: bytes of values with motifs; None for no limit
    :param policy: keyword of the replacement policy that chooses the values to contract
    :param options: of ``plyvel.DB``; a database that is missing is created
    :raises CallerError: for a duplicate or unknown keyword, or a negative limit
    """

    def __init__(
        self,
        path: Path | str,
        templates: Sequence[type[Template]] = (),
        limit: int | None = None,
        policy: str = "lru",
        **options: Any,
    ) -> None:
        self._templates = _by_keyword(templates)
        space = OneSpace(limit, policy)
        self._fits = space.fits
        self._store = Store(Path(path), options, self._committed)
        self._shim = DatabaseShim(self._store, self._templates, space.fits)
        self._runtime = self._shim.runtime
        self._elasticity = Elasticity(space, self._runtime)
        self._shim.note_read = self._elasticity.note_read

    def open(self) -> Self:
        """
        :raises PeerError: when it cannot be opened, or another process has it
        """
        self._store.open()
        self._runtime.restart()
        self._elasticity.start()
        return self

    def close(self) -> None:
        """Wait for the running background expansion, and let other processes open the database."""
        self._elasticity.stop()
        self._store.close()

    def get(self, key: bytes, default: Any = None) -> Any:
        """The value of a key, made again if it is contracted or stale; else ``default``.

        :raises ExpansionError: when its bytes cannot be made
        :raises PeerError: when the database cannot be read, or the key's metadata are damaged
        """
        value = self._shim.get(key)
        self._elasticity.enforce()
        return default if value is None else value

    def put(self, key: bytes, value: bytes, sync: bool = False) -> None:
        """Write a value; motifs of the previous one are detached.

        :param sync: return when it is on the disk; otherwise it survives a crash of the process, but not of the machine
        """
        self._write([(key, value)], sync)

    def delete(self, key: bytes, sync: bool = False) -> None:
        """Delete a key with its motifs, if it exists."""
        self._write([(key, None)], sync)

    def write_batch(self, transaction: bool = False, sync: bool = False) -> WriteBatch:
        """Writes that are made together; ``transaction``: none of them when an exception ends the ``with`` block."""
        return WriteBatch(lambda writes: self._write(writes, sync), transaction)

    def snapshot(self) -> Snapshot:
        """The database as it is now, unaffected by later writes and contractions."""
        return Snapshot(self._store.snapshot(), self._templates)

    def iterator(
        self, *, include_key: bool = True, include_value: bool = True, **bounds: Unpack[Bounds]
    ) -> Iterator[Any]:
        """As :meth:`Snapshot.iterator` of a snapshot that is taken now."""
        return self.snapshot().iterator(include_key=include_key, include_value=include_value, **bounds)

    def __iter__(self) -> Iterator[tuple[bytes, bytes]]:
        return self.iterator()

    def get_or_make(self, key: bytes, motif: Motif) -> bytes:
        """The value of a key; a missing one is made by the motif, which is attached to it.

        :raises NotFound: when the template is not installed
        :raises ExpansionError: when the value cannot be made
        """
        while (value := self._shim.get(key)) is None:
            value = self._make(item_name(key), motif)
            if value is not None:
                self._elasticity.note_read(made=True)
                break
        self._elasticity.enforce()
        return value

    def attach(self, key: bytes, motif: Motif) -> None:
        """Attach a motif to a value, which from now on counts as made from the present versions of its sources.

        :raises NotFound: when template, key or source does not exist
        :raises CallerError: when the value has the motif already, or more motifs than a value holds
        """
        find_template(motif.template, self._templates)(motif.params).check()
        _repeated(lambda: self._runtime.attach_motif(item_name(key), motif))
        self._elasticity.enforce()

    def detach(self, key: bytes, template: str) -> None:
        """Detach the motifs of a template from a value, after making the bytes of a contracted one.

        :raises NotFound: when the key does not exist, or has no such motif
        :raises ExpansionError: when its bytes cannot be made
        """
        name = item_name(key)
        motifs = [one for one in self.motifs(key) if one.template == template]
        if not motifs:
            raise NotFound(f"key `{name}` has no motif of template `{template}`")
        with self._shim.unlimited(name):
            self._shim.get(key)  # a stale value is made again
            for motif in motifs:
                _repeated(partial(self._runtime.detach_motif, name, motif))
        self._elasticity.enforce()

    def contract(self, key: bytes, verify: str = HEAD) -> str:
        """Contract a value with motifs, whatever the limit; return the outcome.

        :param verify: what is verified before, as of ``Contractor.contract``
        :raises NotFound: when the key does not exist
        :raises NotContractible: when it must not be contracted; says why
        """
        return self._elasticity.contract(item_name(key), verify)

    def motifs(self, key: bytes) -> Sequence[Motif]:
        """The motifs of a value.

        :raises NotFound: when the key does not exist
        """
        return find_item(self._shim, item_name(key), "key").record.motifs

    def contracted(self, key: bytes) -> bool:
        """Whether a value is contracted.

        :raises NotFound: when the key does not exist
        """
        return find_item(self._shim, item_name(key), "key").contracted

    def set_limit(self, limit: int | None) -> None:
        """Set a new limit; contract values, or make some in the background, until it fits.

        :raises CallerError: for a negative limit
        """
        self._elasticity.set_limit(limit)

    def statistics(self) -> SpaceStatistics:
        """The space that values with motifs take, and the cost of reading them."""
        return self._elasticity.statistics()

    def __enter__(self) -> Self:
        return self.open()

    def __exit__(self, *_: object) -> None:
        self.close()

    def _committed(self, change: Change) -> None:
        name, entry = item_name(change.key), change.entry
        if entry is not None and entry.record:
            self._runtime.items.put(name, entry.size, not entry.contracted)
        else:
            self._runtime.notify_delete(name)

    def _write(self, writes: Sequence[Write], sync: bool) -> None:
        entries = (None if value is None else Entry(self._store.new_version(), len(value)) for _, value in writes)
        self._store.write(
            [Change(key, entry, value) for (key, value), entry in zip(writes, entries, strict=True)], sync
        )

    def _make(self, name: str, motif: Motif) -> bytes | None:
        """Make a value that does not exist; return None when it was written meanwhile."""
        template = find_template(motif.template, self._templates)(motif.params)
        template.check()
        new = ItemView(name, Plain(str(self._store.new_version()), 0, ""), Record((motif,)))
        for source in internal_sources(motif, name, self._templates):
            for _ in self._shim.read(source, motif.identity, (name,)):  # a stale one gets its version
                pass
        made_from = Freshness(self._shim, self._templates).check_sources(new).versions
        value = b"".join(pieces_of(template, Call(self._shim, new, template, motif, ()), motif))
        kept = value if self._fits(len(value)) else None
        plain = plain_of(new.plain.version, value)
        record = Record((replace(motif, proven=True),), made_from)
        return value if self._shim.swap(name, None, record, plain, kept) else None


def _repeated(work: Callable[[], None]) -> None:
    """Repeat ``work`` until no other thread has the lease of the value."""
    while True:
        try:
            return work()
        except Conflict:
            time.sleep(RETRY_INTERVAL)


def _by_keyword(templates: Sequence[type[Template]]) -> Mapping[str, type[Template]]:
    by_keyword: dict[str, type[Template]] = {}
    for template in templates:
        keyword = template.info.keyword
        if keyword in by_keyword:
            raise CallerError(f"two templates are called `{keyword}`, expected one of each name")
        by_keyword[keyword] = template
    return by_keyword
