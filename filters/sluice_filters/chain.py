"""Several filters on one stream: in running order on PUT, reversed on GET; only this module decides the order.

Records are ``{"f": keyword, "v": version, "r": record}``, one per filter that changed something, in
running order on PUT; they are JSON and the only input of decoding besides the bytes.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sluice_filters.api import CorruptData, Filter, FilterError, GroupEncoder, Hint, NeedIndex, Record, Stream
from sluice_filters.pipe import DecoderPipe, Pipe, Slice, cut, run

Records = Sequence[Mapping[str, Any]]
Filters = Mapping[str, type[Filter]]


class ChainEncoder(Pipe):
    """The encoders of ``steps``, first next to the client.

    Only the first filter after the client knows the exact size; behind one that changes lengths it
    is unknown.  ``heavy`` is true when a feed should run in another thread.
    """

    def __init__(self, steps: Sequence[Filter], hint: Hint) -> None:
        self.heavy = any(step.heavy for step in steps)
        self._parts: list[tuple[list[Filter], Stream]] = []
        for members in _groups(steps):
            team = members[0].team
            self._parts.append((members, team.encoder(members, hint) if team else members[0].encoder(hint)))
            if any(step.info.changes_length for step in members):
                hint = replace(hint, size=None)
        super().__init__([stream for _, stream in self._parts])

    def settled(self) -> bool:
        """True once it is certain that the bytes pass unchanged and there will be no records."""
        return all(stream.transparent for stream in self._stages)

    def records(self) -> tuple[dict[str, Any], ...]:
        """After ``finish``: the records in running order; empty when nothing was changed."""
        entries = []
        for members, stream in self._parts:
            records = stream.records() if isinstance(stream, GroupEncoder) else [stream.record()]
            for step, record in zip(members, records, strict=True):
                if record is not None:
                    entries.append({"f": step.info.keyword, "v": step.info.version, "r": dict(record)})
        return tuple(entries)


def chain_reader(steps: Sequence[Filter], hint: Hint) -> Stream:
    """Return the read-time transforms of ``steps`` (given in the order of PUT) as one stream."""
    streams = []
    for members in reversed(_groups([step for step in steps if step.info.on_get])):
        team = members[0].team
        streams.append(team.reader(members, hint) if team else members[0].reader(hint))
        hint = replace(hint, size=None)
    return Pipe(streams)


def _groups(steps: Sequence[Filter]) -> list[list[Filter]]:
    """Return adjacent filters of one isolated environment together, every native filter alone."""
    groups: list[list[Filter]] = []
    for step in steps:
        if groups and step.team is not None and groups[-1][0].team is step.team:
            groups[-1].append(step)
        else:
            groups.append([step])
    return groups


def missing(records: Records, filters: Filters) -> list[str]:
    """Return which records cannot be reversed here and why, one entry each; empty when all can.

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
    """Return the size in bytes of the object before the first filter.

    :raises CorruptData: when the records do not have it
    """
    if not records:
        raise CorruptData("no records, so no size")
    return Filter.plain_size(_parts(records[0])[2])


def chain_decoder(records: Records, filters: Filters, hint: Hint | None = None) -> Stream:
    """Return a stream that reverses all ``records``, the last one first; isolated filters need ``hint.account``.

    :raises FilterError: when one cannot be reversed here (see :func:`missing`)
    """
    layers = _layers(records, filters)
    by_filter = {id(layer.filter): layer.record for layer in layers}
    streams = []
    for members in reversed(_groups([layer.filter for layer in layers])):
        team = members[0].team
        steps = [(step, by_filter[id(step)]) for step in members]
        streams.append(team.decoder(steps, hint or Hint()) if team else members[0].decoder(steps[0][1]))
    return DecoderPipe(streams)


def can_seek(records: Records, filters: Filters) -> bool:
    """Whether :func:`locate` works: all filters are installed and have random access."""
    return not missing(records, filters) and all(filters[record["f"]].info.random_access for record in records)


@dataclass(frozen=True, slots=True)
class Located:
    """The result of :func:`locate`: feeding the stored bytes ``[start, stop)`` to ``stream``, then ``finish``, gives
    the range.

    ``records`` are the given ones completed by the indexes that were fetched: use them for the next range of the same
    object, never for writing.
    """

    start: int
    stop: int
    stream: Stream
    records: tuple[dict[str, Any], ...] = ()


Locating = Generator[tuple[int, int], bytes, Located]


def locate(records: Records, filters: Filters, start: int, stop: int) -> Locating:
    """Find the plain bytes ``[start, stop)``, ``0 <= start < stop <= plain_size``.

    Yields ``(a, b)`` to request the stored bytes ``[a, b)`` (an index), which the caller sends, as often as needed, and
    returns a :class:`Located`.

    :raises FilterError: when a filter is missing or has no random access: decode sequentially
    :raises CorruptData: when an index is not the one that was written
    """
    layers = _layers(records, filters)
    for layer in layers:
        if not layer.filter.info.random_access:
            raise FilterError(f"filter `{layer.filter.info.keyword}` has no random access")
    if not 0 <= start < stop <= plain_size(records):
        raise FilterError(f"bytes `{start}` to `{stop}` of {plain_size(records)}")
    located = yield from _locate(layers, start, stop)
    return Located(located.start, located.stop, located.stream, tuple(layer.as_record() for layer in layers))


def read_range(
    stored: bytes, records: Records, filters: Filters, start: int, stop: int, step: int | None = None
) -> bytes:
    """Return the plain bytes ``[start, stop)`` by random access to an object whose stored bytes are all in memory.

    :param step: bytes fed at once; None feeds all of them at once
    """
    search = locate(records, filters, start, stop)
    try:
        begin, end = next(search)
        while True:
            begin, end = search.send(stored[begin:end])
    except StopIteration as done:
        located: Located = done.value
    wanted = stored[located.start : located.stop]
    return run(located.stream, cut(wanted, step or max(len(wanted), 1)))


@dataclass(slots=True)
class _Layer:
    """One record with the filter that reverses it; ``record`` is completed by its index when that is read."""

    filter: Filter
    version: int
    record: Record

    def as_record(self) -> dict[str, Any]:
        return {"f": self.filter.info.keyword, "v": self.version, "r": dict(self.record)}


def _locate(layers: Sequence[_Layer], start: int, stop: int) -> Locating:
    """Locate ``[start, stop)`` of the input of the first of ``layers`` in the output of the last one."""
    if not layers:
        return Located(start, stop, Slice(0, stop - start))
    layer, outer = layers[0], layers[1:]
    where = layer.filter.locate(layer.record, start, stop)
    if isinstance(where, NeedIndex):
        index = yield from _read(outer, where.start, where.stop)
        layer.record = layer.filter.with_index(layer.record, index)
        where = layer.filter.locate(layer.record, start, stop)
        if isinstance(where, NeedIndex):
            raise FilterError(f"filter `{layer.filter.info.keyword}` asks for its index again")
    below = yield from _locate(outer, where.start, where.stop)
    decoder, wanted = layer.filter.decoder(layer.record, where), Slice(where.skip, where.length)
    return Located(below.start, below.stop, DecoderPipe.flattened(below.stream, decoder, wanted))


def _read(layers: Sequence[_Layer], start: int, stop: int) -> Generator[tuple[int, int], bytes, bytes]:
    """Read the bytes ``[start, stop)`` of the input of the first of ``layers``."""
    located = yield from _locate(layers, start, stop)
    stored = yield located.start, located.stop
    if len(stored) != located.stop - located.start:
        raise CorruptData(f"`{len(stored)}` bytes of index, expected {located.stop - located.start}")
    return run(located.stream, [stored])


def _parts(record: Mapping[str, Any]) -> tuple[str, int, Record]:
    keyword, version, inner = record.get("f"), record.get("v"), record.get("r")
    if not isinstance(keyword, str) or not isinstance(version, int) or not isinstance(inner, Mapping):
        raise CorruptData(f"not a filter's record: `{dict(record)!r}`")
    return keyword, version, inner


def _layers(records: Records, filters: Filters) -> list[_Layer]:
    """Return the records with their filters.

    Reversible filters have no required parameter (the contract suite checks this), hence ``()``.
    """
    faults = missing(records, filters)
    if faults:
        raise FilterError("; ".join(faults))
    return [_Layer(filters[keyword](), version, record) for keyword, version, record in map(_parts, records)]
