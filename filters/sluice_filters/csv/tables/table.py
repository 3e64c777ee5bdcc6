"""The common part of filters on whole CSV objects: a header, columns by name, records and their offsets."""

from __future__ import annotations

import functools
import heapq
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sluice_core.describe import PROXY, Parameter, Scalar
from sluice_filters.api import BadParameter, Hint, Stream
from sluice_filters.csv.dialect import BYTE_ORDER_MARK, Dialect
from sluice_filters.csv.query import Query, Selection, make_plan, parse_columns
from sluice_filters.csv.select import CsvFilter, csv_info
from sluice_filters.pipe import Collected

HEADER: Final = Parameter("header", "str", "the first record holds names or data", "yes", choices=("yes", "no"))
#: The description of a filter on whole tables: a storage node may have a fragment of one.
table_info = functools.partial(csv_info, places=(PROXY,), default_place=PROXY, needs_whole_object=True)
#: Number of records that are sorted at once, which takes some hundredths of a second.
_PART: Final = 20_000

Located = tuple[int, bytes]


@dataclass(frozen=True, slots=True)
class Table:
    """The records of an object, without their ends.

    :param places: of the columns that the filter was given, from 0
    :param records: each with its offset; the header is not among them
    """

    header: bytes | None
    places: Sequence[int]
    records: Sequence[Located]


class TableFilter(CsvFilter):
    """Base of such filters, whose parameters hold ``HEADER``, ``MAX_SIZE`` and those of the dialect."""

    def __init__(self, params: Mapping[str, Scalar] | None = None) -> None:
        super().__init__(params)
        named = self.columns()
        self._columns = Selection(parse_columns(named)) if named else Selection()
        self._headed = self.params["header"] == "yes"
        if not self._headed and self._columns.named():
            raise BadParameter("`header` is `no`, so columns are called _1, _2 and so on")

    def columns(self) -> str:
        """The names of columns in the parameters, separated by commas."""
        return ""

    def convert(self, table: Table) -> bytes:
        """Return the output for an object."""
        raise NotImplementedError

    def reader(self, hint: Hint) -> Stream:
        limit = int(self.params["max_size"] or 0)
        return Collected(self.info.keyword, limit, lambda text: self.convert(self._read(text)))

    def _read(self, text: bytes) -> Table:
        """
        :raises BadParameter: when it has no column with such a name
        """
        whole = text if text.endswith(b"\n") else text + b"\n"
        start = len(BYTE_ORDER_MARK) if whole.startswith(BYTE_ORDER_MARK) else 0
        records = list(self.dialect.located(whole, start))
        header = records.pop(0)[1] if self._headed and records else None
        if self._headed and header is None:
            return Table(None, (), ())  # empty lines
        names = None if header is None else column_names(self.dialect, header)
        return Table(header, make_plan(Query(self.dialect, requested=self._columns), names).columns or (), records)

    def value(self, record: bytes, place: int) -> bytes:
        """The value of the field at ``place``; empty when the record is too short."""
        fields = self.dialect.fields(record)
        return self.dialect.value(fields[place]) if place < len(fields) else b""


def column_names(dialect: Dialect, header: bytes) -> list[str]:
    """Return the column names in a header."""
    return [dialect.value(raw).decode("utf-8", "replace") for raw in dialect.fields(header)]


def sort_records(records: Sequence[Located], key: Callable[[Located], Any], reverse: bool = False) -> Iterator[Located]:
    """Yield records as ``sorted`` does, which would hold the interpreter, and so other threads, for seconds."""
    parts = [
        sorted(records[begin : begin + _PART], key=key, reverse=reverse) for begin in range(0, len(records), _PART)
    ]
    return heapq.merge(*parts, key=key, reverse=reverse)
