"""A new policy against the existing ones: conflicts, and pipelines that it replaces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from sluice_core.describe import BANDWIDTH, MOTIF
from sluice_core.messages.policies import CONTAINER, LEVELS, LEVELS_ABOUT, NAME, TENANT, Target
from sluice_core.resolve import Identity, identity
from sluice_dsl.catalogue.base import Catalogue
from sluice_dsl.checks.actions import SET
from sluice_dsl.checks.placement import change_same_bytes, violates_stage_order
from sluice_dsl.diagnostics import CONFLICT, Reporter, Span, join_words
from sluice_dsl.plan import Plan, PlannedAction
from sluice_dsl.syntax import ast


@dataclass(frozen=True)
class ExistingPolicy:
    """An existing policy, or (with its ``line``) an earlier sentence of the same text."""

    id: str
    plan: Plan
    line: int = 0

    @cached_property
    def account(self) -> str:
        """The account in the target's name; empty when the policy may apply to every account."""
        return _account(self.plan.target)

    def __str__(self) -> str:
        return f"the sentence in line {self.line}" if self.line else f"policy `{self.id}`"


def check_conflicts(
    plan: Plan, sentence: ast.Sentence, existing: Sequence[ExistingPolicy], catalogue: Catalogue, reporter: Reporter
) -> None:
    """Report static policies that contradict ``plan`` and, as warnings, the actions that it would replace."""
    written = [action.keyword for action in sentence.actions if catalogue.action(action.keyword.text)]
    spans = {_meaning(action): word.span for action, word in zip(plan.actions, written, strict=True)}
    account = _account(plan.target)
    # of many thousands of policies only a few apply to this account: only these are checked
    near = [one for one in existing if one.account in (account, "")] if account else existing
    for other in near:
        if _same_scope(plan.target, other.plan.target):
            _check_same_scope(plan, other, spans, reporter)
            _check_crossing(plan, other, spans, catalogue, reporter)
        elif _narrower_and_inside(plan.target, other.plan.target):
            _warn_of_drops(plan, other, sentence.target.span, reporter)
            _warn_of_what_stays(plan, other, spans, reporter)
            _check_crossing(plan, other, spans, catalogue, reporter, inherited=other.plan)
        elif _narrower_and_inside(other.plan.target, plan.target):
            _check_crossing(plan, other, spans, catalogue, reporter, inherited=plan)


def targets_overlap(one: Target, other: Target) -> bool:
    """Whether an object or volume may be in both; members of a group are not looked up."""
    return _same_scope(one, other) or _narrower_and_inside(one, other) or _narrower_and_inside(other, one)


def _account(target: Target) -> str:
    return target.name.partition("/")[0] if target.select == NAME else ""


def _same_scope(one: Target, other: Target) -> bool:
    return (one.level, one.select, one.name) == (other.level, other.select, other.name)


def _meaning(action: PlannedAction) -> Identity:
    return identity(action.keyword, action.params)


def _check_same_scope(plan: Plan, other: ExistingPolicy, spans: dict[Identity, Span], reporter: Reporter) -> None:
    if plan.dynamic or other.plan.dynamic:
        return  # the newer wins while both hold
    theirs = [_meaning(action) for action in _setting(other.plan)]
    for action in plan.actions:
        meaning = _meaning(action)
        span = spans[meaning]
        if action.verb == SET:
            if meaning not in theirs:
                continue
            message = f"{other} sets `{action.keyword}` for {describe_target(other.plan.target)} already"
            reporter.error(f"{message}; delete it first or join both in one sentence", span, code=CONFLICT)
        elif any(keyword == action.keyword for keyword, _ in theirs):
            message = f"{other} sets `{action.keyword}` for the same target; this DELETE, being newer, wins"
            reporter.warn(message, span, code=CONFLICT)


def _check_crossing(
    plan: Plan,
    other: ExistingPolicy,
    spans: dict[Identity, Span],
    catalogue: Catalogue,
    reporter: Reporter,
    inherited: Plan | None = None,
) -> None:
    """Warn of filters of two policies in one pipeline; of the wider plan only ``inherited`` actions are in it."""
    ours, theirs = (
        [one for one in _setting(each) if each is not inherited or one.protective] for each in (plan, other.plan)
    )
    ended = {one.keyword for each in (plan, other.plan) if each is not inherited for one in each.actions}
    for action in ours:
        for their in theirs:
            if inherited is not None and (action if inherited is plan else their).keyword in ended:
                continue
            infos = [catalogue.action(action.keyword), catalogue.action(their.keyword)]
            if violates_stage_order(action, their) and infos[0] and infos[1] and change_same_bytes(infos[0], infos[1]):
                reporter.warn(
                    f"`{action.keyword}` and `{their.keyword}` of {other} run against the order of their"
                    " stages, since the proxy comes before the storage node",
                    spans[_meaning(action)],
                )


def _setting(plan: Plan) -> list[PlannedAction]:
    return [action for action in plan.actions if action.verb == SET]


def _narrower_and_inside(narrow: Target, wide: Target) -> bool:
    """True when ``narrow`` wins over ``wide`` for some object, or volume, to which both may apply."""
    if narrow.level not in LEVELS or wide.level not in LEVELS or narrow.rank() >= wide.rank():
        return False
    if len({LEVELS_ABOUT[one.level] for one in (narrow, wide) if one.level in LEVELS_ABOUT}) > 1:
        return False
    if narrow.select != NAME or wide.select != NAME or not wide.name:
        return True
    return narrow.name.startswith(wide.name + "/")


def _warn_of_drops(plan: Plan, other: ExistingPolicy, span: Span, reporter: Reporter) -> None:
    # each keyword of motifs is resolved by itself
    kinds = {(action.kind, what) for action in plan.actions for what in action.about if action.kind != MOTIF}
    named = {action.keyword for action in plan.actions}
    lost = [
        f"`{action.keyword}`"
        for action in _setting(other.plan)
        if any((action.kind, what) in kinds for what in action.about)
        and action.keyword not in named
        and not action.protective
    ]
    if lost:
        when = "" if plan.condition is True else "while its condition holds, "
        replaced = f"what {other} does for {describe_target(other.plan.target)}"
        reporter.warn(f"{when}this replaces {replaced}: drops {join_words(lost, 'and')}", span)


def _warn_of_what_stays(plan: Plan, other: ExistingPolicy, spans: dict[Identity, Span], reporter: Reporter) -> None:
    """Warn that a DELETE for a container does not end the objectives of its tenant."""
    if (plan.target.level, other.plan.target.level) != (CONTAINER, TENANT):
        return
    if any(action.kind == BANDWIDTH for action in _setting(other.plan)):
        for action in plan.actions:
            if action.kind == BANDWIDTH and action.verb != SET:
                message = f"what {other} sets for {describe_target(other.plan.target)} stays"
                reporter.warn(
                    f"{message}: this ends objectives of containers, whose bytes then count for their tenant",
                    spans[_meaning(action)],
                )


def describe_target(target: Target) -> str:
    """``target`` in words."""
    shown = f"`{target.label or target.name}`"
    if target.select == "all":
        return f"all {target.level}s"
    if target.select == "group":
        return f"the {target.level}s of group {shown}"
    return f"{target.level} {shown}" if target.name else f"the {target.level}"
