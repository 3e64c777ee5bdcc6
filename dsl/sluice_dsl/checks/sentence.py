"""Checks one sentence against a catalogue: its plan and its problems."""

from __future__ import annotations

from sluice_core.describe import FILTER
from sluice_core.messages.policies import CLUSTER, VOLUME, Target
from sluice_dsl.catalogue.base import Catalogue
from sluice_dsl.checks.actions import compile_actions
from sluice_dsl.checks.bandwidth_checks import check_condition
from sluice_dsl.checks.conditions import ConditionCompiler
from sluice_dsl.checks.targets import resolve_target
from sluice_dsl.diagnostics import VALUE, Reporter
from sluice_dsl.plan import TRANSIENT, Plan
from sluice_dsl.syntax import ast
from sluice_dsl.syntax.units import UnitError, read_quantity


def check_sentence(sentence: ast.Sentence, catalogue: Catalogue, reporter: Reporter) -> Plan | None:
    """Return the plan of ``sentence``; None when its target has an error.

    All problems go to ``reporter``; with an error among them the plan must not be used.
    """
    target = resolve_target(sentence.target, catalogue, reporter)
    conditions = ConditionCompiler(catalogue, target, reporter)
    condition = conditions.compile(sentence.condition) if sentence.condition else True
    sustained = _sustained(sentence, bool(conditions.metrics), reporter)
    actions = compile_actions(sentence, target, catalogue, reporter)
    check_condition(sentence.condition, actions, reporter)
    _check_lives(sentence, bool(conditions.metrics), reporter)
    _check_existing(sentence, target, bool(conditions.metrics), catalogue, reporter)
    if target is None:
        return None
    metrics, readings = tuple(sorted(conditions.metrics)), tuple(sorted(conditions.readings))
    if all(not one.level for one in readings):
        return Plan(target, actions, condition, sustained, metrics, target.level)
    # no metric depends on the target: the condition is evaluated for the target as a whole
    level = target.level if any(not one.level for one in readings) else CLUSTER
    return Plan(target, actions, condition, sustained, metrics, level, readings=readings)


def _sustained(sentence: ast.Sentence, dynamic: bool, reporter: Reporter) -> float:
    word = sentence.sustained
    if word is None:
        return 0.0
    try:
        seconds = read_quantity(word.text, "duration")
    except UnitError as error:
        reporter.error(f"SUSTAINED: {error}", word.span, error.unknown, VALUE)
        return 0.0
    if seconds <= 0:
        reporter.error(f"SUSTAINED: expected a duration above 0, got `{word.text}`", word.span, code=VALUE)
    if not dynamic:
        reporter.error("SUSTAINED needs a metric: a condition on a request is true or false at once", word.span)
    return float(seconds)


def _check_lives(sentence: ast.Sentence, dynamic: bool, reporter: Reporter) -> None:
    """Warn of TRANSIENT without a metric; it is no error, since sentences of the papers have it."""
    if dynamic:
        return
    for action in sentence.actions:
        if action.life == TRANSIENT:
            message = "TRANSIENT has no effect without a metric in WHEN: the action stays until the policy is deleted"
            reporter.warn(message, action.life_span)


def _check_existing(
    sentence: ast.Sentence, target: Target | None, dynamic: bool, catalogue: Catalogue, reporter: Reporter
) -> None:
    """Check that EXISTING stands with a filter of stored data and with an action that stays."""
    for action in sentence.actions:
        info = catalogue.action(action.keyword.text)
        if not action.existing or info is None:
            continue
        if not (info.kind == FILTER and info.on_put and info.changes_content and info.reversible):
            message = f"`{info.keyword}` changes nothing of what is stored, so EXISTING would do nothing"
            reporter.error(message, action.existing_span)
        if dynamic and action.life == TRANSIENT:
            message = "EXISTING brings stored objects to an action that stays: expected PERSISTENT, not TRANSIENT"
            reporter.error(message, action.existing_span)
        if target is not None and target.level == VOLUME:
            reporter.error("EXISTING is about objects, and the target is a volume", action.existing_span)
