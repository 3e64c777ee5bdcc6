"""The SQL of S3 Select that is answered, with the conditions of csv_select:

SELECT * | COUNT(*) | column [AS name] {, column [AS name]}
  FROM S3Object [[*]] [[AS] alias] [WHERE condition] [LIMIT number]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sluice_filters.api import BadParameter
from sluice_filters.csv.language import Column, Condition
from sluice_filters.csv.parser import ConditionParser

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
    reader = ConditionParser(text.rstrip().removesuffix(";"), {_TABLE, _alias(text)})
    reader.expect("SELECT")
    count, items = _items(reader)
    reader.expect("FROM")
    _table(reader)
    where = reader.condition() if reader.accept("WHERE") else None
    limit = _limit(reader) if reader.accept("LIMIT") else None
    if reader.kind:
        raise reader.expected("WHERE, LIMIT or the end")
    columns = None if items is None else tuple(column for column, _ in items)
    return Statement(columns, tuple(name for _, name in items or ()), where, limit, count)


def _alias(text: str) -> str:
    """The table's alias, which must be known before the columns that use it are read."""
    reader = ConditionParser(text.rstrip().removesuffix(";"))
    while reader.kind and not reader.accept("FROM"):
        reader.next()
    return _table(reader).lower() if reader.kind else ""


def _table(reader: ConditionParser) -> str:
    name = reader.name()
    if name.lower() != _TABLE:
        raise BadParameter(f"FROM is `{name}`, expected S3Object: an object of CSV is one table")
    if reader.accept("["):
        reader.expect("*")
        reader.expect("]")
    if reader.accept("."):
        raise reader.expected("no path: an object of CSV is one table")
    if reader.accept("AS"):
        return reader.name()
    if reader.kind in ("word", "quoted") and not reader.is_word(*_CLAUSES):
        return reader.name()
    return ""


def _items(reader: ConditionParser) -> tuple[bool, list[tuple[Column, str]] | None]:
    if reader.accept("*"):
        return False, None
    if reader.accept("COUNT"):
        reader.expect("(")
        reader.expect("*")
        reader.expect(")")
        if reader.accept("AS"):
            reader.name()
        return True, None
    found: list[tuple[Column, str]] = []
    while not found or reader.accept(","):
        if reader.is_word(*_FUNCTIONS, "COUNT", "CAST"):
            raise BadParameter(f"`{reader.token}` is not supported after SELECT: name columns, * or COUNT(*)")
        column = reader.column()
        found.append((column, reader.name() if reader.accept("AS") else column.name))
    return False, found


def _limit(reader: ConditionParser) -> int:
    if reader.kind != "number" or not reader.token.isdigit():
        raise reader.expected("a whole number")
    return int(reader.next())
