"""Rows of a time series with those in between interpolated: the counterpart of ``downsample``.

Where two rows of one series are further apart than the interval, rows at each interval after the first of them are
put in between: a copy of it with its time, and its values on the straight line to the second.  A value
that is no number at either end is copied.  Gaps that would need more than ``most`` rows stay gaps.
Rows keep their order; what is put in comes right before the row that ends the gap.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar, Final

from sluice_core.describe import FILTER, PROXY, STORAGE_NODE, ActionInfo, Parameter, Scalar
from sluice_filters.api import Filter, FilterError, Hint, Stream
from sluice_filters.csv.dialect import Dialect
from sluice_filters.csv.language import number_of
from sluice_filters.csv.select import DIALECT_PARAMETERS, dialect_of
from sluice_filters.timeseries.rows import SERIES_PARAMETERS, Row, RowStream, Series, field_at
from sluice_filters.timeseries.timestamps import Clock, format_number, read_time

#: Series of which the last row is remembered.
LARGEST: Final = 100_000


class Upsample(Filter):
    """Fills gaps with interpolated rows."""

    info: ClassVar[ActionInfo] = ActionInfo(
        keyword="upsample",
        kind=FILTER,
        help="give a CSV time series with interpolated rows where it has gaps",
        parameters=(
            *SERIES_PARAMETERS,
            Parameter("most", "int", "rows put into one gap; longer ones stay", default=24, minimum=1, maximum=100),
            *DIALECT_PARAMETERS,
        ),
        places=(PROXY, STORAGE_NODE),
        default_place=STORAGE_NODE,
        stage=215,
        on_put=False,
        on_get=True,
        changes_content=True,
        changes_length=True,
        needs_whole_object=True,
    )
    heavy: ClassVar[bool] = True

    def __init__(self, params: Mapping[str, Scalar] | None = None) -> None:
        super().__init__(params)
        self._dialect = dialect_of(self.params)
        self._series = Series(self.params)

    def reader(self, hint: Hint) -> Stream:
        return _Upsampled(self._dialect, self._series, int(self.params["most"] or 0))


class _Upsampled(RowStream):
    def __init__(self, dialect: Dialect, series: Series, most: int) -> None:
        super().__init__(dialect)
        self._series = series
        self._most = most
        self._time = 0
        self._keys: Sequence[int] = ()
        self._values: Sequence[int] = ()
        self._last: dict[tuple[bytes, ...], tuple[int, Clock, Row]] = {}

    def begin(self, names: Sequence[str], header: Row) -> Row:
        self._time, self._keys, self._values = self._series.places(self.dialect, names)
        return header

    def rows(self, rows: Iterator[Row]) -> Iterator[Row]:
        for row in rows:
            found = read_time(self.dialect.value(field_at(row, self._time)), self._series.unit)
            if found is not None:
                key = tuple(self.dialect.value(field_at(row, place)) for place in self._keys)
                before = self._last.get(key)
                if before is not None:
                    yield from self._between(before, found[0], row)
                elif len(self._last) >= LARGEST:
                    raise FilterError(f"`upsample` remembers {LARGEST} series at most")
                self._last[key] = (*found, row)
            yield row

    def _between(self, before: tuple[int, Clock, Row], until: int, row: Row) -> Iterator[Row]:
        start, clock, first = before
        count = -(-(until - start) // self._series.micros) - 1
        if not 0 < count <= self._most:
            return
        lines = [self._line(first, row, place) for place in self._values]
        for step in range(1, count + 1):
            micros = start + step * self._series.micros
            made = list(first)
            made[self._time] = clock.format(micros)
            for place, line in zip(self._values, lines, strict=True):
                if line is not None:
                    share = (micros - start) / (until - start)
                    made[place] = format_number(line[0] + (line[1] - line[0]) * share, self._series.digits)
            yield made

    def _line(self, first: Row, second: Row, place: int) -> tuple[float, float] | None:
        """A value at both ends of a gap, None unless both are numbers."""
        begin = number_of(self.dialect.value(field_at(first, place)))
        end = number_of(self.dialect.value(field_at(second, place)))
        return None if begin is None or end is None else (float(begin), float(end))
