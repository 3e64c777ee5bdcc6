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
numbers of up to 18 digits without + are compared exactly, others as IEEE doubles.  A comparison
with a field that is not a number, or is missing, is *unknown*: AND, OR and NOT follow
Kleene's three-valued logic, and a record is kept when its condition is true.  NULL is a field that is
missing, or empty without quotes; in a comparison of texts an empty field is the empty text.

LIKE takes time proportional to text × pattern.  A single regular expression of several ``.*`` would backtrack without
end on hostile texts, so the pieces between the ``%`` are found one after the other, each at its leftmost match.

The same conditions serve ``X-Csv-Select``, policies and S3 Select.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final

NUMBER: Final = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
WHOLE: Final = r"-?[0-9]{1,18}"
_NUMBER: Final = re.compile(NUMBER.encode())
_WHOLE: Final = re.compile(WHOLE.encode())
#: One UTF-8 character; in invalid UTF-8, one byte with the bytes that look like its continuation.
_CHARACTER: Final = rb"(?:[\x00-\x7f]|[\x80-\xff][\x80-\xbf]*)"


@dataclass(frozen=True, slots=True)
class Pattern:
    """The pieces between ``%``, as regular expressions without repetition; ``text`` if it is plain text."""

    head: re.Pattern[bytes]
    middle: tuple[re.Pattern[bytes], ...]
    tail: re.Pattern[bytes] | None
    #: (kind, text) when the pattern is one of ``equal``, ``prefix``, ``suffix`` and ``inside``.
    simple: tuple[str, bytes] | None

    def matches(self, text: bytes) -> bool:
        """Whether the pattern covers the whole of ``text``."""
        if self.tail is None:
            return self.head.fullmatch(text) is not None
        match = self.head.match(text)
        if match is None:
            return False
        for piece in self.middle:
            match = piece.search(text, match.end())
            if match is None:
                return False
        return self.tail.search(text, match.end()) is not None


def compile_pattern(text: bytes, escape: bytes = b"") -> Pattern:
    """Return the pattern of ``text`` after LIKE; ``escape`` is one byte or none."""
    pieces = _pieces(text, escape)
    expressions = [b"".join(_CHARACTER if mark is None else re.escape(mark) for mark in piece) for piece in pieces]
    plain = [b"".join(mark for mark in piece if mark is not None) for piece in pieces]
    simple = None if any(None in piece for piece in pieces) else _simple(plain)
    head = re.compile(expressions[0], re.DOTALL)
    if len(pieces) == 1:
        return Pattern(head, (), None, simple)
    middle = tuple(re.compile(one, re.DOTALL) for one in expressions[1:-1] if one)
    return Pattern(head, middle, re.compile(expressions[-1] + rb"\Z", re.DOTALL), simple)


def _pieces(text: bytes, escape: bytes) -> list[list[bytes | None]]:
    """The bytes between ``%``; None stands for ``_``."""
    pieces: list[list[bytes | None]] = [[]]
    marks = iter([text[place : place + 1] for place in range(len(text))])
    for mark in marks:
        if escape and mark == escape:
            pieces[-1].append(next(marks, b""))
        elif mark == b"%":
            pieces.append([])
        else:
            pieces[-1].append(None if mark == b"_" else mark)
    return pieces


def _simple(plain: list[bytes]) -> tuple[str, bytes] | None:
    match plain:
        case [only]:
            return "equal", only
        case [head, b""] if head:
            return "prefix", head
        case [b"", tail] if tail:
            return "suffix", tail
        case [b"", middle, b""] if middle:
            return "inside", middle
    return None


def parse_number(value: bytes) -> int | float | None:
    """Return the number in a field's value, or None."""
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
        """The index of a resolved column."""
        assert self.index is not None, self
        return self.index


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant: text as bytes, or a number."""

    value: bytes | int | float

    @property
    def text(self) -> bytes:
        """The value in comparisons with texts."""
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
    """The negation; unknown stays unknown."""

    part: Condition


@dataclass(frozen=True, slots=True)
class Group:
    """AND or OR of all parts."""

    word: str
    parts: tuple[Condition, ...]


Condition = Compare | Like | IsNull | Not | Group


def list_columns(condition: Condition) -> Iterator[Column]:
    """Yield every column in ``condition``."""
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
    """Return ``condition`` with ``change(column)`` in the place of each of its columns."""

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
    """Return the AND of the conditions that are not None."""
    parts = tuple(one for one in conditions if one is not None)
    return Group("and", parts) if len(parts) > 1 else (parts[0] if parts else None)
