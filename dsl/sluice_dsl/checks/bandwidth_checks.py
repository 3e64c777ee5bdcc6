"""``bandwidth`` and ``replication``: what can be guaranteed, to whom, and which guarantees make no sense.

A guarantee is about all bytes that its target moves over the whole cluster, never about single requests.  Tenants and
containers have guarantees of bandwidth, each by itself; background replication has one ceiling for the cluster.
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

#: Kinds that promise something.
GUARANTEE_KINDS: Final = (BANDWIDTH, REPLICATION)
#: Kinds whose rates are MB/s where no unit is written.
_BARE_RATE_KINDS: Final = (*GUARANTEE_KINDS, THROTTLE, TIER)
#: Kinds that are about a target as a whole, and what they do with it.
_ABOUT_TARGETS: Final = {
    **dict.fromkeys(GUARANTEE_KINDS, "speaks of all bytes of its target"),
    SERVICE: "is a call to a service about its target",
}
#: The unit of their rates where none is written, as IOStack's API has it.
BARE_RATE: Final = "MBps"

_FLOORS: Final[Mapping[str, tuple[str, ...]]] = {GET: (FLOORS[GET], NODE_FLOORS[GET]), PUT: (FLOORS[PUT],)}
_RATES: Final = (*FLOORS.values(), *CEILINGS.values(), *NODE_FLOORS.values())
#: Parameters of ``bandwidth`` that mean nothing to volumes.
_OF_OBJECTS: Final = frozenset((*NODE_FLOORS.values(), STORAGE_POLICY, CLASS))
#: Level → what to say instead of promising bandwidth to such a target.
_INSTEAD: Final = {
    OBJECT: "expected `CONTAINER …`",
    CLUSTER: "expected `ALL TENANTS`, each of which it then holds for",
}


def bare_rate(info: ActionInfo) -> str:
    """The unit of a rate without one, as parameter of ``info``."""
    return BARE_RATE if info.kind in _BARE_RATE_KINDS else ""


def check_guarantees(steps: Sequence[Step], target: Target | None, reporter: Reporter) -> None:
    """What the promises of one sentence say of themselves and of their target (None when that is faulty)."""
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
    """Refuse conditions on single requests for what single requests do not concern."""
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
        message = f"`{step.info.keyword}` is promised to tenants, containers and volumes, not to {what}"
        reporter.error(f"{message}: {_INSTEAD[target.level]}", step.written.keyword.span)


def _check_cluster(step: Step, target: Target, reporter: Reporter) -> None:
    if target.level != CLUSTER:
        message = f"`{step.info.keyword}` moves the bytes of everybody, a {target.level} has no part of its own in it"
        reporter.error(f"{message}: expected `FOR CLUSTER`", step.written.keyword.span)


_CHECKS: Final[Mapping[str, Callable[[Step, Target, Reporter], None]]] = {
    BANDWIDTH: _check_owner,
    REPLICATION: _check_cluster,
}


def _check_rates(step: Step, reporter: Reporter) -> None:
    """At least one rate, and no ceiling below a floor."""
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
    """A rate; 0 when it is not there or was refused."""
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
    """Bytes held back by an object server lie in buffers until Swift takes it for dead."""
    given = [f"`{name}`" for name in (FLOORS[PUT], CEILINGS[PUT]) if name in step.planned.params]
    if given and step.planned.place == STORAGE_NODE:
        message = (
            f"{join_words(given, 'and')}: uploads are held back at the proxies all the same, never at the storage nodes"
        )
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
