"""From Spark's filters to conditions of csv_select.

Spark still applies every filter to the rows that it receives, so a condition may keep too many rows, and never too few.
That decides what is pushed: texts unchanged; whole numbers and doubles against literals that a double represents
exactly.  Other types are compared by Spark alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pyspark.sql import datasource as ds
from pyspark.sql.types import ByteType, DataType, DoubleType, IntegerType, LongType, ShortType, StringType

_COMPARISONS: Final[dict[type, str]] = {
    ds.EqualTo: "=",
    ds.EqualNullSafe: "=",
    ds.GreaterThan: ">",
    ds.GreaterThanOrEqual: ">=",
    ds.LessThan: "<",
    ds.LessThanOrEqual: "<=",
}
_WHOLE: Final = (ByteType, ShortType, IntegerType, LongType)
#: Whole numbers up to this one are exact as doubles.
_EXACT: Final = 1 << 53
#: Greatest length of a condition in a header.
LONGEST: Final = 4000


def condition(pushed: ds.Filter, types: Mapping[str, DataType], names: Mapping[str, str]) -> str | None:
    """Return ``pushed`` as a condition; None when only Spark can evaluate it.

    :param types: of the columns, by name
    :param names: names of the columns in the condition
    """
    if isinstance(pushed, ds.Not):
        if isinstance(pushed.child, ds.Not | ds.IsNotNull | ds.EqualNullSafe):
            return None
        inner = condition(pushed.child, types, names)
        return None if inner is None else f"NOT ({inner})"
    path: tuple[str, ...] = getattr(pushed, "attribute", ())
    if len(path) != 1 or path[0] not in names:
        return None
    column, kind = names[path[0]], types[path[0]]
    if isinstance(pushed, ds.IsNotNull):
        return f"{column} IS NOT NULL"
    if isinstance(pushed, ds.In):
        values = [_literal(value, kind) for value in pushed.value if value is not None]
        known = [value for value in values if value is not None]
        return f"{column} IN ({', '.join(known)})" if known and len(known) == len(values) else None
    if type(pushed) in _COMPARISONS:
        literal = _literal(getattr(pushed, "value", None), kind)
        return None if literal is None else f"{column} {_COMPARISONS[type(pushed)]} {literal}"
    if isinstance(pushed, ds.StringStartsWith | ds.StringEndsWith | ds.StringContains) and isinstance(kind, StringType):
        return f"{column} LIKE {_pattern(pushed)}"
    return None


def _literal(value: Any, kind: DataType) -> str | None:
    if isinstance(kind, StringType) and isinstance(value, str):
        return _text(value) if _printable(value) else None
    if isinstance(value, bool):
        return None
    if isinstance(kind, _WHOLE) and isinstance(value, int) and abs(value) < _EXACT:
        return str(value)
    if isinstance(kind, DoubleType) and isinstance(value, int | float) and abs(value) < _EXACT:
        return repr(float(value))
    return None


def _pattern(pushed: ds.StringStartsWith | ds.StringEndsWith | ds.StringContains) -> str:
    escaped = pushed.value.replace("!", "!!").replace("%", "!%").replace("_", "!_")
    before = "" if isinstance(pushed, ds.StringStartsWith) else "%"
    after = "" if isinstance(pushed, ds.StringEndsWith) else "%"
    return f"{_text(before + escaped + after)} ESCAPE '!'"


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _printable(value: str) -> bool:
    """Whether ``value`` can be sent in a header."""
    return not any(ord(one) < 32 or ord(one) == 127 for one in value)
