"""The operations on the history of metrics in Redis.

The directory of series is a hash, whose fields identify the series.  A process that deletes a series removes it from
the directory and deletes its rings; the writer reads the directory periodically, and then stops writing the series.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from sluice_core.store.keys import Keys
from sluice_core.store.operation import Command, Operation, decoded, nothing
from sluice_metric_history.records import SeriesKey, SeriesRecord
from sluice_metric_history.resolutions import RESOLUTIONS, TIME, Point, Resolution, times_of

#: Seconds after which Redis deletes a ring that is no longer written.
RETENTION: Final = RESOLUTIONS[-1].seconds + 86_400

#: Series by metric, level and path.
Directory = dict[SeriesKey, SeriesRecord]


def field_of(key: SeriesKey) -> bytes:
    """The directory's field of a series."""
    parts = (key.metric, key.level, "rest" if key.rest else "", key.path)
    return "\n".join(parts).encode("utf-8", "surrogatepass")


def read_directory(keys: Keys) -> Operation[Directory]:
    """Read all series; undecodable ones are left out."""

    def parse(replies: list[Any]) -> Directory:
        found = (decoded(SeriesRecord, repr(name), raw) for name, raw in replies[0].items())
        return {one.key: one for one in found if one is not None}

    return Operation((("HGETALL", keys.metric_series),), parse)


def find_series(keys: Keys, wanted: Sequence[SeriesKey]) -> Operation[SeriesRecord | None]:
    """Read the first of ``wanted`` that exists."""

    def parse(replies: list[Any]) -> SeriesRecord | None:
        found = (decoded(SeriesRecord, repr(one), raw) for one, raw in zip(wanted, replies[0], strict=True))
        return next((one for one in found if one is not None), None)

    return Operation((("HMGET", keys.metric_series, *map(field_of, wanted)),), parse)


def write_series(keys: Keys, records: Iterable[SeriesRecord]) -> Operation[None]:
    """Write new or changed series into the directory, and allocate whole rings for them.

    A ring that grows step by step would take up to twice its size.
    """
    known = list(records)
    if not known:
        return Operation((), nothing)
    pairs = [word for one in known for word in (field_of(one.key), one.encode())]
    commands: list[Command] = [("HSET", keys.metric_series, *pairs), ("EXPIRE", keys.metric_series, RETENTION)]
    for one in known:
        for resolution in resolutions_of(one):
            ring = keys.metric_points(resolution.step, one.id)
            commands += [
                ("SETRANGE", ring, resolution.slots * resolution.point_size, b"\0"),
                ("EXPIRE", ring, RETENTION),
            ]
    return Operation(tuple(commands), nothing, blocking=True)


def resolutions_of(record: SeriesRecord) -> tuple[Resolution, ...]:
    """The resolutions in which a series is stored."""
    return tuple(resolution for resolution in RESOLUTIONS if resolution.step >= record.step)


def forget_series(keys: Keys, records: Collection[SeriesRecord]) -> Operation[None]:
    """Remove series from the directory, and delete their points."""
    if not records:
        return Operation((), nothing)
    rings = [keys.metric_points(resolution.step, one.id) for one in records for resolution in RESOLUTIONS]
    return Operation(
        (("HDEL", keys.metric_series, *(field_of(one.key) for one in records)), ("UNLINK", *rings)), nothing
    )


def write_row(
    keys: Keys, resolution: Resolution, at: int, points: Mapping[str, bytes], renewed: Iterable[str] = ()
) -> Operation[None]:
    """Write the points of all series in the step that begins at ``at``, unix time.

    The clock is written last: a row that is not complete is a gap.

    :param points: id of a series → its packed point
    :param renewed: ids of series whose rings are kept for another :data:`RETENTION` seconds
    """
    slot = resolution.slot(at)
    offset, clock = slot * resolution.point_size, keys.metric_clock(resolution.step)
    prefix = keys.metric_points(resolution.step, "")
    commands: list[Command] = [("SETRANGE", prefix + name, offset, raw) for name, raw in points.items()]
    commands += [("EXPIRE", prefix + name, RETENTION) for name in renewed]
    commands += [("SETRANGE", clock, slot * TIME.size, TIME.pack(at)), ("EXPIRE", clock, RETENTION)]
    return Operation(tuple(commands), nothing, blocking=True)


def read_points(keys: Keys, resolution: Resolution, name: str, begin: int, end: int) -> Operation[list[Point | None]]:
    """Read the points of the steps from ``begin`` to before ``end``, at most :attr:`Resolution.slots`.

    :param name: id of a series
    :param begin: unix time at which a step of the resolution begins, as does ``end``
    """
    count = (end - begin) // resolution.step
    parts = _parts(resolution, begin, count)
    ring, clock = keys.metric_points(resolution.step, name), keys.metric_clock(resolution.step)
    commands: list[Command] = []
    for first, last in parts:
        commands.append(("GETRANGE", ring, first * resolution.point_size, last * resolution.point_size - 1))
        commands.append(("GETRANGE", clock, first * TIME.size, last * TIME.size - 1))

    def parse(replies: list[Any]) -> list[Point | None]:
        points: list[Point | None] = []
        times: list[int] = []
        for (first, last), raw, written in zip(parts, replies[::2], replies[1::2], strict=True):
            points += resolution.unpack(raw.ljust((last - first) * resolution.point_size, b"\0"))
            times += times_of(written.ljust((last - first) * TIME.size, b"\0"))
        wanted = range(begin, end, resolution.step)
        return [point if at == time else None for at, time, point in zip(wanted, times, points, strict=True)]

    return Operation(tuple(commands), parse)


def _parts(resolution: Resolution, begin: int, count: int) -> list[tuple[int, int]]:
    """First slot and end of each part of a ring with ``count`` points from ``begin`` on, which may wrap."""
    first = resolution.slot(begin)
    if first + count <= resolution.slots:
        return [(first, first + count)] if count else []
    return [(first, resolution.slots), (0, first + count - resolution.slots)]
