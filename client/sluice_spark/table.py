"""From the bytes of selected records to arrow batches of the schema's types for Spark."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as arrow_csv
from pyspark.sql.types import (
    BooleanType,
    ByteType,
    DataType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructField,
    StructType,
)

from sluice_spark.options import SluiceReadError

_WHOLE: Final = r"^[+-]?[0-9]{1,18}$"
_NUMBER: Final = r"^[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$"
_LIMITS: Final[dict[type[DataType], int]] = {ByteType: 1 << 7, ShortType: 1 << 15, IntegerType: 1 << 31}
#: Arrow's type for each supported type.
TYPES: Final[dict[type[DataType], Any]] = {
    StringType: pa.string(),
    BooleanType: pa.bool_(),
    ByteType: pa.int8(),
    ShortType: pa.int16(),
    IntegerType: pa.int32(),
    LongType: pa.int64(),
    FloatType: pa.float32(),
    DoubleType: pa.float64(),
}


def check(schema: StructType) -> None:
    """
    :raises SluiceReadError: for unsupported types
    """
    for field in schema.fields:
        if type(field.dataType) not in TYPES:
            known = ", ".join(one().simpleString() for one in TYPES)
            raise SluiceReadError(
                f"column `{field.name}` is {field.dataType.simpleString()}, expected one of {known}: "
                "read it as a string and cast it"
            )


def texts(data: bytes, names: Sequence[str], delimiter: str, quote: str) -> Any:
    """Return a table of texts, null for empty fields as in Spark's own reader, from records without a header."""
    if not data:
        return pa.table({name: pa.array([], pa.string()) for name in names})
    if len(names) == 1 and data.startswith(b"\n"):
        data = b'""' + data  # arrow would skip an empty line
    try:
        return arrow_csv.read_csv(
            pa.BufferReader(data),
            arrow_csv.ReadOptions(use_threads=False, block_size=len(data) + 1, column_names=list(names)),
            arrow_csv.ParseOptions(delimiter=delimiter, quote_char=quote or False, newlines_in_values=bool(quote)),
            arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()),
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=True,
            ),
        )
    except pa.ArrowInvalid as error:
        raise SluiceReadError(f"what the store selected cannot be read: {error}") from error


def fields(record: bytes, delimiter: str, quote: str) -> list[str]:
    """The values of one record."""
    rows = csv.reader([record.decode("utf-8-sig", "surrogateescape").removesuffix("\n")], **_form(delimiter, quote))
    return next(iter(rows), [])


def _form(delimiter: str, quote: str) -> dict[str, Any]:
    if quote:
        return {"delimiter": delimiter, "quotechar": quote}
    return {"delimiter": delimiter, "quoting": csv.QUOTE_NONE}


def batches(table: Any, schema: StructType) -> list[Any]:
    """Return ``table`` with the types of ``schema``; a text that is not such a value becomes null."""
    columns = [_converted(table[field.name].combine_chunks(), field) for field in schema.fields]
    fields = [pa.field(field.name, TYPES[type(field.dataType)], field.nullable) for field in schema.fields]
    found: list[Any] = pa.Table.from_arrays(columns, schema=pa.schema(fields)).to_batches(max_chunksize=10_000)
    return found


def _converted(column: Any, field: StructField) -> Any:
    kind = type(field.dataType)
    if kind is StringType:
        return column
    if kind is BooleanType:
        folded = pc.utf8_lower(column)
        known = pc.or_(pc.equal(folded, "true"), pc.equal(folded, "false"))
        return pc.if_else(known, pc.equal(folded, "true"), pa.scalar(None, pa.bool_()))
    if kind in (FloatType, DoubleType):
        return _valid(column, _NUMBER).cast(pa.float64()).cast(TYPES[kind], safe=False)
    whole = pc.replace_substring_regex(_valid(column, _WHOLE), r"^\+", "").cast(pa.int64())
    limit = _LIMITS.get(kind)
    if limit is not None:
        fits = pc.and_(pc.greater_equal(whole, -limit), pc.less(whole, limit))
        whole = pc.if_else(fits, whole, pa.scalar(None, pa.int64()))
    return whole.cast(TYPES[kind])


def _valid(column: Any, pattern: str) -> Any:
    return pc.if_else(pc.match_substring_regex(column, pattern), column, pa.scalar(None, pa.string()))


def guess(table: Any) -> StructType:
    """Return a schema for a sample of texts: long, double and boolean if all values are such, else string."""
    return StructType([StructField(name, _guess(table[name].combine_chunks())) for name in table.column_names])


def _guess(column: Any) -> DataType:
    values = column.drop_null()
    if not len(values):
        return StringType()
    if pc.all(pc.match_substring_regex(values, _WHOLE)).as_py():
        return LongType()
    if pc.all(pc.match_substring_regex(values, _NUMBER)).as_py():
        return DoubleType()
    if pc.all(pc.is_in(pc.utf8_lower(values), pa.array(["true", "false"]))).as_py():
        return BooleanType()
    return StringType()
