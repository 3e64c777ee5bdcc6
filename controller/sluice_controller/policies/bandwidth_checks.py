"""Errors and warnings about bandwidth objectives on this cluster as it is now, beyond what the language checks.

* A storage policy that Swift does not have is an error while nodes report which exist, and a warning while none
  does.  For an existing policy it is a warning.
* GETs are limited in one place for all tenants: ON STORAGE_NODE has no effect while another objective for GET is in
  force at the proxies.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from sluice_controller.catalog.backend import Backend
from sluice_controller.catalog.bandwidth_report import current_report, shortfall
from sluice_controller.catalog.policy_cache import CachedPolicy
from sluice_core.describe import BANDWIDTH, PROXY, STORAGE_NODE
from sluice_core.messages.bandwidth import CEILINGS, FLOORS, GET, NODE_FLOORS, STORAGE_POLICY
from sluice_core.messages.bandwidth_report import BandwidthReport
from sluice_dsl.compile import Compiled
from sluice_dsl.diagnostics import (
    ERROR,
    UNKNOWN,
    WARNING,
    Diagnostic,
    PolicyErrors,
    Reporter,
    Span,
    closest_match,
    join_words,
)
from sluice_dsl.plan import Plan, PlannedAction
from sluice_dsl.syntax import ast

_OF_GETS: Final = (FLOORS[GET], CEILINGS[GET], NODE_FLOORS[GET])


@dataclass(frozen=True, slots=True)
class _Holder:
    """Who has GETs held back somewhere, in words, and whether always."""

    who: str
    always: bool


#: The place → who has GETs held back there.
_Holders = Mapping[str, _Holder]


def check_bandwidth(
    backend: Backend, text: str, compiled: Sequence[Compiled], others: Iterable[CachedPolicy]
) -> tuple[Compiled, ...]:
    """``compiled``, all that became of ``text``, with the doubts about it among the warnings.

    :param others: the policies that stand beside it
    :raises PolicyErrors: when it names a storage policy that there is not
    """
    if not any(bandwidth_actions(one.plan) for one in compiled):
        return tuple(compiled)
    reporter = Reporter(text)
    policies = _policies(backend, [one.plan for one in compiled])
    mine = ((f"the sentence in line {_line(text, one.sentence)}", one.plan) for one in compiled)
    holders = _holders([*_standing(others), *mine])
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


def bandwidth_status(backend: Backend, cached: CachedPolicy) -> dict[str, Any]:
    """Of a policy that stands: what is missing to keep its promise, and what else keeps it from doing what it says.

    Warnings are about its canonical text.
    """
    if not bandwidth_actions(cached.plan):
        return {"infeasible": None, "warnings": []}
    report = current_report(backend)
    doubts = _standing_doubts(backend, report, cached) if cached.policy.enabled else []
    return {"infeasible": shortfall(report, cached.policy.id), "warnings": [one.to_data() for one in doubts]}


def _standing_doubts(backend: Backend, report: BandwidthReport | None, cached: CachedPolicy) -> list[Diagnostic]:
    sentences = cached.sentences()
    if len(sentences) != 1:
        return []
    reporter = Reporter(cached.policy.text)
    policies = report.policies if report else {}
    others = (one for one in backend.policy_cache.contents().ordered if one.policy.id != cached.policy.id)
    holders = _holders(_standing(others))
    for action, written in _written(cached.plan, sentences[0]):
        if policies:
            _check_storage_policy(action, written, policies, reporter)
        if action.place == STORAGE_NODE:
            _check_place(action, written, holders, reporter)
    return [replace(one, severity=WARNING) for kind in (ERROR, WARNING) for one in reporter.all(kind)]


def bandwidth_actions(plan: Plan) -> list[PlannedAction]:
    """The actions of a plan that set bandwidth."""
    return [one for one in plan.actions if one.kind == BANDWIDTH and one.verb == "set"]


def _written(plan: Plan, sentence: ast.Sentence) -> Iterator[tuple[PlannedAction, ast.Action]]:
    for action, written in zip(plan.actions, sentence.actions, strict=True):
        if action.kind == BANDWIDTH and action.verb == "set":
            yield action, written


def _line(text: str, sentence: ast.Sentence) -> int:
    return text.count("\n", 0, sentence.span[0]) + 1


# -- storage policies


def _policies(backend: Backend, plans: Iterable[Plan]) -> Mapping[str, str]:
    """The storage policies that nodes tell of now, by index; asked for only when a plan names one."""
    if not any(STORAGE_POLICY in one.params for plan in plans for one in bandwidth_actions(plan)):
        return {}
    report = current_report(backend)
    return report.policies if report else {}


def _check_storage_policy(
    action: PlannedAction, written: ast.Action, policies: Mapping[str, str], reporter: Reporter
) -> None:
    given = action.params.get(STORAGE_POLICY)
    if given is None:
        return
    name, span = str(given), _span(written, STORAGE_POLICY)
    if not policies:
        reporter.warn(f"whether swift has a storage policy `{name}` is not known: no node tells now", span)
    elif name not in policies and name.lower() not in {one.lower() for one in policies.values()}:
        miss = closest_match(name, policies.values())
        known = "" if miss else f", expected {join_words([f'`{one}`' for one in policies.values()])}"
        reporter.error(f"swift has no storage policy `{name}`{known}", span, miss, UNKNOWN)


def _span(written: ast.Action, name: str) -> Span:
    """Where a parameter's value stands; one that an alias brings is where that is."""
    return next((one.value.span for one in written.parameters if one.name.text == name), written.keyword.span)


# -- places


def _standing(others: Iterable[CachedPolicy]) -> Iterator[tuple[str, Plan]]:
    for one in others:
        if one.policy.enabled:
            yield f"policy `{one.policy.id}`", one.plan


def _holders(plans: Iterable[tuple[str, Plan]]) -> _Holders:
    """The first for each place; one that always holds before one with an actor."""
    found: dict[str, _Holder] = {}
    for who, plan in plans:
        for action in plan.actions:
            if action.kind == BANDWIDTH and _is_of_gets(action):
                first = found.get(action.place)
                if first is None or (plan.condition is True and not first.always):
                    found[action.place] = _Holder(who, plan.condition is True)
    return found


def _is_of_gets(action: PlannedAction) -> bool:
    return action.verb == "set" and any(name in action.params for name in _OF_GETS)


def _check_place(action: PlannedAction, written: ast.Action, holders: _Holders, reporter: Reporter) -> None:
    other = holders.get(PROXY if action.place == STORAGE_NODE else STORAGE_NODE)
    if other is None or not _is_of_gets(action):
        return
    if action.place == STORAGE_NODE:
        when = "" if other.always else " while it holds"
        message = f"GETs are held back at the proxies all the same, where {other.who} has them{when}"
    else:
        message = f"with this GETs are held back at the proxies, those of {other.who}, too, which is ON STORAGE_NODE"
    reporter.warn(message, written.place_span if written.place else written.keyword.span)
