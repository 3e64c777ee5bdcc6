"""Rows of a time series with those in between interpolated: the counterpart of ``downsample``.

If two rows of one series are further apart than the interval, rows at each interval after the first of them are
inserted: a copy of it with the new time, and values on the straight line to the second.  A value that is not a number
at either end is copied.  Gaps that would need more than ``most`` rows stay gaps.  Rows keep their order; inserted rows
come right before the row that ends the gap.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final

from sluice_core.describe import PROXY, ActionInfo, Parameter
from sluice_filters.api import FilterError, Hint, Stream
from sluice_filters.csv.language import parse_number
from sluice_filters.csv.select import DIALECT_PARAMETERS, csv_info
from sluice_filters.timeseries.rows import SERIES_PARAMETERS, Clock, Row, SeriesFilter, SeriesStream, format_number

#: Greatest number of series whose last row is remembered.
LARGEST: Final = 100_000


class Upsample(SeriesFilter):
    """Fills gaps with interpolated rows."""

    info: ClassVar[ActionInfo] = csv_info(
        keyword="upsample",
        help="give a CSV time series with interpolated rows where it has gaps",
        parameters=(
            *SERIES_PARAMETERS,
            Parameter("most", "int", "rows put into one gap; longer ones stay", default=24, minimum=1, maximum=100),
            *DIALECT_PARAMETERS,
        ),
        stage=215,
        needs_whole_object=True,
        default_place=PROXY,
    )

    def reader(self, hint: Hint) -> Stream:
        return _Upsampled(self)


class _Upsampled(SeriesStream):
    def __init__(self, made_by: Upsample) -> None:
        super().__init__(made_by)
        self._most = int(made_by.params["most"] or 0)
        self._last: dict[tuple[bytes, ...], tuple[int, Clock, Row]] = {}

    def rows(self, rows: Iterator[Row]) -> Iterator[Row]:
        for row in rows:
            time = self.read_time(row)
            if time is not None:
                key = tuple(self.read_value(row, place) for place in self.keys)
                before = self._last.get(key)
                if before is not None:
                    yield from self._between(before, time[0], row)
                elif len(self._last) >= LARGEST:
                    raise FilterError(f"`upsample` remembers {LARGEST} series at most")
                self._last[key] = (*time, row)
            yield row

    def _between(self, before: tuple[int, Clock, Row], until: int, row: Row) -> Iterator[Row]:
        start, clock, first = before
        count = -(-(until - start) // self.series.micros) - 1
        if not 0 < count <= self._most:
            return
        lines = [self._line(first, row, place) for place in self.values]
        for step in range(1, count + 1):
            micros = start + step * self.series.micros
            made = list(first)
            made[self.time] = clock.format(micros)
            for place, line in zip(self.values, lines, strict=True):
                if line is not None:
                    share = (micros - start) / (until - start)
                    made[place] = format_number(line[0] + (line[1] - line[0]) * share, self.series.digits)
            yield made

    def _line(self, first: Row, second: Row, place: int) -> tuple[float, float] | None:
        """Return a value at both ends of a gap; None unless both are numbers."""
        begin = parse_number(self.read_value(first, place))
        end = parse_number(self.read_value(second, place))
        return None if begin is None or end is None else (float(begin), float(end))
