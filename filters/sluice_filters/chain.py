"""Several filters on one stream: inward in running order, outward reversed, decided here only.

Records are ``{"f": keyword, "v": version, "r": record}``, one per filter that changed something, in
running order on PUT; they are JSON and all that decoding gets to know.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from sluice_filters.api import CorruptData, Filter, FilterError, Hint, NeedIndex, Record, Stream, TeamStream, Window

Records = Sequence[Mapping[str, Any]]
Filters = Mapping[str, type[Filter]]


class Pipe(Stream):
    """Streams one behind the other, as one."""

    def __init__(self, stages: Sequence[Stream]) -> None:
        self._stages = tuple(stages)
        self.gather = self._stages[0].gather if self._stages else 0

    def feed(self, data: bytes) -> bytes:
        for stage in self._stages:
            data = stage.feed(data)
            if stage.done:
                self.done = True
            if not data:
                return b""
        return data

    def finish(self) -> bytes:
        data = b""
        for stage in self._stages:
            out = stage.feed(data) if data else b""
            data = out + stage.finish()
        return data


class DecoderPipe(Pipe):
    """Decoders one behind the other, of which none is given more than ``STEP`` of another's output at once.

    So an object that was compressed again and again never bursts: ``feed`` gives what became of some of it,
    and ``behind`` says that there is more.
    """

    STEP: ClassVar[int] = 64 << 10

    def __init__(self, stages: Sequence[Stream]) -> None:
        super().__init__(stages)
        self._waiting: list[bytes | memoryview] = [b""] * len(self._stages)

    @classmethod
    def of(cls, *streams: Stream) -> Self:
        """Streams as one, those that are such pipes taken apart."""
        return cls([part for one in streams for part in (one._stages if isinstance(one, cls) else (one,))])

    def feed(self, data: bytes) -> bytes:
        if len(self._stages) < 2:
            return super().feed(data)
        self._waiting[0] = bytes(self._waiting[0]) + data if self._waiting[0] else data
        return self.more()

    def more(self) -> bytes:
        data = b""
        while not data and any(self._waiting):
            data = self._advance(max(number for number, waiting in enumerate(self._waiting) if waiting))
        self.behind = any(self._waiting)
        return data

    def finish(self) -> bytes:
        rest = []
        while self.behind:
            rest.append(self.more())
        return b"".join([*rest, super().finish()])

    def _advance(self, begin: int) -> bytes:
        """What comes out when the first bytes that wait before stage ``begin``, the last one to have any, go on."""
        data = self._take(begin)
        for number in range(begin, len(self._stages)):
            if number > begin:
                self._waiting[number] = data
                data = self._take(number)
            stage = self._stages[number]
            data = stage.feed(data)
            if stage.done:
                self.done = True
            if not data:
                break
        return data

    def _take(self, number: int) -> bytes:
        waiting, self._waiting[number] = self._waiting[number], b""
        if number and len(waiting) > self.STEP:
            view = memoryview(waiting)
            waiting, self._waiting[number] = view[: self.STEP], view[self.STEP :]
        return bytes(waiting)


class ChainEncoder(Pipe):
    """The encoders of ``steps``, first next to the client.

    Only the first filter after the client knows the exact size; behind one that changes lengths it
    is unknown.  ``heavy`` says whether a feed is worth another thread.
    """

    def __init__(self, steps: Sequence[Filter], hint: Hint) -> None:
        self.heavy = any(step.heavy for step in steps)
        self._parts: list[tuple[list[Filter], Stream]] = []
        for members in _teams(steps):
            team = members[0].team
            self._parts.append((members, team.encoder(members, hint) if team else members[0].encoder(hint)))
            if any(step.info.changes_length for step in members):
                hint = replace(hint, size=None)
        super().__init__([stream for _, stream in self._parts])

    def settled(self) -> bool:
        """True once it is certain that the bytes pass unchanged and there will be no records."""
        return all(stream.transparent for stream in self._stages)

    def records(self) -> tuple[dict[str, Any], ...]:
        """After ``finish``: what undoes it, in running order; empty when nothing was changed."""
        found = []
        for members, stream in self._parts:
            records = stream.records() if isinstance(stream, TeamStream) else [stream.record()]
            for step, record in zip(members, records, strict=True):
                if record is not None:
                    found.append({"f": step.info.keyword, "v": step.info.version, "r": dict(record)})
        return tuple(found)


def chain_reader(steps: Sequence[Filter], hint: Hint) -> Stream:
    """The read-time transforms of ``steps`` (given in the order of PUT) as one stream."""
    streams = []
    for members in reversed(_teams([step for step in steps if step.info.on_get])):
        team = members[0].team
        streams.append(team.reader(members, hint) if team else members[0].reader(hint))
        hint = replace(hint, size=None)
    return Pipe(streams)


def _teams(steps: Sequence[Filter]) -> list[list[Filter]]:
    """Neighbours of one isolated environment together, every native filter alone."""
    found: list[list[Filter]] = []
    for step in steps:
        if found and step.team is not None and found[-1][0].team is step.team:
            found[-1].append(step)
        else:
            found.append([step])
    return found


def missing(records: Records, filters: Filters) -> list[str]:
    """What cannot be undone here and why, one entry per record; empty when all can.

    :raises CorruptData: when ``records`` are not of this form
    """
    faults = []
    for keyword, version, _ in map(_parts, records):
        known = filters.get(keyword)
        if known is None:
            faults.append(f"filter `{keyword}` is not installed")
        elif not known.info.reversible:
            faults.append(f"filter `{keyword}` as installed is not reversible")
        elif version > known.info.version:
            faults.append(f"filter `{keyword}` of version {version} is needed, installed is {known.info.version}")
    return faults


def plain_size(records: Records) -> int:
    """Size in bytes of the object before the first filter.

    :raises CorruptData: when the records do not say it
    """
    if not records:
        raise CorruptData("no records, so no size")
    return Filter.plain_size(_parts(records[0])[2])


def chain_decoder(records: Records, filters: Filters, hint: Hint | None = None) -> Stream:
    """A stream that undoes all ``records``, the last one first; isolated filters want ``hint.account``.

    :raises FilterError: when one cannot be undone here (see :func:`missing`)
    """
    layers = _layers(records, filters)
    by_filter = {id(layer.filter): layer.record for layer in layers}
    streams = []
    for members in reversed(_teams([layer.filter for layer in layers])):
        team = members[0].team
        steps = [(step, by_filter[id(step)]) for step in members]
        streams.append(team.decoder(steps, hint or Hint()) if team else members[0].decoder(steps[0][1]))
    return DecoderPipe(streams)


def can_seek(records: Records, filters: Filters) -> bool:
    """Whether :func:`locate` works: all filters are here and have random access."""
    return not missing(records, filters) and all(filters[record["f"]].info.random_access for record in records)


@dataclass(frozen=True, slots=True)
class Located:
    """Feeding the stored bytes ``[start, stop)`` to ``stream``, then ``finish``, gives the range.

    ``records`` are the given ones completed by the indexes that were fetched: use them for the
    next range of the same object, never for writing.
    """

    start: int
    stop: int
    stream: Stream
    records: tuple[dict[str, Any], ...] = ()


Locating = Generator[tuple[int, int], bytes, Located]


def locate(records: Records, filters: Filters, start: int, stop: int) -> Locating:
    """Find the plain bytes ``[start, stop)``, ``0 <= start < stop <= plain_size``.

    Yields ``(a, b)`` for "fetch the stored bytes ``[a, b)`` and send them to me" (an index), as
    often as needed, and returns a :class:`Located`.

    :raises FilterError: when a filter is missing or has no random access: decode sequentially
    :raises CorruptData: when an index is not what was written
    """
    layers = _layers(records, filters)
    for layer in layers:
        if not layer.filter.info.random_access:
            raise FilterError(f"filter `{layer.filter.info.keyword}` has no random access")
    if not 0 <= start < stop <= plain_size(records):
        raise FilterError(f"bytes `{start}` to `{stop}` of {plain_size(records)}")
    found = yield from _locate(layers, start, stop)
    return Located(found.start, found.stop, found.stream, tuple(layer.as_record() for layer in layers))


@dataclass(slots=True)
class _Layer:
    """One record with the filter that undoes it; ``record`` grows by its index when that is read."""

    filter: Filter
    version: int
    record: Record

    def as_record(self) -> dict[str, Any]:
        return {"f": self.filter.info.keyword, "v": self.version, "r": dict(self.record)}


class _Cut(Stream):
    """Drops the first ``skip`` bytes, passes ``length`` on, drops the rest."""

    def __init__(self, skip: int, length: int) -> None:
        self._skip = skip
        self._length = length

    @classmethod
    def of(cls, window: Window) -> Self:
        return cls(window.skip, window.length)

    def feed(self, data: bytes) -> bytes:
        begin = min(self._skip, len(data))
        self._skip -= begin
        out = data[begin : begin + self._length]
        self._length -= len(out)
        return out

    def finish(self) -> bytes:
        if self._length:
            raise CorruptData(f"range ends `{self._length}` bytes early")
        return b""


def _locate(layers: Sequence[_Layer], start: int, stop: int) -> Locating:
    """Where ``[start, stop)`` of what the first of ``layers`` took lies in what the last one gave."""
    if not layers:
        return Located(start, stop, _Cut(0, stop - start))
    layer, outer = layers[0], layers[1:]
    where = layer.filter.locate(layer.record, start, stop)
    if isinstance(where, NeedIndex):
        index = yield from _read(outer, where.start, where.stop)
        layer.record = layer.filter.with_index(layer.record, index)
        where = layer.filter.locate(layer.record, start, stop)
        if isinstance(where, NeedIndex):
            raise FilterError(f"filter `{layer.filter.info.keyword}` asks for its index again")
    below = yield from _locate(outer, where.start, where.stop)
    decoder = layer.filter.decoder(layer.record, where)
    return Located(below.start, below.stop, DecoderPipe.of(below.stream, decoder, _Cut.of(where)))


def _read(layers: Sequence[_Layer], start: int, stop: int) -> Generator[tuple[int, int], bytes, bytes]:
    """The bytes ``[start, stop)`` of what the first of ``layers`` took."""
    found = yield from _locate(layers, start, stop)
    stored = yield found.start, found.stop
    if len(stored) != found.stop - found.start:
        raise CorruptData(f"`{len(stored)}` bytes of index, expected {found.stop - found.start}")
    plain = found.stream.feed(stored) if stored else b""
    return plain + found.stream.finish()


def _parts(record: Mapping[str, Any]) -> tuple[str, int, Record]:
    keyword, version, inner = record.get("f"), record.get("v"), record.get("r")
    if not isinstance(keyword, str) or not isinstance(version, int) or not isinstance(inner, Mapping):
        raise CorruptData(f"not a filter's record: `{dict(record)!r}`")
    return keyword, version, inner


def _layers(records: Records, filters: Filters) -> list[_Layer]:
    """The records with their filters.

    Reversible filters have no required parameter (the contract suite says so), hence ``()``.
    """
    faults = missing(records, filters)
    if faults:
        raise FilterError("; ".join(faults))
    return [_Layer(filters[keyword](), version, record) for keyword, version, record in map(_parts, records)]
