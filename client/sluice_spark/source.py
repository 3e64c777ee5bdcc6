"""The data source: translates Spark's scans to requests with ``X-Csv-Select`` and ``X-Csv-Range``.

The driver lists the objects and splits them into partitions by bytes; a task reads the records that begin in its bytes,
only the columns of the schema, only rows that satisfy the pushed filters.  Columns are requested by position, so each
task reads its object's header, and the store need not read from the beginning.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql import datasource as ds
from pyspark.sql.types import StringType, StructField, StructType

from sluice_spark import pushdown, table
from sluice_spark.options import Options, SluiceReadError
from sluice_spark.store import Store

#: Bytes of the first object from which the schema is inferred.
_SAMPLE: Final = 64 * 1024
#: Length of a UTF-8 byte order mark.
_MARK: Final = 3
#: Characters that would end a header, or a part of it, and their replacements.
_DELIMITERS: Final = {"\t": "tab", ";": "semicolon"}
_QUOTES: Final = {"'": "single", "": "none"}


@dataclass
class Part(ds.InputPartition):
    """The records of one object that begin in the bytes ``first`` to ``last``."""

    name: str
    first: int
    last: int


class SluiceDataSource(ds.DataSource):
    """``spark.read.format("sluice")``."""

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return "sluice"

    def schema(self) -> StructType:
        """Return names from the header of the first object, types inferred or all strings."""
        options = Options.parse(self.options)
        with closing(Store(options)) as store:
            name, size = store.objects()[0]
            names = header_of(store, options, name)
            wanted = list(options.columns or names)
            if not options.infer:
                return StructType([StructField(one, StringType()) for one in wanted])
            wish = Wish(options, names, wanted)
            data = store.select(name, wish.text(), 0, max(min(size, _SAMPLE) - 1, 0))
            return table.guess(table.texts(wish.rows(data, 0), wanted, options.delimiter, options.quote))

    def reader(self, schema: StructType) -> ds.DataSourceReader:
        """Return a scan for this schema.

        :raises SluiceReadError: for unsupported types, and for invalid options
        """
        table.check(schema)
        return SluiceReader(Options.parse(self.options), schema)


class SluiceReader(ds.DataSourceReader):
    """One scan; it is sent to the tasks, so it holds no connection."""

    def __init__(self, options: Options, schema: StructType) -> None:
        self._options = options
        self._schema = schema
        self._filters: list[ds.Filter] = []

    def pushFilters(self, filters: list[ds.Filter]) -> Iterable[ds.Filter]:
        """Return all filters, which Spark applies again: pushdown only saves bytes."""
        self._filters = list(filters)
        return filters

    def partitions(self) -> Sequence[ds.InputPartition]:
        """Return one partition for each ``partitionBytes`` of each object."""
        with closing(Store(self._options)) as store:
            step = self._options.partition_bytes
            return [
                Part(name, first, min(first + step, size) - 1)
                for name, size in store.objects()
                for first in range(0, size, step)
            ]

    def read(self, partition: ds.InputPartition) -> Iterator[Any]:
        """Arrow batches of one partition."""
        if not isinstance(partition, Part):
            return iter(())
        with closing(Store(self._options)) as store:
            wanted = self._schema.fieldNames()
            names = header_of(store, self._options, partition.name)
            wish = Wish(self._options, names, wanted)
            data = store.select(partition.name, wish.text(self._conditions(wish)), partition.first, partition.last)
        found = table.texts(wish.rows(data, partition.first), wanted, self._options.delimiter, self._options.quote)
        return iter(table.batches(found, self._schema))

    def _conditions(self, wish: Wish) -> list[str]:
        types = {field.name: field.dataType for field in self._schema.fields}
        found = [pushdown.condition(one, types, wish.positions) for one in self._filters]
        return [one for one in found if one is not None]


class Wish:
    """The request for one object: its columns by position."""

    def __init__(self, options: Options, names: Sequence[str], wanted: Sequence[str]) -> None:
        """
        :raises SluiceReadError: when the object does not have the columns
        """
        self._options = options
        missing = [name for name in wanted if name not in names]
        if missing:
            raise SluiceReadError(f"no column `{missing[0]}`: there are {', '.join(names)}")
        #: Names of columns in conditions.
        self.positions = {name: f"_{names.index(name) + 1}" for name in wanted}

    def text(self, conditions: Sequence[str] = ()) -> str:
        """Return the value of ``X-Csv-Select``; conditions that would make it too long are left to Spark."""
        parts = [f"columns={','.join(self.positions.values())}", *form(self._options)]
        where = [f"({self._options.where})"] if self._options.where else []
        for one in conditions:
            if sum(map(len, where)) + len(one.encode()) < pushdown.LONGEST:
                where.append(f"({one})")
        return "; ".join([*parts, f"where={' AND '.join(where)}"] if where else parts)

    def rows(self, data: bytes, first: int) -> bytes:
        """Return ``data`` without the header, which comes with the first bytes of an object."""
        if not self._options.header or first:
            return data
        return records(data, self._options.quote)[1]


def form(options: Options) -> list[str]:
    """Return the parameters of the objects' form that differ from the store's defaults."""
    form_options = [] if options.header else ["header=no"]
    if not options.multiline:
        form_options.append("multiline=no")
    if options.delimiter != ",":
        form_options.append(f"delimiter={_DELIMITERS.get(options.delimiter, options.delimiter)}")
    if options.quote != '"':
        form_options.append(f"quote={_QUOTES.get(options.quote, options.quote)}")
    return form_options


def header_of(store: Store, options: Options, name: str) -> list[str]:
    """Return the names of an object's columns: its first record, which begins with its first byte or behind a mark."""
    wish = "; ".join(form(options)) or "header=yes"
    data = store.select(name, wish, 0, 0) or store.select(name, wish, _MARK, _MARK)
    record, rest = records(data, options.quote)
    if rest:
        raise SluiceReadError(f"`{name}` came unfiltered: it needs a policy that sets csv_select")
    names = table.fields(record, options.delimiter, options.quote)
    return names if options.header else [f"_{place + 1}" for place in range(len(names))]


def records(data: bytes, quote: str) -> tuple[bytes, bytes]:
    """Return the first record of ``data``, and the rest."""
    place = -1
    while True:
        place = data.find(b"\n", place + 1)
        if place < 0:
            return data, b""
        if not quote or data.count(quote.encode(), 0, place) % 2 == 0:
            return data[: place + 1], data[place + 1 :]
