"""A storage in memory with Swift's semantics, for tests of code that uses ``Shim``.

* A *data file* has a time and an offset; the greatest wins, a tombstone is one without content.  A PUT that is not
  newer than the stored file changes nothing.  A client's PUT has the time at which it began, and the offset 0.
* The runtime's PUTs that replace a viewed version have its time and a higher offset (``sluice_rewrites.offsets``).  Two
  of them with the same view may both succeed, and the higher one stays.  New content has its own version.
* *Posted metadata* have a time of their own and are visible while they are newer than the data file.  A POST replaces
  all of them.  A record of motifs is stored in them (transient) or in the data file (kept).  A client's POST carries
  over the record that the proxy found just before, maybe on an older version: so a transient record names the data file
  on which it was written, and its bytes.  It holds for this file, and for later ones of the same time and bytes as long
  as these have none, or an older one.  A record that was posted after the view that a runtime's PUT replaces holds
  beside the record of that PUT.

``switch`` is called before each access, so that a test can run other threads in between.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from sluice_core.errors import NotFound
from sluice_motifs.api import COPY, ExpansionError, SourceGone
from sluice_motifs.storage.records import ItemView, Motif, Plain, Record
from sluice_motifs.storage.shim import CopyView, Reference, Shim
from sluice_rewrites.offsets import NEW_CONTENT, next_offset

#: Bytes that are read at once.
PIECE: Final = 4

#: Time and offset of a data file, or of posted metadata.
Timestamp = tuple[int, int]


@dataclass(frozen=True, slots=True)
class DataFile:
    """A stored version; a tombstone has no ``plain``.

    :param content: None while it is contracted
    :param kept: the record that is kept with it; None when the transient one holds
    :param written_on: the timestamp of the data file for which ``kept`` was written, if that is an earlier one
    :param read: the timestamp of the newest metadata that were read before it replaced another file
    """

    timestamp: Timestamp
    plain: Plain | None = None
    content: bytes | None = None
    metadata: str = ""
    kept: Record | None = None
    written_on: Timestamp | None = None
    read: Timestamp | None = None


@dataclass(frozen=True, slots=True)
class Posted:
    """Posted metadata.

    :param written_on: the data file of that time
    """

    timestamp: Timestamp
    metadata: str
    transient: Record
    written_on: DataFile

    def is_of(self, data: DataFile) -> bool:
        """Whether it was posted to the present bytes, written by the same client."""
        there = self.written_on
        same = there.plain is not None and data.plain is not None and there.plain.digest == data.plain.digest
        return same and there.timestamp[0] == data.timestamp[0]


@dataclass(frozen=True, slots=True)
class _State:
    data: DataFile
    posted: Posted | None = None

    @property
    def metadata(self) -> str:
        return self.data.metadata if self.posted is None else self.posted.metadata

    @property
    def record(self) -> Record:
        return self.holding()[0] or Record()

    @property
    def newest(self) -> Timestamp:
        return self.data.timestamp if self.posted is None else self.posted.timestamp

    def holding(self) -> tuple[Record | None, Timestamp]:
        """The record that holds, and the data file for which it was written."""
        posted, kept, written_on = self.posted, self.data.kept, self.data.written_on or self.data.timestamp
        if posted is None or not posted.is_of(self.data):
            return kept, written_on
        if kept is None or posted.written_on.timestamp >= written_on:
            return posted.transient, posted.written_on.timestamp
        if self.data.read is not None and posted.timestamp > self.data.read:
            return kept.joined(posted.transient), written_on
        return kept, written_on


@dataclass
class MemoryShim(Shim):
    """A storage in memory; ``put``, ``post``, ``delete``, ``copy`` and ``rewrite`` are the actions of clients and
    rewriters.

    :param front_door: reads an item as a client does: name and chain to bytes
    :param clock: for the age of copies and references, in seconds
    """

    front_door: Callable[[str, tuple[str, ...]], Iterator[bytes]] | None = None
    switch: Callable[[], None] = lambda: None
    random: random.Random = field(default_factory=lambda: random.Random(1))  # noqa: S311  offsets of a test
    clock: Callable[[], float] = lambda: 0.0
    pinned: dict[str, str] = field(default_factory=dict)
    _states: dict[str, _State] = field(default_factory=dict)
    _time: int = 0

    def __post_init__(self) -> None:
        self._copies = MemoryCopies(self)

    @property
    def copies(self) -> MemoryCopies:
        return self._copies

    # What clients do, below the front door.

    def put(
        self, name: str, content: bytes, record: Record | None = None, metadata: str = "", accesses: int = 0
    ) -> str:
        """Write an item, with a record if motifs are attached to it; return its version.

        :param accesses: the number of accesses by others while the bytes are sent.  Its time is that of its begin, so
            a write that another client began later stays
        """
        self.switch()
        time = self._tick()
        plain = _plain(str(time), content)
        for _ in range(accesses):
            self.switch()
        self._store(name, DataFile((time, 0), plain, content, metadata, record))
        return plain.version

    def post(self, name: str, metadata: str, attached: Motif | None = None) -> None:
        """Replace the item's metadata; the record of a moment before is kept, with this motif if one is given."""
        self.switch()
        state = self._states.get(name)
        if state is None or state.data.plain is None:
            return
        more = Record() if attached is None else Record((attached,))
        self.switch()
        self._post(name, Posted((self._tick(), 0), metadata, state.record.joined(more), state.data))

    def delete(self, name: str) -> None:
        """Delete an item, if it exists."""
        self.switch()
        self._store(name, DataFile((self._tick(), 0)))

    def copy(self, seen: ItemView, to: str) -> None:
        """Copy a contracted item without its bytes, with its record."""
        self.switch()
        plain = replace(seen.plain, version=str(self._tick()))
        self._store(to, DataFile((self._time, 0), plain, None, seen.opaque.metadata, seen.record))

    def rewrite(self, name: str) -> bool:
        """Store the same bytes again, as a rewrite does."""
        self.switch()
        state = self._states.get(name)
        if state is None or state.data.plain is None:
            return False
        self.switch()
        record, written_on = state.holding()
        return self._store(name, replace(self._successor(state, record), written_on=written_on))

    def metadata(self, name: str) -> str:
        """The metadata that were put or posted last."""
        return self._states[name].metadata

    def stored(self, name: str) -> bytes | None:
        """The stored bytes; None without bytes."""
        state = self._states.get(name)
        return None if state is None else state.data.content

    # Shim

    def view(self, name: str) -> ItemView | None:
        self.switch()
        state = self._states.get(name)
        if state is None or state.data.plain is None:
            return None
        pinned = self.pinned.get(name, "")
        return ItemView(name, state.data.plain, state.record, state.data.content is None, pinned, state)

    def view_all(self, names: Sequence[str]) -> Sequence[ItemView | None]:
        """In random order: a storage views them concurrently."""
        found = {name: self.view(name) for name in self.random.sample(names, len(names))}
        return [found[name] for name in names]

    def scan(self) -> Iterator[ItemView]:
        for name in list(self._states):
            view = self.view(name)
            if view is not None and view.record.motifs:
                yield view

    def read(self, name: str, reader: str, chain: tuple[str, ...], version: str = "") -> Iterator[bytes]:
        if self.view(name) is None:
            raise SourceGone(name)
        if self.front_door is None:
            raise ExpansionError("this storage has no front door")
        try:
            yield from self.front_door(name, chain)
        except NotFound as error:
            raise SourceGone(name) from error

    def own_bytes(self, seen: ItemView) -> Iterator[bytes]:
        self.switch()
        state = self._states.get(seen.name)
        if state is None or state.data.content is None or state.data.plain != seen.plain:
            raise ExpansionError(f"`{seen.name}` has other bytes now")
        content = state.data.content  # an open file stays readable after it was replaced
        for begin in range(0, len(content), PIECE):
            yield content[begin : begin + PIECE]
            self.switch()

    def annotate(self, seen: ItemView, record: Record) -> bool:
        self.switch()
        state: _State = seen.opaque
        posted = Posted(self._next(state.newest), state.metadata, record, state.data)
        return self._post(seen.name, posted) and self._states[seen.name].record == record

    def contract(self, seen: ItemView, record: Record) -> bool:
        self.switch()
        return self._store(seen.name, replace(self._successor(seen.opaque, record), content=None))

    def expand(self, seen: ItemView, record: Record, pieces: Iterator[bytes]) -> bool:
        content = self._received(pieces)
        return self._store(seen.name, replace(self._successor(seen.opaque, record), content=content))

    def replace(self, seen: ItemView, record: Record, pieces: Iterator[bytes]) -> bool:
        content = self._received(pieces)
        data = self._successor(seen.opaque, record, NEW_CONTENT)
        return self._store(seen.name, replace(data, plain=_plain(str(self._tick()), content), content=content))

    def _received(self, pieces: Iterator[bytes]) -> bytes:
        content = b""
        for piece in pieces:
            self.switch()
            content += piece
        self.switch()
        return content

    def _successor(self, state: _State, record: Record | None, multiples: int = 1) -> DataFile:
        timestamp = self._next(state.data.timestamp, multiples)
        again = replace(state.data, timestamp=timestamp, metadata=state.metadata, kept=record)
        return replace(again, written_on=None, read=state.newest)

    def _next(self, timestamp: Timestamp, multiples: int = 1) -> Timestamp:
        return timestamp[0], next_offset(timestamp[1], self.random.getrandbits, multiples)

    def _tick(self) -> int:
        self._time += 1
        return self._time

    def _store(self, name: str, data: DataFile) -> bool:
        before = self._states.get(name)
        if before is not None and before.data.timestamp >= data.timestamp:
            return False
        posted = None if before is None else before.posted
        if posted is not None and posted.timestamp < data.timestamp:
            posted = None
        self._states[name] = _State(data, posted)
        return True

    def _post(self, name: str, posted: Posted) -> bool:
        state = self._states[name]
        if state.data.plain is None or state.newest >= posted.timestamp:
            return False
        self._states[name] = _State(state.data, posted)
        return True


class MemoryCopies:
    """The copies of a storage in memory, and the references to them; implements ``Copies``."""

    def __init__(self, shim: MemoryShim) -> None:
        self._shim = shim
        self._stored_at: dict[str, float] = {}
        #: by copy: item and version → the time of the clock and a unique number
        self._references: dict[str, dict[tuple[str, str], tuple[float, int]]] = {}
        self._added = 0

    def name(self, item: str, placement: str, digest: str) -> str:
        return f"copy:{placement}:{digest}"

    def find(self, name: str) -> CopyView | None:
        view = self._shim.view(name)
        return None if view is None else CopyView(name, self._age(self._stored_at[name]), view.plain.version)

    def store(self, name: str, item: ItemView, plain: Plain, pieces: Iterator[bytes]) -> None:
        content = self._shim._received(pieces)
        self._stored_at[name] = self._shim.clock()
        version = self._shim._tick()
        self._shim._store(name, DataFile((version, 0), _plain(str(version), content), content))

    def read(self, name: str) -> Iterator[bytes]:
        view = self._shim.view(name)
        if view is None:
            raise SourceGone(name)
        yield from self._shim.own_bytes(view)

    def scan(self) -> Iterator[CopyView]:
        for name in [name for name in self._shim._states if name.startswith("copy:")]:
            found = self.find(name)
            if found is not None:
                yield found

    def delete(self, seen: CopyView) -> None:
        self._shim.switch()
        self._shim._store(seen.name, DataFile((int(seen.version), 1)))

    def refer(self, copy: str, item: str, seen: ItemView | None) -> None:
        self._shim.switch()
        version = str(self._shim._tick() if seen is None else seen.opaque.data.timestamp[0])
        self._added += 1
        self._references.setdefault(copy, {})[item, version] = (self._shim.clock(), self._added)

    def references(self, copy: str) -> list[Reference]:
        self._shim.switch()
        known = self._references.get(copy, {})
        return [
            Reference(copy, item, version, self._age(at), str(number))
            for (item, version), (at, number) in known.items()
        ]

    def outlived(self, reference: Reference) -> bool:
        self._shim.switch()
        state = self._shim._states.get(reference.item)
        if state is None:
            return True
        if any(one.params.get(COPY) == reference.copy for one in state.record.motifs):
            return False
        return state.data.timestamp[0] > int(reference.version) or state.data.content is not None

    def drop(self, reference: Reference) -> None:
        self._shim.switch()
        found, key = self._references[reference.copy], (reference.item, reference.version)
        if key in found and str(found[key][1]) == reference.stamp:
            del found[key]

    def _age(self, since: float) -> float:
        return self._shim.clock() - since


def _plain(version: str, content: bytes) -> Plain:
    return Plain(version, len(content), hashlib.md5(content, usedforsecurity=False).hexdigest())
