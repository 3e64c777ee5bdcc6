"""Errors and warnings about bandwidth objectives: conflicts with existing objectives, and unknown storage policies.

* An unknown storage policy is an error if Swift's storage policies are known, and else a warning.  In an existing
  policy it is a warning.
* GETs are limited in one place for all tenants: ON STORAGE_NODE has no effect while another objective for GET is in
  force at the proxies.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from sluice_core.describe import BANDWIDTH, PROXY, STORAGE_NODE
from sluice_core.messages.bandwidth import CEILINGS, FLOORS, GET, NODE_FLOORS, STORAGE_POLICY
from sluice_dsl.compile import Compiled
from sluice_dsl.diagnostics import (
    ERROR,
    UNKNOWN,
    WARNING,
    Diagnostic,
    PolicyErrors,
    Reporter,
    Span,
    UnknownWord,
    join_words,
)
from sluice_dsl.plan import Plan, PlannedAction
from sluice_dsl.syntax import ast

_OF_GETS: Final = (FLOORS[GET], CEILINGS[GET], NODE_FLOORS[GET])

_NOBODY_KNOWS: Final[Mapping[str, str]] = {}

#: The other policy or sentence, in words, and its plan.
Standing = tuple[str, Plan]


@dataclass(frozen=True, slots=True)
class _Holder:
    """A policy that limits GETs at one place, in words, and whether it always does."""

    who: str
    always: bool


#: Place → the policy that limits GETs there.
_Holders = Mapping[str, _Holder]


def check_bandwidth(
    text: str,
    compiled: Sequence[Compiled],
    standing: Iterable[Standing] = (),
    policies: Mapping[str, str] = _NOBODY_KNOWS,
) -> tuple[Compiled, ...]:
    """Return ``compiled``, the result of ``text``, with the doubts added to the warnings.

    :param policies: Swift's storage policies by index; empty when they are unknown
    :raises PolicyErrors: when a sentence names an unknown storage policy
    """
    if not any(bandwidth_actions(one.plan) for one in compiled):
        return tuple(compiled)
    reporter = Reporter(text)
    mine = ((f"the sentence in line {_line(text, one.sentence)}", one.plan) for one in compiled)
    holders = _holders([*standing, *mine])
    for one in compiled:
        for action, written in _written(one.plan, one.sentence):
            _check_storage_policy(action, written, policies, reporter)
            _check_place(action, written, holders, reporter)
    errors = reporter.all(ERROR)
    if errors:
        raise PolicyErrors(errors, [*(each for one in compiled for each in one.warnings), *reporter.all(WARNING)])
    return tuple(
        replace(one, warnings=(*one.warnings, *reporter.all(WARNING, within=one.sentence.span))) for one in compiled
    )


def standing_doubts(
    text: str, plan: Plan, sentence: ast.Sentence, others: Iterable[Standing], policies: Mapping[str, str]
) -> list[Diagnostic]:
    """Return warnings about an existing policy: the reasons why it has no effect.

    :param policies: Swift's storage policies by index; empty when they are unknown
    """
    reporter = Reporter(text)
    holders = _holders(others)
    for action, written in _written(plan, sentence):
        if policies:
            _check_storage_policy(action, written, policies, reporter)
        if action.place == STORAGE_NODE:
            _check_place(action, written, holders, reporter)
    return [replace(one, severity=WARNING) for kind in (ERROR, WARNING) for one in reporter.all(kind)]


def bandwidth_actions(plan: Plan) -> list[PlannedAction]:
    """The actions of a plan that set bandwidth."""
    return [one for one in plan.actions if one.kind == BANDWIDTH and one.verb == "set"]


def names_storage_policy(plan: Plan) -> bool:
    """Whether a plan sets bandwidth for one storage policy."""
    return any(STORAGE_POLICY in one.params for one in bandwidth_actions(plan))


def _written(plan: Plan, sentence: ast.Sentence) -> Iterator[tuple[PlannedAction, ast.Action]]:
    for action, written in zip(plan.actions, sentence.actions, strict=True):
        if action.kind == BANDWIDTH and action.verb == "set":
            yield action, written


def _line(text: str, sentence: ast.Sentence) -> int:
    return text.count("\n", 0, sentence.span[0]) + 1


def _check_storage_policy(
    action: PlannedAction, written: ast.Action, policies: Mapping[str, str], reporter: Reporter
) -> None:
    given = action.params.get(STORAGE_POLICY)
    if given is None:
        return
    name, span = str(given), _span(written, STORAGE_POLICY)
    if not policies:
        reporter.warn(f"whether swift has a storage policy `{name}` is not known: no node reports its policies", span)
    elif name not in policies and name.lower() not in {one.lower() for one in policies.values()}:
        unknown = UnknownWord(name, policies.values())
        known = f", expected {join_words([f'`{policy}`' for policy in policies.values()])}"
        shown = "" if unknown.near_miss else known
        reporter.error(f"swift has no storage policy `{name}`{shown}", span, unknown, UNKNOWN)


def _span(written: ast.Action, name: str) -> Span:
    """The span of a parameter's value; the span of the alias, if the parameter comes with an alias."""
    return next((one.value.span for one in written.parameters if one.name.text == name), written.keyword.span)


def _holders(plans: Iterable[tuple[str, Plan]]) -> _Holders:
    """Return the first policy for each place; unconditional ones before ones with an actor."""
    first_holders: dict[str, _Holder] = {}
    for who, plan in plans:
        for action in plan.actions:
            if action.kind == BANDWIDTH and _is_of_gets(action):
                first = first_holders.get(action.place)
                if first is None or (plan.condition is True and not first.always):
                    first_holders[action.place] = _Holder(who, plan.condition is True)
    return first_holders


def _is_of_gets(action: PlannedAction) -> bool:
    return action.verb == "set" and any(name in action.params for name in _OF_GETS)


def _check_place(action: PlannedAction, written: ast.Action, holders: _Holders, reporter: Reporter) -> None:
    other = holders.get(PROXY if action.place == STORAGE_NODE else STORAGE_NODE)
    if other is None or not _is_of_gets(action):
        return
    if action.place == STORAGE_NODE:
        when = "" if other.always else " while it holds"
        message = f"GETs are still held back at the proxies, because of {other.who}{when}"
    else:
        message = f"this holds GETs back at the proxies, also those of {other.who}, which is ON STORAGE_NODE"
    reporter.warn(message, written.place_span if written.place else written.keyword.span)
