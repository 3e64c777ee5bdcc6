"""Records of CSV in the order of some columns; those with equal values stay in theirs."""

from __future__ import annotations

from functools import partial
from typing import ClassVar

from sluice_core.describe import ActionInfo, Parameter
from sluice_filters.csv.language import parse_number
from sluice_filters.csv.select import DIALECT_PARAMETERS
from sluice_filters.derived.collected import MAX_SIZE
from sluice_filters.derived.csv_table import HEADER, Table, TableFilter, table_info


class CsvSort(TableFilter):
    """Sorts records by the bytes or the numbers of columns; what is no number comes behind those that are."""

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
        descending = self.params["order"] == "descending"
        ordered = [record for _, record in table.records]
        for place in reversed(table.places or (None,)):  # the first column last: equal values stay in their order
            ordered.sort(key=partial(self._key, place, descending), reverse=descending)
        return b"".join([record + b"\n" for record in [*([] if table.header is None else [table.header]), *ordered]])

    def _key(self, place: int | None, descending: bool, record: bytes) -> bytes | tuple[bool, float]:
        value = record if place is None else self.value(record, place)
        if self.params["compare"] == "text":
            return value
        number = parse_number(value)
        return (number is None) != descending, number or 0
