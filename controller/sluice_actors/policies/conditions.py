"""Conditions compiled for many actors: which metric clauses are true, as the bits of one number.

Two windows with the same bits have the same residual, so an actor evaluates further only when its
bits change.  Equal conditions share one program.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any
from weakref import WeakValueDictionary

from sluice_actors.metrics.subscription import Observed
from sluice_core.errors import DecodeError
from sluice_core.messages.predicate import OPERATORS, Predicate, compile_predicate
from sluice_dsl.plan import Condition, Reading, residual

Bits = Callable[[Any], int]


class CompiledCondition:
    """One condition over ``metrics``, the labels of its readings; values are in the order of these.

    ``bits(observed)`` returns which metric clauses hold.  Silence satisfies none, so its bits are 0.
    """

    __slots__ = ("__weakref__", "_residuals", "bits", "condition", "metrics")

    def __init__(self, condition: Condition, metrics: Sequence[str]) -> None:
        """
        :raises DecodeError: when the condition is not valid, or has a metric that is not in ``metrics``
        """
        self.condition = condition
        self.metrics = tuple(metrics)
        self._residuals: dict[int, Predicate] = {}
        clauses: list[tuple[int, str, float]] = []
        try:
            _collect(condition, self.metrics, clauses)
            compile_predicate(residual(condition, {}))
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise DecodeError(f"not a condition over {', '.join(metrics)}: `{condition!r}`") from error
        self.bits = _single(clauses) if len(self.metrics) == 1 else _several(clauses)

    def residual(self, bits: int, observed: Observed) -> Predicate:
        """The rest of the condition in a window with these ``bits`` (of ``observed``)."""
        known = self._residuals.get(bits)
        if known is None:
            known = self._residuals[bits] = residual(self.condition, self.values(observed))
        return known

    def values(self, observed: Observed) -> Mapping[str, float | None]:
        """``observed`` by the names of the metrics."""
        if observed is None:
            return {}
        if isinstance(observed, int | float):
            return {self.metrics[0]: observed}
        return dict(zip(self.metrics, observed, strict=True))


class ConditionCache:
    """The programs in use, shared between equal conditions."""

    def __init__(self) -> None:
        self._known: WeakValueDictionary[str, CompiledCondition] = WeakValueDictionary()

    def get(self, condition: Condition, metrics: Sequence[str]) -> CompiledCondition:
        """The program of ``condition``.

        :raises DecodeError: as :class:`CompiledCondition` does
        """
        key = json.dumps([condition, metrics])
        program = self._known.get(key)
        if program is None:
            program = CompiledCondition(condition, metrics)
            self._known[key] = program
        return program


def _collect(condition: Condition, metrics: tuple[str, ...], clauses: list[tuple[int, str, float]]) -> None:
    if isinstance(condition, bool):
        return
    word, *rest = condition
    if word in ("metric", "metric_at"):
        *where, op, limit = rest
        OPERATORS[op]
        clause = (metrics.index(Reading(*where).label), op, float(limit))
        if clause not in clauses:
            clauses.append(clause)
    elif word in ("and", "or"):
        for part in rest:
            _collect(part, metrics, clauses)
    else:
        compile_predicate(condition)


def _single(clauses: Sequence[tuple[int, str, float]]) -> Bits:
    if len(clauses) == 1:
        return _one_clause(*clauses[0][1:])
    tests = [(1 << place, OPERATORS[op], limit) for place, (_, op, limit) in enumerate(clauses)]

    def bits(value: float | None) -> int:
        if value is None:
            return 0
        return sum([bit for bit, compare, limit in tests if compare(value, limit)])

    return bits


def _one_clause(op: str, limit: float) -> Bits:
    # The most frequent comparison, without a further call; True is 1 and False is 0.
    if op == ">":
        return lambda value: value is not None and value > limit
    if op == "<":
        return lambda value: value is not None and value < limit
    return partial(_compared, OPERATORS[op], limit)


def _compared(compare: Callable[[Any, Any], bool], limit: float, value: float | None) -> int:
    return value is not None and compare(value, limit)


def _several(clauses: Sequence[tuple[int, str, float]]) -> Bits:
    tests = [(1 << place, metric, OPERATORS[op], limit) for place, (metric, op, limit) in enumerate(clauses)]

    def bits(values: Sequence[float | None] | None) -> int:
        if values is None:
            return 0
        answer = 0
        for bit, metric, compare, limit in tests:
            value = values[metric]
            if value is not None and compare(value, limit):
                answer |= bit
        return answer

    return bits
