"""Conditions on arrow columns; ``plain`` evaluates the same conditions on one record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from sluice_filters.csv import language
from sluice_filters.csv.language import Pattern

_OPERATORS: Final = {
    "==": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}
_SIMPLE: Final = {"prefix": pc.starts_with, "suffix": pc.ends_with, "inside": pc.match_substring}
_IN_NUMBERS: Final = b"0123456789.+-eE"
_NUMBER: Final = f"^(?:{language.NUMBER})$"
_WHOLE: Final = f"^(?:{language.WHOLE})$"
#: A 64-bit number has at least 18 digits.
_DIGITS: Final = 18


class Columns:
    """Raw columns of one block, and their values, computed once."""

    def __init__(self, raw: Mapping[int, Any], quote: bytes = b"", pairs: Sequence[tuple[bytes, bytes]] = ()) -> None:
        """
        :param raw: binary arrays by position, null where empty without quotes; position -1 always exists
        :param quote: to be removed, if it still encloses fields
        :param pairs: stand-ins of ``mask`` and their originals
        """
        self._raw = raw
        self._quote = quote
        self._pairs = pairs
        self._texts: dict[int, Any] = {}
        self._numbers: dict[tuple[int, bool], tuple[Any, Any]] = {}
        self.length = len(raw[-1])

    def raw(self, place: int) -> Any:
        """The raw fields, None when the records have no such field."""
        return self._raw.get(place)

    def texts(self, place: int) -> Any:
        """The values, None when there is no such field."""
        values = self._values(place)
        return values.fill_null(b"") if values is not None and values.null_count else values

    def _values(self, place: int) -> Any:
        """The values, null where the field is empty."""
        if place not in self._texts:
            self._texts[place] = self._value(self._raw[place]) if place in self._raw else None
        return self._texts[place]

    def _value(self, raw: Any) -> Any:
        data = _data(raw)
        if self._quote and self._quote in data:
            doubled = self._quote * 2
            inner = pc.binary_slice(raw, 1, -1)
            if doubled in data:
                inner = pc.replace_substring(inner, doubled, self._quote)
            raw = pc.if_else(pc.starts_with(raw, self._quote), inner, raw)
        for stand_in, original in self._pairs:
            if stand_in in data:
                raw = pc.replace_substring(raw, stand_in, original)
        return raw

    def numbers(self, place: int, exact: bool) -> tuple[Any, Any]:
        """Return (whole numbers, doubles) of a column; null for a field that is not a number.

        When all fields are whole numbers there are no doubles (None); whole numbers among others are only computed when
        ``exact``.
        """
        key = (place, exact)
        if key not in self._numbers:
            self._numbers[key] = _numbers(self._values(place), exact)
        return self._numbers[key]


def evaluate(condition: language.Condition, columns: Columns) -> Any:
    """Return a boolean array with nulls for unknown."""
    match condition:
        case language.Compare():
            answer = _numeric(condition, columns) if condition.numeric else _textual(condition, columns)
        case language.Like(operand, pattern):
            answer = _like(_text(operand, columns), pattern)
        case language.IsNull(operand):
            answer = _is_null(operand, columns)
        case language.Not(part):
            answer = pc.invert(evaluate(part, columns))
        case language.Group(word, parts):
            join = pc.and_kleene if word == "and" else pc.or_kleene
            answer = evaluate(parts[0], columns)
            for one in parts[1:]:
                answer = join(answer, evaluate(one, columns))
    return pa.repeat(answer, columns.length) if isinstance(answer, pa.Scalar) else answer


def _data(array: Any) -> bytes:
    """Return all values of a binary array, concatenated."""
    buffer = array.buffers()[2]
    if buffer is None or not len(array):
        return b""
    offsets = array.buffers()[1]
    view = memoryview(offsets).cast("i")
    return bytes(memoryview(buffer)[view[array.offset] : view[array.offset + len(array)]])


def _text(operand: language.Operand, columns: Columns) -> Any:
    """Return the values of a column, or a constant; None when there is no such column."""
    if isinstance(operand, language.Column):
        return columns.texts(operand.position)
    return pa.scalar(operand.text, pa.binary())


def _textual(condition: language.Compare, columns: Columns) -> Any:
    left, right = _text(condition.left, columns), _text(condition.right, columns)
    if left is None or right is None:
        return _UNKNOWN
    return _OPERATORS[condition.op](left, right)


def _is_null(operand: language.Operand, columns: Columns) -> Any:
    if isinstance(operand, language.Literal):
        return pa.scalar(False)
    raw = columns.raw(operand.position)
    return pa.scalar(True) if raw is None else pc.is_null(raw)


def _like(texts: Any, pattern: Pattern) -> Any:
    if texts is None:
        return _UNKNOWN
    if isinstance(texts, pa.Scalar):
        return pa.scalar(pattern.matches(texts.as_py()))
    if pattern.simple is None:
        return pa.array([pattern.matches(text) for text in texts.to_pylist()], pa.bool_())
    kind, text = pattern.simple
    return pc.equal(texts, pa.scalar(text, pa.binary())) if kind == "equal" else _SIMPLE[kind](texts, text)


def _numbers(texts: Any, exact: bool) -> tuple[Any, Any]:
    data = _data(texts)
    strings = texts.view(pa.string())
    lengths = pc.binary_length(texts)
    if not data.translate(None, _IN_NUMBERS):  # ASCII, and only characters of numbers
        longest = pc.max(lengths).as_py() or 0
        try:
            if longest <= _DIGITS and not any(mark in data for mark in b".+eE"):
                return strings.cast(pa.int64()), None
            return _split(strings, strings.cast(pa.float64()), exact)
        except pa.ArrowInvalid:
            pass  # some field is not a number
    valid = pc.match_substring_regex(texts, _NUMBER)
    if not pc.any(valid, min_count=0).as_py():
        nothing = pa.nulls(len(texts), pa.float64())
        return None, nothing
    # casting to text checks for UTF-8, which numbers are; the others become null first
    numbers = pc.if_else(valid, texts, pa.scalar(None, pa.binary())).cast(pa.string())
    return _split(numbers, numbers.cast(pa.float64()), exact)


def _split(strings: Any, doubles: Any, exact: bool) -> tuple[Any, Any]:
    """Return the whole numbers as integers where that matters, and all fields as doubles."""
    if not exact:
        return None, doubles
    whole = pc.match_substring_regex(strings, _WHOLE)
    if not pc.any(whole, min_count=0).as_py():
        return None, doubles
    return pc.if_else(whole, strings, pa.scalar(None, pa.string())).cast(pa.int64()), doubles


_UNKNOWN: Final = pa.scalar(None, pa.bool_())


def _numeric(condition: language.Compare, columns: Columns) -> Any:
    """Compare whole numbers exactly, others as doubles."""
    operands = (condition.left, condition.right)
    exact = not any(isinstance(one, language.Literal) and isinstance(one.value, float) for one in operands)
    sides = [_number_side(one, columns, exact) for one in operands]
    if any(whole is None and double is None for whole, double in sides):
        return _UNKNOWN
    (left, left_double), (right, right_double) = sides
    compare = _OPERATORS[condition.op]
    if left is not None and right is not None and left_double is None and right_double is None:
        return compare(left, right)
    doubles = compare(_as_double(left, left_double), _as_double(right, right_double))
    if left is None or right is None:
        return doubles
    exact = compare(left, right)
    return pc.if_else(pc.is_valid(exact), exact, doubles)


def _number_side(operand: language.Operand, columns: Columns, exact: bool) -> tuple[Any, Any]:
    if isinstance(operand, language.Column):
        place = operand.position
        return (None, None) if columns.raw(place) is None else columns.numbers(place, exact)
    value = operand.value
    if isinstance(value, int):
        return pa.scalar(value, pa.int64()), None
    assert isinstance(value, float), value
    return None, pa.scalar(value, pa.float64())


def _as_double(whole: Any, double: Any) -> Any:
    """Return whole numbers rounded to the nearest double."""
    return double if double is not None else pc.cast(whole, pa.float64(), safe=False)
