"""``bandwidth`` and ``replication``: the possible objectives, their targets, and the objectives that are refused.

An objective applies to all bytes that its target moves over the whole cluster, never to single requests.  Tenants and
containers have objectives of bandwidth, each by itself; background replication has one ceiling for the cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from sluice_core.describe import (
    BANDWIDTH,
    REPLICATION,
    SERVICE,
    STORAGE_NODE,
    THROTTLE,
    TIER,
    ActionInfo,
    Scalar,
)
from sluice_core.messages.bandwidth import CEILINGS, CLASS, FLOORS, GET, NODE_FLOORS, PUT, STORAGE_POLICY
from sluice_core.messages.policies import CLUSTER, CONTAINER, OBJECT, TENANT, VOLUME, Target
from sluice_dsl.checks.placement import Step, is_about_requests
from sluice_dsl.diagnostics import VALUE, Reporter, Span, join_words
from sluice_dsl.plan import PlannedAction
from sluice_dsl.syntax import ast
from sluice_dsl.syntax.units import format_value, has_no_unit

#: Kinds with objectives.
GUARANTEE_KINDS: Final = (BANDWIDTH, REPLICATION)
#: Kinds whose rates are in MB/s without a unit.
_BARE_RATE_KINDS: Final = (*GUARANTEE_KINDS, THROTTLE, TIER)
#: Kinds that apply to a target as a whole, and their effect in words.
_ABOUT_TARGETS: Final = {
    **dict.fromkeys(GUARANTEE_KINDS, "applies to all bytes of its target"),
    SERVICE: "is a call to a service about its target",
}
#: The unit of their rates without a written unit, as in IOStack's API.
BARE_RATE: Final = "MBps"

_FLOORS: Final[Mapping[str, tuple[str, ...]]] = {GET: (FLOORS[GET], NODE_FLOORS[GET]), PUT: (FLOORS[PUT],)}
_RATES: Final = (*FLOORS.values(), *CEILINGS.values(), *NODE_FLOORS.values())
#: Parameters of ``bandwidth`` that have no meaning for volumes.
_OF_OBJECTS: Final = frozenset((*NODE_FLOORS.values(), STORAGE_POLICY, CLASS))
#: Level → the expected sentence instead of an objective for such a target.
_INSTEAD: Final = {
    OBJECT: "expected `CONTAINER …`",
    CLUSTER: "expected `ALL TENANTS`, which sets it for each of them",
}


def bare_rate(info: ActionInfo) -> str:
    """The unit of a rate without a written unit, as parameter of ``info``."""
    return BARE_RATE if info.kind in _BARE_RATE_KINDS else ""


def check_guarantees(steps: Sequence[Step], target: Target | None, reporter: Reporter) -> None:
    """Check the objectives of one sentence by themselves and against their target (None when that has an error)."""
    for step in steps:
        check = _CHECKS.get(step.info.kind)
        if check is not None and target is not None:
            check(step, target, reporter)
        if step.info.kind == BANDWIDTH and step.written.verb == "set":
            _check_rates(step, reporter)
            _check_storage_policy(step, reporter)
            _check_place(step, reporter)
        if bare_rate(step.info):
            _note_bare_rates(step, reporter)


def check_condition(condition: ast.Condition | None, actions: Sequence[PlannedAction], reporter: Reporter) -> None:
    """Refuse conditions on single requests for actions that do not apply to single requests."""
    about = [one for one in actions if one.kind in _ABOUT_TARGETS]
    if condition is None or not about:
        return
    for clause in filter(is_about_requests, ast.clauses(condition)):
        name, keyword, does = clause.subject.text, about[0].keyword, _ABOUT_TARGETS[about[0].kind]
        message = f"`{name}` asks about single requests, and `{keyword}` {does}: expected metrics alone"
        reporter.error(message, clause.subject.span)


def _check_owner(step: Step, target: Target, reporter: Reporter) -> None:
    if target.level == VOLUME:
        for name in _OF_OBJECTS & step.planned.params.keys():
            message = f"`{name}` of `{step.info.keyword}` is about objects, and the target is a volume"
            reporter.error(message, _span(step, name), code=VALUE)
    elif target.level not in (TENANT, CONTAINER):
        what = "the cluster" if target.level == CLUSTER else f"{target.level}s"
        message = f"`{step.info.keyword}` is for tenants, containers and volumes, not for {what}"
        reporter.error(f"{message}: {_INSTEAD[target.level]}", step.written.keyword.span)


def _check_cluster(step: Step, target: Target, reporter: Reporter) -> None:
    if target.level != CLUSTER:
        message = f"`{step.info.keyword}` limits the bytes of all tenants together, not those of one {target.level}"
        reporter.error(f"{message}: expected `FOR CLUSTER`", step.written.keyword.span)


_CHECKS: Final[Mapping[str, Callable[[Step, Target, Reporter], None]]] = {
    BANDWIDTH: _check_owner,
    REPLICATION: _check_cluster,
}


def _check_rates(step: Step, reporter: Reporter) -> None:
    """Check for at least one rate, and no ceiling below a floor."""
    params = step.planned.params
    if not any(name in params for name in _RATES):
        message = (
            f"`{step.info.keyword}` needs at least one rate: expected {join_words([f'`{name}=…`' for name in _RATES])}"
        )
        reporter.error(message, step.written.keyword.span, code=VALUE)
    for method, ceiling in CEILINGS.items():
        for floor in _FLOORS[method]:
            low, high = _number(params, floor), _number(params, ceiling)
            if low and high and high < low:
                message = f"`{ceiling}` is {format_value(high, 'rate')}, below the floor `{floor}` of"
                reporter.error(f"{message} {format_value(low, 'rate')}", _span(step, ceiling), code=VALUE)


def _number(params: Mapping[str, Scalar], name: str) -> float:
    """Return a rate; 0 when it is missing or was refused."""
    value = params.get(name)
    return value if isinstance(value, float) else 0.0


def _span(step: Step, name: str) -> Span:
    return next(one.value.span for one in step.written.parameters if one.name.text == name)


def _check_storage_policy(step: Step, reporter: Reporter) -> None:
    given = step.planned.params.get(STORAGE_POLICY)
    if given is not None and not str(given).strip():
        message = "expected a storage policy's name or index, got an empty one; without the parameter it holds for all"
        reporter.error(message, _span(step, STORAGE_POLICY), code=VALUE)


def _check_place(step: Step, reporter: Reporter) -> None:
    """Warn of uploads: bytes that an object server holds back stay in buffers until Swift's time-out."""
    given = [f"`{name}`" for name in (FLOORS[PUT], CEILINGS[PUT]) if name in step.planned.params]
    if given and step.planned.place == STORAGE_NODE:
        message = f"{join_words(given, 'and')}: uploads are always held back at the proxies, never at the storage nodes"
        reporter.warn(message, step.span)


def _note_bare_rates(step: Step, reporter: Reporter) -> None:
    for written in step.written.parameters:
        parameter = step.info.parameter(written.name.text)
        if parameter is None or parameter.type != "rate" or not has_no_unit(written.value.text):
            continue
        if not reporter.has_error_within(written.value.span):
            value = _number(step.planned.params, parameter.name)
            reporter.warn(
                f"a bare number is MB/s here: `{written.value.text}` is {format_value(value, 'rate')}",
                written.value.span,
                code=VALUE,
            )
