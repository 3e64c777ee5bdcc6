"""The common part of filters on time series: bytes to rows of raw fields for a subclass, and back; and times.

A time in CSV is a number since 1970, or ISO 8601; internally it is whole microseconds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

from sluice_core.describe import Parameter, Scalar
from sluice_filters.api import BadParameter, FilterError, Stream
from sluice_filters.csv.dialect import BYTE_ORDER_MARK, Dialect
from sluice_filters.csv.language import Column, parse_number
from sluice_filters.csv.query import Query, Selection, make_plan, parse_columns
from sluice_filters.csv.select import CsvFilter
from sluice_filters.csv.stream import LONGEST

#: Microseconds of one unit of a plain number.
UNITS: Final = {"s": 1_000_000, "ms": 1_000, "us": 1}
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
#: Greatest number that is a time (the year 9999).
_LATEST: Final = 253_402_300_800 * 1_000_000


@dataclass(frozen=True, slots=True)
class Clock:
    """The form of times; ``zone`` None: a number; ``naive``: without a zone, taken for UTC."""

    unit: int
    zone: tzinfo | None = None
    naive: bool = False
    separator: str = "T"
    zulu: bool = False

    def format(self, micros: int) -> bytes:
        """Return ``micros`` in the object's form of times, with a fraction only if there is one."""
        if self.zone is None:
            whole, rest = divmod(micros, self.unit)
            digits = len(str(self.unit)) - 1
            return (f"{whole}.{rest:0{digits}d}".rstrip("0") if rest else str(whole)).encode()
        moment = (_EPOCH + timedelta(microseconds=micros)).astimezone(self.zone)
        text = (moment.replace(tzinfo=None) if self.naive else moment).isoformat(self.separator)
        return (text.removesuffix("+00:00") + "Z" if self.zulu else text).encode()


def read_time(value: bytes, unit: int) -> tuple[int, Clock] | None:
    """Return microseconds since 1970 and the form of the time; None when it is not a time.

    :param unit: microseconds of one unit of a plain number
    """
    number = parse_number(value)
    if number is not None:
        micros = number * unit
        if not abs(micros) < _LATEST:
            return None
        return round(micros), Clock(unit)
    try:
        text = value.decode("ascii")
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    naive = moment.tzinfo is None
    zone = moment.tzinfo or UTC
    separator = " " if " " in text else "T"
    aware = moment.replace(tzinfo=zone)
    try:
        return (aware - _EPOCH) // _MICROSECOND, Clock(unit, zone, naive, separator, text.endswith("Z"))
    except OverflowError:
        return None


def format_number(number: float, digits: int) -> bytes:
    """Return a number rounded to ``digits`` behind the point, without zeros at the end."""
    text = f"{number:.{digits}f}"
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return b"0" if text in ("-0", "") else text.encode()


Row = list[bytes]

#: Parameters of filters on time series, besides those of the dialect.
SERIES_PARAMETERS: Final = (
    Parameter("time", "str", "column of the time: seconds since 1970 (see `unit`) or ISO 8601", required=True),
    Parameter("interval", "duration", "length of an interval", required=True, minimum=0.001, maximum=3.2e9),
    Parameter("values", "list", "columns of numbers", required=True),
    Parameter("keys", "list", "columns that tell series apart (a meter, a sensor); empty: one series", default=""),
    Parameter("unit", "str", "what a time that is a number counts", default="s", choices=tuple(UNITS)),
    Parameter("digits", "int", "digits behind the point of computed numbers", default=6, minimum=0, maximum=15),
)


class Series:
    """The columns of a time series, as its filter's parameters name them."""

    def __init__(self, params: Mapping[str, Scalar | None]) -> None:
        """
        :raises BadParameter: when a column is named twice
        """
        self._time = str(params["time"])
        self._keys = _names(params["keys"])
        self._values = _names(params["values"])
        named = [self._time, *self._keys, *self._values]
        twice = [name for name in named if named.count(name) > 1]
        if twice:
            raise BadParameter(f"column `{twice[0]}` is named twice in `time`, `keys` and `values`")
        if not self._values:
            raise BadParameter("`values` names no column")
        self.unit = UNITS[str(params["unit"])]
        self.digits = int(params["digits"] or 0)
        self.micros = round(float(params["interval"] or 0) * 1_000_000)

    def find_columns(self, dialect: Dialect, names: Sequence[str]) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
        """Return the positions of time, keys and values.

        :raises BadParameter: for missing columns
        """
        wanted = tuple(Column(name) for name in (self._time, *self._keys, *self._values))
        found = make_plan(Query(dialect, requested=Selection(wanted)), names).columns or ()
        keys = 1 + len(self._keys)
        return found[0], found[1:keys], found[keys:]


def _names(value: Scalar | None) -> list[str]:
    return [column.name for column in parse_columns(str(value))] if value else []


class SeriesFilter(CsvFilter):
    """Base of such filters, whose parameters hold ``SERIES_PARAMETERS`` too."""

    def __init__(self, params: Mapping[str, Scalar] | None = None) -> None:
        super().__init__(params)
        self.series = Series(self.params)


class SeriesStream(Stream):
    """Splits an object into a header and rows; subclasses process them."""

    def __init__(self, made_by: SeriesFilter) -> None:
        self.dialect = made_by.dialect
        self.series = made_by.series
        #: Positions of the time, the keys and the values, once the header has been read.
        self.time = 0
        self.keys: Sequence[int] = ()
        self.values: Sequence[int] = ()
        self._rest = b""
        self._wait = 0
        self._started = False
        self._headed = False

    def heading(self, header: Row) -> Row:
        """Return the header as it is written."""
        return header

    def rows(self, rows: Iterator[Row]) -> Iterator[Row]:
        """Yield the output for some rows."""
        return rows

    def end(self) -> Iterator[Row]:
        """Yield rows at the end."""
        return iter(())

    def read_time(self, row: Row) -> tuple[int, Clock] | None:
        """Return the time of a row, in microseconds since 1970, and its form; None when it has no time."""
        return read_time(self.read_value(row, self.time), self.series.unit)

    def read_value(self, row: Row, place: int) -> bytes:
        """Return the value of a field; empty when the row is too short."""
        return self.dialect.value(row[place] if place < len(row) else b"")

    def feed(self, data: bytes) -> bytes:
        self._rest += data
        if len(self._rest) < self._wait:
            return b""  # twice the kept size, so that a long record is not scanned at every piece
        return self._work(final=False)

    def finish(self) -> bytes:
        if self._rest and not self._rest.endswith(b"\n"):
            self._rest += b"\n"
        out = self._work(final=True)
        return out + self._written(self.end()) if self._headed else out

    def _work(self, final: bool) -> bytes:
        if not self._started:
            if not final and len(self._rest) < len(BYTE_ORDER_MARK):
                return b""
            self._started = True
            self._rest = self._rest.removeprefix(BYTE_ORDER_MARK)
        complete = len(self._rest) if final else self.dialect.complete(self._rest)
        text, self._rest = self._rest[:complete], self._rest[complete:]
        if len(self._rest) > LONGEST:
            raise FilterError(f"a record of more than {LONGEST} bytes: is a quote never closed")
        self._wait = 2 * len(self._rest)
        rows = map(self.dialect.fields, self.dialect.records(text))
        out = b""
        if not self._headed:
            header = next(rows, None)
            if header is None:
                return b""
            self._headed = True
            names = [self.dialect.value(raw).decode("utf-8", "replace") for raw in header]
            self.time, self.keys, self.values = self.series.find_columns(self.dialect, names)
            out = self._written([self.heading(header)])
        return out + self._written(self.rows(rows))

    def _written(self, rows: Iterator[Row] | Sequence[Row]) -> bytes:
        return b"".join([self.dialect.delimiter.join(row) + b"\n" for row in rows])


def read_field(row: Row, place: int) -> bytes:
    """Return a raw field; empty when the row is too short."""
    return row[place] if place < len(row) else b""
