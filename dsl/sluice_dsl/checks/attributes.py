"""Conditions on attributes of the object: when a filter knows them, and sentences that could never act.

A condition may test size, type and tags of the object, and each filter acts on requests of some methods.  An attribute
that is not known when the filter begins makes its clause unknown, and an unknown clause does not hold
(``sluice_core.messages.predicate``).  :func:`attribute_times` returns when an attribute is known.  A condition that can
hold for no request that the filter acts on is refused; a condition that holds for only some of its methods gives a
warning.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any, Final

from sluice_core.describe import FILTER, OBJECT_METHODS, OBJECTS, PROXY, REQUEST_ATTRIBUTES, ActionInfo
from sluice_dsl.catalogue.base import Catalogue
from sluice_dsl.diagnostics import UNKNOWN, Reporter, Span, join_words
from sluice_dsl.plan import Condition, Plan
from sluice_dsl.syntax import ast

#: When an attribute is known: with the request; by the first bytes of the upload; by an additional HEAD request;
#: with the answer, or the copy in the cache; in part, by the extension of the object's name; never before the filter
#: acts.
REQUEST: Final = "request"
SAMPLE: Final = "sample"
HEAD: Final = "HEAD"
ANSWER: Final = "answer"
NAME: Final = "name"
NEVER: Final = "never"

#: The attributes of the object by the word of their clauses.
OBJECT_ATTRIBUTES: Final = {one.type: one.name for one in REQUEST_ATTRIBUTES if one.type != "method"}
#: Values that a clause may have for some request; None is unknown.
_Values = frozenset[bool | None]
_ANY: Final[_Values] = frozenset({True, False})
_UNKNOWN: Final[_Values] = frozenset({None})


def acting_methods(info: ActionInfo) -> tuple[str, ...]:
    """The methods of the requests on which a filter acts when a policy sets it."""
    if info.on_request:
        return info.methods or OBJECT_METHODS
    return tuple(method for method, acts in (("PUT", info.on_put), ("GET", info.on_get)) if acts)


def attribute_times(info: ActionInfo, place: str, method: str) -> Mapping[str, str]:
    """Return attribute (key of :data:`OBJECT_ATTRIBUTES`) → when the filter knows it for requests of ``method``.

    The size of a PUT without Content-Length is not known in any case.
    """
    if method == "PUT":
        sampled = place == PROXY or not info.on_request
        return {**dict.fromkeys(OBJECT_ATTRIBUTES, REQUEST), "compressibility": SAMPLE if sampled else NEVER}
    if not info.on_request or (place == PROXY and info.on_answer and method in ("GET", "HEAD")):
        when = ANSWER
    elif place == PROXY and method in ("POST", "DELETE"):
        when = HEAD
    else:
        return {**dict.fromkeys(OBJECT_ATTRIBUTES, NEVER), "type": NAME}
    return {**dict.fromkeys(OBJECT_ATTRIBUTES, when), "compressibility": NEVER}


def check_attributes(
    sentence: ast.Sentence, plan: Plan, catalogue: Catalogue, reporter: Reporter, kept: bool = False
) -> None:
    """Report the filters of ``sentence`` that can never act under its condition.

    :param plan: of the sentence
    :param kept: the text was accepted before: errors for new text become warnings
    """
    if sentence.condition is None or reporter.has_error_within(sentence.span):
        return
    report = reporter.warn if kept else reporter.error
    for action, written in zip(plan.actions, sentence.actions, strict=True):
        info = catalogue.action(action.keyword)
        if info is None or action.kind != FILTER or OBJECTS not in action.about:
            continue
        methods = acting_methods(info)
        possible = [one for one in methods if _may_hold(plan.condition, one, dict.fromkeys(OBJECT_ATTRIBUTES, REQUEST))]
        holding = [one for one in possible if _may_hold(plan.condition, one, attribute_times(info, action.place, one))]
        acts = f"`{info.keyword}` acts on {join_words(methods, 'and')}"
        silent = [one for one in possible if one not in holding]
        if not possible:
            span = _clause_span(sentence, "METHOD") or written.keyword.span
            report(f"{acts}, and the condition holds for none of these requests", span)
        elif silent:
            name = _missing(plan.condition, info, action.place, silent[0])
            span = _clause_span(sentence, name) or written.keyword.span
            if holding:
                where = join_words(silent, "and")
                reporter.warn(f"{acts}; on {where} {name} is not known, so the condition does not hold there", span)
            else:
                report(f"{acts}, before {name} is known: the condition would never hold", span, code=UNKNOWN)


def _may_hold(condition: Condition, method: str, times: Mapping[str, str]) -> bool:
    return True in _values(condition, method, times)


def _values(condition: Condition, method: str, times: Mapping[str, str]) -> _Values:
    """Return the possible values of ``condition`` for requests of ``method``; clauses are taken as independent."""
    if isinstance(condition, bool):
        return frozenset({condition})
    word, *rest = condition
    if word in ("metric", "metric_at"):
        return _ANY
    if word == "not":
        return frozenset(None if one is None else not one for one in _values(rest[0], method, times))
    if word in ("and", "or"):
        parts = [_values(part, method, times) for part in rest]
        return frozenset(_join(word, values) for values in product(*parts))
    return _leaf_values(word, rest, method, times)


def _leaf_values(word: str, rest: list[Any], method: str, times: Mapping[str, str]) -> _Values:
    if word == "method":
        return frozenset({method in {name.upper() for name in rest[0]}})
    if times[word] == NEVER:
        return _UNKNOWN
    if times[word] == NAME:  # a matching extension makes it true; it is never known to be false
        return _UNKNOWN | ({True} if any("/" not in pattern for pattern in rest[0]) else set())
    return _ANY


def _join(word: str, values: tuple[bool | None, ...]) -> bool | None:
    absorbing = word == "or"
    if absorbing in values:
        return absorbing
    return None if None in values else not absorbing


def _missing(condition: Condition, info: ActionInfo, place: str, method: str) -> str:
    """Return the name of the first attribute in ``condition`` that is not known in time."""
    times = attribute_times(info, place, method)
    return next(OBJECT_ATTRIBUTES[word] for word in _words(condition) if times.get(word) in (NEVER, NAME))


def _words(condition: Condition) -> Iterator[str]:
    if isinstance(condition, bool):
        return
    word, *rest = condition
    if word in ("and", "or", "not"):
        for part in rest:
            yield from _words(part)
    else:
        yield word


def _clause_span(sentence: ast.Sentence, attribute: str) -> Span | None:
    """The span of the first clause about ``attribute``."""
    return next((one.span for one in ast.clauses(sentence.condition) if one.subject.text == attribute), None)
