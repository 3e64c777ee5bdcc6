"""The definition of csv_select in plain Python: one record after the other, standard library only.

The vectorised engine processes the text that it can, with the same output; this one runs where pyarrow is not installed
and on text that is too irregular for it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence

from sluice_core.messages.predicate import OPERATORS
from sluice_filters.csv import language
from sluice_filters.csv.dialect import Dialect
from sluice_filters.csv.query import Plan, check_added

#: Takes the raw fields of a record; returns None for unknown.
Test = Callable[[Sequence[bytes]], bool | None]
Getter = Callable[[Sequence[bytes]], bytes | None]
Number = int | float


def select(plan: Plan, text: bytes) -> bytes:
    """Return the selection of ``plan`` from ``text``, whole records."""
    dialect = plan.dialect
    test = compile_condition(plan.where, dialect) if plan.where is not None else None
    places = sorted(plan.columns or ())
    kept: list[bytes] = []
    added = 0
    for record in dialect.records(text):
        fields = dialect.fields(record) if test is not None or plan.columns is not None else ()
        if test is not None and test(fields) is not True:
            continue
        if plan.columns is not None:
            added += len(places) - bisect_left(places, len(fields))
            check_added(added)
            record = dialect.delimiter.join([fields[one] if one < len(fields) else b"" for one in plan.columns])
        kept.append(record)
    return b"\n".join([*kept, b""]) if kept else b""


def compile_condition(condition: language.Condition, dialect: Dialect) -> Test:
    """Return ``condition``, its columns resolved, as a function."""
    match condition:
        case language.Compare():
            return _numeric(condition, dialect) if condition.numeric else _textual(condition, dialect)
        case language.Like(operand, pattern):
            get = _getter(operand, dialect)
            return lambda fields: None if (value := get(fields)) is None else pattern.matches(value)
        case language.IsNull(operand):
            return _is_null(operand)
        case language.Not(part):
            inner = compile_condition(part, dialect)
            return lambda fields: None if (value := inner(fields)) is None else not value
        case language.Group(word, parts):
            return _group([compile_condition(one, dialect) for one in parts], absorbing=word == "or")


def _group(tests: Sequence[Test], absorbing: bool) -> Test:
    def test(fields: Sequence[bytes]) -> bool | None:
        answer: bool | None = not absorbing
        for one in tests:
            value = one(fields)
            if value is absorbing:
                return absorbing
            if value is None:
                answer = None
        return answer

    return test


def _getter(operand: language.Operand, dialect: Dialect) -> Getter:
    """Return a function for the value as text; None when the record has no such field."""
    if isinstance(operand, language.Literal):
        constant = operand.text
        return lambda fields: constant
    index = operand.position
    return lambda fields: dialect.value(fields[index]) if index < len(fields) else None


def _is_null(operand: language.Operand) -> Test:
    if isinstance(operand, language.Literal):
        return lambda fields: False
    index = operand.position
    return lambda fields: index >= len(fields) or not fields[index]


def _textual(condition: language.Compare, dialect: Dialect) -> Test:
    left, right = _getter(condition.left, dialect), _getter(condition.right, dialect)
    compare = OPERATORS[condition.op]

    def test(fields: Sequence[bytes]) -> bool | None:
        one, other = left(fields), right(fields)
        return None if one is None or other is None else compare(one, other)

    return test


def _number(operand: language.Operand, dialect: Dialect) -> Callable[[Sequence[bytes]], Number | None]:
    if isinstance(operand, language.Literal):
        constant = operand.value
        assert not isinstance(constant, bytes), constant
        return lambda fields: constant
    get = _getter(operand, dialect)
    return lambda fields: None if (value := get(fields)) is None else language.parse_number(value)


def _numeric(condition: language.Compare, dialect: Dialect) -> Test:
    left, right = _number(condition.left, dialect), _number(condition.right, dialect)
    compare = OPERATORS[condition.op]

    def test(fields: Sequence[bytes]) -> bool | None:
        value, other = left(fields), right(fields)
        if value is None or other is None:
            return None
        if isinstance(value, int) and isinstance(other, int):
            return compare(value, other)
        return compare(float(value), float(other))

    return test
