"""Sorts records of CSV by columns; records with equal values stay in their order."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import chain
from typing import ClassVar

from sluice_core.describe import ActionInfo, Parameter
from sluice_filters.csv.language import parse_number
from sluice_filters.csv.select import DIALECT_PARAMETERS
from sluice_filters.csv.tables.table import HEADER, Located, Table, TableFilter, sort_records, table_info
from sluice_filters.pipe import MAX_SIZE


class CsvSort(TableFilter):
    """Sorts records by the bytes or the numbers of columns; values that are not numbers come last."""

    info: ClassVar[ActionInfo] = table_info(
        keyword="csv_sort",
        help="give the records of CSV objects in the order of columns",
        parameters=(
            Parameter("by", "list", "columns (names, or _1, _2, ...); empty: the whole record", default=""),
            Parameter("compare", "str", "values as text or as numbers", default="text", choices=("text", "number")),
            Parameter(
                "order",
                "str",
                "smallest or largest first",
                default="ascending",
                choices=("ascending", "descending"),
            ),
            HEADER,
            MAX_SIZE,
            *DIALECT_PARAMETERS,
        ),
        stage=195,
    )

    def columns(self) -> str:
        return str(self.params["by"] or "")

    def convert(self, table: Table) -> bytes:
        reverse = self.params["order"] == "descending"
        ordered = sort_records(table.records, partial(self._key, table.places, reverse), reverse)
        heading = [] if table.header is None else [table.header]
        return b"".join([record + b"\n" for record in chain(heading, (record for _, record in ordered))])

    def _key(self, places: Sequence[int], reverse: bool, located: Located) -> Sequence[bytes | tuple[bool, float]]:
        record = located[1]
        values = [self.value(record, place) for place in places] or [record]
        if self.params["compare"] == "text":
            return values
        numbers = map(parse_number, values)
        return [((number is None) != reverse, number or 0) for number in numbers]
