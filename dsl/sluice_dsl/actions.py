"""``DO`` what: from the actions of a sentence to planned actions, checked one by one and together."""

from __future__ import annotations

from itertools import combinations

from sluice_core.describe import FILTER, PROXY, STORAGE_NODE, ActionInfo, Parameter, Scalar
from sluice_core.errors import CallerError
from sluice_dsl import nodes
from sluice_dsl.catalogue import Catalogue
from sluice_dsl.plan import PERSISTENT, PlannedAction
from sluice_dsl.problems import UNAVAILABLE, UNKNOWN, VALUE, Reporter, listed, near
from sluice_dsl.units import UnitError, read_parameter

SET = "set"
DELETE = "delete"


def compile_actions(
    actions: tuple[nodes.Action, ...], catalogue: Catalogue, reporter: Reporter
) -> tuple[PlannedAction, ...]:
    """The planned actions; those with an unknown keyword are reported and left out."""
    known: list[tuple[nodes.Action, ActionInfo, PlannedAction]] = []
    for action in actions:
        info = _lookup(action, catalogue, reporter)
        if info is not None:
            planned = _compile(action, info, reporter)
            _try(action, planned, catalogue, reporter)
            known.append((action, info, planned))
    _check_duplicates([action for action, _, _ in known], reporter)
    filters = [one for one in known if one[1].kind == FILTER and one[0].verb == SET]
    for earlier, later in combinations(filters, 2):
        _check_order(earlier, later, reporter)
    return tuple(planned for _, _, planned in known)


def _lookup(action: nodes.Action, catalogue: Catalogue, reporter: Reporter) -> ActionInfo | None:
    word = action.keyword
    info = catalogue.action(word.text)
    if info is None:
        usable = [name for name, one in catalogue.actions.items() if one.available]
        hint = f"; this cluster has {listed(sorted(usable), 'and')}" if usable else ""
        miss = near(word.text, catalogue.actions)
        reporter.error(f"unknown action `{word.text}`{'' if miss else hint}", word.span, miss, UNKNOWN)
    elif not info.available:
        reporter.error(f"`{info.keyword}` is not available on this cluster", word.span, code=UNAVAILABLE)
    return info


def _compile(action: nodes.Action, info: ActionInfo, reporter: Reporter) -> PlannedAction:
    return PlannedAction(
        kind=info.kind,
        verb=action.verb,
        keyword=info.keyword,
        params=_parameters(action, info, reporter),
        place=_place(action, info, reporter),
        stage=info.stage,
        protective=info.protective,
        life=action.life or PERSISTENT,
    )


def _try(action: nodes.Action, planned: PlannedAction, catalogue: Catalogue, reporter: Reporter) -> None:
    """Refuse now what the filter itself would refuse on each request (a level that its engine lacks)."""
    trial = catalogue.trials.get(planned.keyword)
    if trial is None or action.verb == DELETE or not action.parameters:
        return
    span = (action.parameters[0].span[0], action.parameters[-1].span[1])
    if reporter.found_within(span):
        return
    try:
        trial(planned.params)
    except CallerError as error:
        reporter.error(f"`{planned.keyword}`: {error}", span, code=VALUE)


def _parameters(action: nodes.Action, info: ActionInfo, reporter: Reporter) -> dict[str, Scalar]:
    if action.verb == DELETE:
        if action.parameters:
            span = (action.parameters[0].span[0], action.parameters[-1].span[1])
            reporter.error(f"DELETE takes no parameters: expected `DELETE {info.keyword}`", span)
        return {}
    values: dict[str, Scalar] = {}
    for written in action.parameters:
        parameter = _parameter(written, info, reporter)
        if parameter is None:
            continue
        if parameter.name in values:
            reporter.error(f"parameter `{parameter.name}` is given twice", written.span)
        try:
            values[parameter.name] = read_parameter(written.value.text, parameter)
        except UnitError as error:
            message = f"parameter `{parameter.name}` of `{info.keyword}`: {error}"
            reporter.error(message, written.value.span, error.near_miss, VALUE)
            values[parameter.name] = ""
    for parameter in info.parameters:
        if parameter.required and parameter.name not in values:
            needed = f"`{info.keyword}` needs parameter `{parameter.name}`: expected `WITH {parameter.name}=…`"
            reporter.error(needed, action.keyword.span)
    return values


def _parameter(written: nodes.Parameter, info: ActionInfo, reporter: Reporter) -> Parameter | None:
    parameter = info.parameter(written.name.text)
    if parameter is None:
        names = [one.name for one in info.parameters]
        miss = near(written.name.text, names)
        known = f"it has {listed(names, 'and')}" if names else "it has none"
        message = f"`{info.keyword}` has no parameter `{written.name.text}`" + ("" if miss else f", {known}")
        reporter.error(message, written.name.span, miss, UNKNOWN)
    return parameter


def _place(action: nodes.Action, info: ActionInfo, reporter: Reporter) -> str:
    place = action.place or info.default_place
    span = action.place_span if action.place else action.keyword.span
    if place == STORAGE_NODE and info.needs_whole_object:
        reporter.error(
            f"`{info.keyword}` needs the whole object, and a storage node may hold only a fragment of it:"
            " expected `ON PROXY`",
            span,
        )
    elif place not in info.places:
        where = listed([f"`ON {one.upper()}`" for one in info.places])
        reporter.error(f"`{info.keyword}` does not run ON {place.upper()}, expected {where}", span)
    return place


def _check_duplicates(actions: list[nodes.Action], reporter: Reporter) -> None:
    seen: set[str] = set()
    for action in actions:
        if action.keyword.text in seen:
            reporter.error(f"`{action.keyword.text}` stands twice in one sentence", action.keyword.span)
        seen.add(action.keyword.text)


def _check_order(
    earlier: tuple[nodes.Action, ActionInfo, PlannedAction],
    later: tuple[nodes.Action, ActionInfo, PlannedAction],
    reporter: Reporter,
) -> None:
    """Written order, declared stages and places must agree (design section 5, Order)."""
    (_, first, _), (written, second, _) = earlier, later
    if first.stage > second.stage:
        reason = _reason(first, second)
        reporter.error(
            f"`{second.keyword}` runs before `{first.keyword}` (stages {second.stage} and {first.stage}):"
            f" write it first{reason}",
            written.keyword.span,
        )
    elif crossing(earlier[2], later[2]) and first.changes_content and second.changes_content:
        reporter.error(
            f"`{second.keyword}` ON PROXY would run before `{first.keyword}` ON STORAGE_NODE, whose stage is earlier",
            written.span,
        )


def _reason(first: ActionInfo, second: ActionInfo) -> str:
    if first.changes_content and second.changes_content:
        return f", since what `{first.keyword}` has changed is nothing for `{second.keyword}` to work on"
    return ""


def crossing(one: PlannedAction, other: PlannedAction) -> bool:
    """True when two filters of one pipeline would run against the order of their stages.

    On PUT whatever stands on the proxy runs before whatever stands on a storage node.
    """
    first, second = (one, other) if one.stage <= other.stage else (other, one)
    if not one.kind == other.kind == FILTER or first.stage == second.stage:
        return False
    return first.place == STORAGE_NODE and second.place == PROXY
