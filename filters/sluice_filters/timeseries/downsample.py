"""Averaged rows of a time series, for tenants that may not read single values of their meters.

Each interval and series becomes one row: the begin of the interval, the keys, and the average (or minimum, maximum,
sum) of each value column; other columns are left out.  Intervals are counted from 1970 in UTC.

A row without a time is left out, a value that is not a number is not counted, and a mean without values is empty.
Rows in the order of time (across all series) need memory for one interval only.  A row older than those before it would
make a second, partial row of its interval, so the answer ends there with the reason; for objects in other orders use
``order=none``, which keeps all groups until the end, at most ``LARGEST`` of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import ClassVar, Final

from sluice_core.describe import PROXY, ActionInfo, Parameter
from sluice_filters.api import FilterError, Hint, Stream
from sluice_filters.csv.language import parse_number
from sluice_filters.csv.select import DIALECT_PARAMETERS, csv_info
from sluice_filters.timeseries.rows import (
    SERIES_PARAMETERS,
    Clock,
    Row,
    SeriesFilter,
    SeriesStream,
    format_number,
    read_field,
)

#: Greatest number of groups (series × intervals) in memory, some hundred bytes each.
LARGEST: Final = 100_000
_FOLDS: Final[Mapping[str, Callable[[float, float], float]]] = {
    "avg": lambda one, other: one + other,
    "sum": lambda one, other: one + other,
    "min": min,
    "max": max,
}


class Downsample(SeriesFilter):
    """Returns one row per interval and series."""

    info: ClassVar[ActionInfo] = csv_info(
        keyword="downsample",
        help="give rows of a CSV time series averaged per interval and key, instead of all of them",
        parameters=(
            *SERIES_PARAMETERS,
            Parameter("aggregate", "str", "what becomes of the values", default="avg", choices=tuple(_FOLDS)),
            Parameter(
                "order",
                "str",
                f"rows come in the order of time, or in none (then at most {LARGEST} groups)",
                default="time",
                choices=("time", "none"),
            ),
            *DIALECT_PARAMETERS,
        ),
        stage=210,
        protective=True,
        needs_whole_object=True,
        default_place=PROXY,
    )

    def reader(self, hint: Hint) -> Stream:
        return _Downsampled(self)


class _Group:
    """One interval of one series: the keys of its first row, and the folded values of each column."""

    __slots__ = ("counts", "keys", "totals")

    def __init__(self, keys: Row, values: int) -> None:
        self.keys = keys
        self.totals = [0.0] * values
        self.counts = [0] * values


class _Downsampled(SeriesStream):
    def __init__(self, made_by: Downsample) -> None:
        super().__init__(made_by)
        self._average = made_by.params["aggregate"] == "avg"
        self._fold = _FOLDS[str(made_by.params["aggregate"])]
        self._in_order = made_by.params["order"] == "time"
        self._clock: Clock | None = None
        self._groups: dict[tuple[int, tuple[bytes, ...]], _Group] = {}
        self._latest: int | None = None

    def heading(self, header: Row) -> Row:
        return [read_field(header, place) for place in (self.time, *self.keys, *self.values)]

    def rows(self, rows: Iterator[Row]) -> Iterator[Row]:
        for row in rows:
            time = self.read_time(row)
            if time is None:
                continue
            micros, clock = time
            self._clock = self._clock or clock
            interval = micros // self.series.micros
            if self._in_order and interval != self._latest:
                if self._latest is not None and interval < self._latest:
                    raise FilterError(
                        f"the row of `{clock.format(micros).decode()}` is older than the interval before it; "
                        "`downsample` needs rows in the order of time, or order=none"
                    )
                yield from self.end()
                self._latest = interval
            self._add(interval, row)

    def _add(self, interval: int, row: Row) -> None:
        raw = [read_field(row, place) for place in self.keys]
        key = (interval, tuple(map(self.dialect.value, raw)))
        group = self._groups.get(key)
        if group is None:
            if len(self._groups) >= LARGEST:
                raise FilterError(f"`downsample` holds {LARGEST} series or intervals at most")
            group = self._groups[key] = _Group(raw, len(self.values))
        for index, place in enumerate(self.values):
            number = parse_number(self.read_value(row, place))
            if number is None:
                continue
            counted = group.counts[index]
            group.totals[index] = self._fold(group.totals[index], number) if counted else float(number)
            group.counts[index] = counted + 1

    def end(self) -> Iterator[Row]:
        groups, self._groups = self._groups, {}
        for (interval, _), group in groups.items():
            assert self._clock is not None
            yield [
                self._clock.format(interval * self.series.micros),
                *group.keys,
                *map(self._result, group.totals, group.counts),
            ]

    def _result(self, total: float, count: int) -> bytes:
        if not count:
            return b""
        return format_number(total / count if self._average else total, self.series.digits)
