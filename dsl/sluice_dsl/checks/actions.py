"""``DO``: the actions of a sentence become planned actions, checked one by one and together."""

from __future__ import annotations

from sluice_core.describe import ActionInfo, Parameter, Scalar
from sluice_core.errors import CallerError
from sluice_core.messages.policies import Target
from sluice_core.resolve import identity
from sluice_dsl.catalogue.base import Catalogue
from sluice_dsl.checks.bandwidth_checks import bare_rate, check_guarantees
from sluice_dsl.checks.motifs import check_motifs, with_template
from sluice_dsl.checks.placement import Step, check_pipeline
from sluice_dsl.checks.resource_types import check_resource_types, resolve_place_about, resolve_resource_type
from sluice_dsl.diagnostics import UNAVAILABLE, UNKNOWN, VALUE, Reporter, UnknownWord, join_words
from sluice_dsl.plan import PERSISTENT, PlannedAction
from sluice_dsl.syntax import ast
from sluice_dsl.syntax.units import UnitError, read_parameter

SET = "set"
DELETE = "delete"


def compile_actions(
    sentence: ast.Sentence, target: Target | None, catalogue: Catalogue, reporter: Reporter
) -> tuple[PlannedAction, ...]:
    """The planned actions; those with an unknown keyword are reported and left out.

    ``target`` is None when it has an error.
    """
    known: list[Step] = []
    for action in sentence.actions:
        info = _lookup(action, catalogue, reporter)
        if info is not None:
            info = with_template(action, info, catalogue)
            about = resolve_resource_type(action, info, target, sentence.condition is not None, reporter)
            planned = _compile(action, info, about, reporter)
            _try(action, info, planned, catalogue, reporter)
            known.append(Step(action, info, planned))
    _check_duplicates(sentence.actions, known, reporter)
    check_resource_types(sentence, known, target, catalogue, reporter)
    check_guarantees(known, target, reporter)
    check_motifs(sentence, known, target, reporter)
    check_pipeline([step for step in known if step.written.verb == SET], target, catalogue, reporter)
    return tuple(step.planned for step in known)


def _lookup(action: ast.Action, catalogue: Catalogue, reporter: Reporter) -> ActionInfo | None:
    word = action.keyword
    info = catalogue.action(word.text)
    if info is None:
        usable = [name for name, one in catalogue.actions.items() if one.available]
        hint = f"; this cluster has {join_words(sorted(usable), 'and')}" if usable else ""
        unknown = UnknownWord(word.text, [*catalogue.actions, *catalogue.actions_by_alias])
        reporter.error(f"unknown action `{word.text}`{'' if unknown.near_miss else hint}", word.span, unknown, UNKNOWN)
    elif not info.available:
        reporter.error(f"`{info.keyword}` is not available on this cluster", word.span, code=UNAVAILABLE)
    return info


def _compile(action: ast.Action, info: ActionInfo, about: tuple[str, ...], reporter: Reporter) -> PlannedAction:
    return PlannedAction(
        kind=info.kind,
        verb=action.verb,
        keyword=info.keyword,
        params=_parameters(action, info, reporter),
        place=resolve_place_about(action, info, about, reporter),
        stage=info.stage,
        protective=info.protective,
        life=action.life or PERSISTENT,
        existing=action.existing,
        about=about,
    )


def _try(
    action: ast.Action, info: ActionInfo, planned: PlannedAction, catalogue: Catalogue, reporter: Reporter
) -> None:
    """Report parameters that the filter itself would refuse on each request (an invalid condition on rows)."""
    trial = catalogue.trials.get(planned.keyword)
    if trial is None or action.verb == DELETE or not action.parameters:
        return
    if any(one.required and one.name not in planned.params for one in info.parameters):
        return  # which was reported already
    span = (action.parameters[0].span[0], action.parameters[-1].span[1])
    if reporter.has_error_within(span):
        return
    try:
        trial(planned.params)
    except CallerError as error:
        reporter.error(f"`{planned.keyword}`: {error}", span, code=VALUE)


def _parameters(action: ast.Action, info: ActionInfo, reporter: Reporter) -> dict[str, Scalar]:
    if action.verb == DELETE:
        if action.parameters:
            span = (action.parameters[0].span[0], action.parameters[-1].span[1])
            reporter.error(f"DELETE takes no parameters: expected `DELETE {info.keyword}`", span)
        return {}
    values: dict[str, Scalar] = {}
    found = [(one, _parameter(one, info, reporter)) for one in action.parameters]
    known = [(written, parameter) for written, parameter in found if parameter is not None]
    for written, parameter in sorted(known, key=lambda one: bool(one[1].range_by)):
        if parameter.name in values:
            reporter.error(f"parameter `{parameter.name}` is given twice", written.span)
        values[parameter.name] = _value(written, parameter, info, values, reporter)
    values = {parameter.name: values[parameter.name] for _, parameter in known}
    for parameter in info.parameters:
        if parameter.required and parameter.name not in values:
            needed = f"`{info.keyword}` needs parameter `{parameter.name}`: expected `WITH {parameter.name}=…`"
            reporter.error(needed, action.keyword.span)
    return values


def _value(
    written: ast.Parameter, parameter: Parameter, info: ActionInfo, others: dict[str, Scalar], reporter: Reporter
) -> Scalar:
    """Return the value of one parameter; empty after an error."""
    within = info.with_range(parameter, others)
    try:
        return read_parameter(written.value.text, within, bare_rate(info))
    except UnitError as error:
        by = info.parameter(parameter.range_by) if within is not parameter else None
        beside = f" with {by.name}={others.get(by.name, by.default)}" if by else ""
        message = f"parameter `{parameter.name}` of `{info.keyword}`{beside}: {error}"
        reporter.error(message, written.value.span, error.unknown, VALUE)
        return ""


def _parameter(written: ast.Parameter, info: ActionInfo, reporter: Reporter) -> Parameter | None:
    parameter = info.parameter(written.name.text)
    if parameter is None:
        names = [one.name for one in info.parameters]
        unknown = UnknownWord(written.name.text, names)
        known = f"it has {join_words(names, 'and')}" if names else "it has none"
        message = f"`{info.keyword}` has no parameter `{written.name.text}`"
        reporter.error(message + ("" if unknown.near_miss else f", {known}"), written.name.span, unknown, UNKNOWN)
    return parameter


def _check_duplicates(actions: tuple[ast.Action, ...], known: list[Step], reporter: Reporter) -> None:
    """Check that each keyword stands once, except two SETs with different identities."""
    meanings = {id(step.written): identity(step.planned.keyword, step.planned.params) for step in known}
    seen: dict[str, list[object]] = {}
    for action in actions:
        word = action.keyword.text
        meant = meanings.get(id(action), (word, "")) if action.verb == SET else None
        before = seen.setdefault(word, [])
        if before and (meant is None or None in before or meant in before):
            reporter.error(f"`{word}` stands twice in one sentence", action.keyword.span)
        before.append(meant)
