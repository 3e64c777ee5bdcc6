"""The conditions on CSV rows: ``amount >= 10 AND (city = 'Bern' OR note LIKE 'late%')``.

    condition  = and {OR and}            and = not {AND not}            not = NOT not | test | "(" condition ")"
    test       = operand op operand      op one of = == != <> < <= > >=
               | operand [NOT] IN "(" literal {"," literal} ")"
               | operand [NOT] LIKE 'pattern' [ESCAPE 'c']      % any characters, _ one character
               | operand [NOT] BETWEEN operand AND operand
               | operand IS [NOT] NULL
    operand    = column | literal | CAST "(" operand AS type ")"
    column     = name | "name" | _1 (the first column) ...
    literal    = 12 | -1.5e3 | 'text', '' being a quote inside

Keywords are in any case.  Two sides are compared as numbers when one of them is a number or CAST to one
(INT, INTEGER, FLOAT, DECIMAL, NUMERIC), else as text, byte by byte, which is the order of Unicode.

What a number is: digits with an optional sign, point and exponent (``NUMBER``), nothing around it.  Two whole
numbers of up to 18 digits without + are compared exactly, everything else as IEEE doubles.  A comparison
with a field that is no number, or that the record does not have, is *unknown*: AND, OR and NOT follow
Kleene's three-valued logic, and a record is kept when its condition is true.  NULL is a field that is
missing, or empty without quotes; in a comparison of texts an empty field is the empty text.

The same conditions serve ``X-Csv-Select``, policies and S3 Select.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from sluice_filters.csv.like import Pattern

NUMBER: Final = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
WHOLE: Final = r"-?[0-9]{1,18}"
_NUMBER: Final = re.compile(NUMBER.encode())
_WHOLE: Final = re.compile(WHOLE.encode())


def parse_number(value: bytes) -> int | float | None:
    """The number that a field's value is, or None."""
    if _WHOLE.fullmatch(value):
        return int(value)
    return float(value) if _NUMBER.fullmatch(value) else None


@dataclass(frozen=True, slots=True)
class Column:
    """A field of the record, by name or by position (from 0)."""

    name: str
    index: int | None = None

    def __str__(self) -> str:
        return self.name

    @property
    def position(self) -> int:
        """The index of a column that was resolved."""
        assert self.index is not None, self
        return self.index


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant: text as bytes, or a number."""

    value: bytes | int | float

    @property
    def text(self) -> bytes:
        """The value as it is compared with texts."""
        return self.value if isinstance(self.value, bytes) else repr(self.value).encode()


Operand = Column | Literal


@dataclass(frozen=True, slots=True)
class Compare:
    """``left op right``, as numbers or as texts; a literal stands on the right."""

    op: str
    left: Operand
    right: Operand
    numeric: bool


@dataclass(frozen=True, slots=True)
class Like:
    """Whether the text matches ``pattern`` as a whole."""

    operand: Operand
    pattern: Pattern


@dataclass(frozen=True, slots=True)
class IsNull:
    """Whether the field is missing, or empty without quotes."""

    operand: Operand


@dataclass(frozen=True, slots=True)
class Not:
    """The contrary; of unknown, unknown."""

    part: Condition


@dataclass(frozen=True, slots=True)
class Group:
    """AND or OR of all parts."""

    word: str
    parts: tuple[Condition, ...]


Condition = Compare | Like | IsNull | Not | Group


def list_columns(condition: Condition) -> Iterator[Column]:
    """Every column that ``condition`` looks at."""
    match condition:
        case Compare(_, left, right, _):
            yield from (one for one in (left, right) if isinstance(one, Column))
        case Like(operand, _) | IsNull(operand):
            if isinstance(operand, Column):
                yield operand
        case Not(part):
            yield from list_columns(part)
        case Group(_, parts):
            for one in parts:
                yield from list_columns(one)


def map_columns(condition: Condition, change: Callable[[Column], Column]) -> Condition:
    """``condition`` with ``change(column)`` in the place of each of its columns."""

    def changed(operand: Operand) -> Operand:
        return change(operand) if isinstance(operand, Column) else operand

    match condition:
        case Compare(_, left, right, _):
            return replace(condition, left=changed(left), right=changed(right))
        case Like(operand, _) | IsNull(operand):
            return replace(condition, operand=changed(operand))
        case Not(part):
            return Not(map_columns(part, change))
        case Group(word, parts):
            return Group(word, tuple(map_columns(one, change) for one in parts))


def all_of(*conditions: Condition | None) -> Condition | None:
    """AND of those that are not None."""
    parts = tuple(one for one in conditions if one is not None)
    return Group("and", parts) if len(parts) > 1 else (parts[0] if parts else None)
