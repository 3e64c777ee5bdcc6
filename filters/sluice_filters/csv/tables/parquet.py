"""CSV as Parquet: compressed, typed columns, as analytics engines read them.

Records are read in groups of some MiB, each of which becomes a row group.  So memory is bounded, and the first group
decides the types of columns.  A group ends with the last record of its bytes, for every split of the object.  pyarrow
reads CSV and writes Parquet; an object that pyarrow reads differently from the dialect is refused.
"""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Final

from sluice_core.describe import ActionInfo, Parameter
from sluice_filters.api import FilterError, Hint, Stream
from sluice_filters.csv.dialect import BYTE_ORDER_MARK, Dialect
from sluice_filters.csv.select import DIALECT_PARAMETERS, CsvFilter
from sluice_filters.csv.stream import LONGEST
from sluice_filters.csv.tables.table import HEADER, column_names, table_info

if TYPE_CHECKING:
    import pyarrow as pa

#: Bytes of CSV in a row group.
GROUP: Final = 4 << 20
_COLUMN: Final = re.compile(r"CSV column #([0-9]+)")


class CsvToParquet(CsvFilter):
    """Returns a table in another format."""

    info: ClassVar[ActionInfo] = table_info(
        keyword="csv_to_parquet",
        help="give CSV objects as Parquet",
        parameters=(
            Parameter(
                "types",
                "str",
                "columns are of the types that the first 4 MiB show, or text",
                "infer",
                choices=("infer", "text"),
            ),
            HEADER,
            *DIALECT_PARAMETERS,
        ),
        stage=190,
    )
    reproducible: ClassVar[bool] = False

    def reader(self, hint: Hint) -> Stream:
        return _Groups(self.dialect, self.params["header"] == "yes", self.params["types"] == "infer")


class _Groups(Stream):
    """Splits an object into groups of whole records."""

    gather: int = GROUP

    def __init__(self, dialect: Dialect, headed: bool, infer: bool, group: int = GROUP) -> None:
        self._dialect = dialect
        self._headed = headed
        self._infer = infer
        self._group = self._wanted = group
        self._rest = bytearray()
        self._begun = False
        self._writer: _Writer | None = None

    def feed(self, data: bytes) -> bytes:
        self._rest += data
        if not self._begun and len(self._rest) >= len(BYTE_ORDER_MARK):
            self._begin()
        written = []
        while len(self._rest) >= self._wanted:
            complete = self._dialect.complete(bytes(self._rest[: self._wanted]))
            if complete:
                written.append(self._write(complete))
                self._wanted = self._group
            elif self._wanted > LONGEST:
                raise FilterError(f"a record of more than {LONGEST} bytes: is a quote never closed")
            else:
                self._wanted *= 2
        return b"".join(written)

    def finish(self) -> bytes:
        self._begin()
        if self._rest and not self._rest.endswith(b"\n"):
            self._rest += b"\n"
        out = self._write(len(self._rest)) if self._rest else b""
        return out + self._writer.close() if self._writer else out

    def _begin(self) -> None:
        if not self._begun:
            self._begun = True
            if self._rest.startswith(BYTE_ORDER_MARK):
                del self._rest[: len(BYTE_ORDER_MARK)]

    def _write(self, size: int) -> bytes:
        """Return the row group of the first ``size`` bytes."""
        text = bytes(self._rest[:size])
        del self._rest[:size]
        if self._writer is None:
            first = next(iter(self._dialect.located(text)), None)
            if first is None:
                return b""  # empty lines
            begin, record = first
            names = self._names(record)
            if self._headed:
                text = text[begin + len(record) :].partition(b"\n")[2]
            self._writer = _Writer(self._dialect, names, self._infer)
        return self._writer.write(text)

    def _names(self, record: bytes) -> list[str]:
        """
        :raises FilterError: when two columns have the same name
        """
        if not self._headed:
            return [f"_{place + 1}" for place, _ in enumerate(self._dialect.fields(record))]
        names = column_names(self._dialect, record)
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise FilterError(f"`csv_to_parquet`: two columns are called `{twice[:100]}`")
        return names


class _Sink(io.RawIOBase):
    """Collects the written Parquet bytes."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._place = 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._place

    def write(self, data: bytes) -> int:  # type: ignore[override]  # Arrow's buffers
        piece = bytes(data)
        self._pieces.append(piece)
        self._place += len(piece)
        return len(piece)

    def drain(self) -> bytes:
        """Return the bytes written since the last call."""
        pieces, self._pieces = self._pieces, []
        return b"".join(pieces)


class _Writer:
    """Reads groups of records and writes row groups."""

    def __init__(self, dialect: Dialect, names: Sequence[str], infer: bool) -> None:
        import pyarrow as pa  # imported by the worker that needs it, after its fork

        self._dialect = dialect
        self._names = names
        self._types: dict[str, pa.DataType] = {} if infer else dict.fromkeys(names, pa.string())
        self._sink = _Sink()
        self._writer: pa.parquet.ParquetWriter | None = None
        self._rows = 0

    def write(self, text: bytes) -> bytes:
        """Return the bytes of whole records, maybe none yet."""
        import pyarrow.parquet

        table = self._read(text)
        if self._writer is None:
            self._types = {one.name: _known(one.type) for one in table.schema}
            if any(pyarrow.types.is_null(one.type) for one in table.schema):
                table = self._read(text)
            self._writer = pyarrow.parquet.ParquetWriter(self._sink, table.schema, compression="zstd")
        if table.num_rows:
            self._writer.write_table(table)
        self._rows += table.num_rows
        return self._sink.drain()

    def close(self) -> bytes:
        """Return the end of the file."""
        assert self._writer is not None
        self._writer.close()
        return self._sink.drain()

    def _read(self, text: bytes) -> pa.Table:
        """
        :raises FilterError: when it is not a table, or a value is not of its column's type
        """
        import pyarrow as pa
        from pyarrow import csv

        count = sum(1 for _ in self._dialect.located(text))
        if not count:
            return pa.table({name: pa.array([], self._types.get(name, pa.string())) for name in self._names})
        quote = self._dialect.quote.decode()
        try:
            table = csv.read_csv(
                pa.BufferReader(text),
                csv.ReadOptions(use_threads=False, block_size=len(text) + 1, column_names=self._names),
                csv.ParseOptions(
                    delimiter=self._dialect.delimiter.decode(),
                    quote_char=quote or False,
                    escape_char=False,
                    newlines_in_values=bool(quote) and self._dialect.multiline,
                ),
                csv.ConvertOptions(column_types=self._types),
            )
        except pa.ArrowInvalid as error:
            raise FilterError(f"`csv_to_parquet`: {self._fault(f'{error}')}") from error
        if table.num_rows != count:
            fault = f"records behind {self._rows} have quotes or line ends that it cannot read"
            raise FilterError(f"`csv_to_parquet`: {fault}")
        return table

    def _fault(self, message: str) -> str:
        """Return the fault, without values of the object."""
        column = _COLUMN.search(message)
        if column is None:
            return f"a record behind {self._rows} does not have {len(self._names)} fields"
        name = self._names[int(column[1])]
        if self._types.get(name) is None or f"{self._types[name]}" == "string":
            return f"column `{name[:100]}` holds what is no UTF-8"
        return (
            f"column `{name[:100]}` begins with values of type {self._types[name]} and has another one "
            f"behind record {self._rows}; types=text takes all"
        )


def _known(kind: pa.DataType) -> pa.DataType:
    """Return the type of a column; text if the first group has no value."""
    import pyarrow as pa

    return pa.string() if pa.types.is_null(kind) else kind
