"""An index of a CSV object's records by the value of a column, stored beside it, so that a reader can fetch single
records.

The result is CSV itself, in the order of the values: each value, the offset of its record, and the length of
the record without its end, for ``Range: bytes=OFFSET-(OFFSET + LENGTH - 1)``.
"""

from __future__ import annotations

from typing import ClassVar

from sluice_core.describe import ActionInfo, Parameter
from sluice_filters.csv.select import DIALECT_PARAMETERS
from sluice_filters.csv.tables.table import HEADER, Table, TableFilter, sort_records, table_info
from sluice_filters.pipe import MAX_SIZE


class CsvIndex(TableFilter):
    """Returns positions of records in place of the records."""

    info: ClassVar[ActionInfo] = table_info(
        keyword="csv_index",
        help="give where each record of CSV objects is, in the order of a column",
        parameters=(
            Parameter("column", "str", "the column (a name, or _1, _2, ...)", required=True),
            HEADER,
            MAX_SIZE,
            *DIALECT_PARAMETERS,
        ),
        stage=192,
    )

    def columns(self) -> str:
        return '"' + str(self.params["column"]).replace('"', '""') + '"'

    def convert(self, table: Table) -> bytes:
        mark = self.dialect.delimiter
        lines = []
        if table.header is not None:
            lines.append(mark.join((self.dialect.fields(table.header)[table.places[0]], b"offset", b"length")))
        for begin, record in sort_records(table.records, lambda located: self.value(located[1], table.places[0])):
            value = self.dialect.quoted(self.value(record, table.places[0]))
            lines.append(mark.join((value, b"%d" % begin, b"%d" % len(record))))
        return b"".join([line + b"\n" for line in lines])
