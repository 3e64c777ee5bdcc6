"""The SQL of S3 Select that is answered, with the conditions of csv_select:

SELECT * | COUNT(*) | column [AS name] {, column [AS name]}
  FROM S3Object [[*]] [[AS] alias] [WHERE condition] [LIMIT number]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sluice_filters.api import BadParameter
from sluice_filters.csv.language import Column, Condition
from sluice_filters.csv.parser import Reader

_TABLE: Final = "s3object"
_CLAUSES: Final = ("WHERE", "LIMIT", "AS", "FROM")
_FUNCTIONS: Final = (
    *("AVG", "MAX", "MIN", "SUM", "COALESCE", "NULLIF", "CHAR_LENGTH", "CHARACTER_LENGTH", "LOWER", "UPPER"),
    *("SUBSTRING", "TRIM", "DATE_ADD", "DATE_DIFF", "EXTRACT", "TO_STRING", "TO_TIMESTAMP", "UTCNOW", "CASE"),
)


@dataclass(frozen=True, slots=True)
class Statement:
    """``columns`` None is all; ``names`` are what they are called in the output; ``count`` counts rows instead."""

    columns: tuple[Column, ...] | None
    names: tuple[str, ...]
    where: Condition | None
    limit: int | None
    count: bool = False


def parse_statement(text: str) -> Statement:
    """The statement in ``text``.

    :raises BadParameter: with the place and what was expected
    """
    reader = Reader(text.rstrip().removesuffix(";"), {_TABLE, _alias(text)})
    reader.need("SELECT")
    count, items = _items(reader)
    reader.need("FROM")
    _table(reader)
    where = reader.condition() if reader.take("WHERE") else None
    limit = _limit(reader) if reader.take("LIMIT") else None
    if reader.kind:
        raise reader.expected("WHERE, LIMIT or the end")
    columns = None if items is None else tuple(column for column, _ in items)
    return Statement(columns, tuple(name for _, name in items or ()), where, limit, count)


def _alias(text: str) -> str:
    """The table's alias, which must be known before the columns that use it are read."""
    reader = Reader(text.rstrip().removesuffix(";"))
    while reader.kind and not reader.take("FROM"):
        reader.next()
    return _table(reader).lower() if reader.kind else ""


def _table(reader: Reader) -> str:
    name = reader.name()
    if name.lower() != _TABLE:
        raise BadParameter(f"FROM is `{name}`, expected S3Object: an object of CSV is one table")
    if reader.take("["):
        reader.need("*")
        reader.need("]")
    if reader.take("."):
        raise reader.expected("no path: an object of CSV is one table")
    if reader.take("AS"):
        return reader.name()
    if reader.kind in ("word", "quoted") and not reader.is_word(*_CLAUSES):
        return reader.name()
    return ""


def _items(reader: Reader) -> tuple[bool, list[tuple[Column, str]] | None]:
    if reader.take("*"):
        return False, None
    if reader.take("COUNT"):
        reader.need("(")
        reader.need("*")
        reader.need(")")
        if reader.take("AS"):
            reader.name()
        return True, None
    found: list[tuple[Column, str]] = []
    while not found or reader.take(","):
        if reader.is_word(*_FUNCTIONS, "COUNT", "CAST"):
            raise BadParameter(f"`{reader.token}` is not supported after SELECT: name columns, * or COUNT(*)")
        column = reader.column()
        found.append((column, reader.name() if reader.take("AS") else column.name))
    return False, found


def _limit(reader: Reader) -> int:
    if reader.kind != "number" or not reader.token.isdigit():
        raise reader.expected("a whole number")
    return int(reader.next())
