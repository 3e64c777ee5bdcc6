"""A plan in plain words, for ``sluice-dsl explain``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from sluice_core.describe import (
    BANDWIDTH,
    FILTER,
    KONNECTOR,
    OBJECTS,
    PROXY,
    REPLICATION,
    SERVICE,
    THROTTLE,
    VOLUMES,
    ActionInfo,
    Scalar,
)
from sluice_core.messages.bandwidth import CEILINGS, FLOORS, GET, NODE_FLOORS, PUT
from sluice_core.messages.elasticity import ELASTICITY
from sluice_core.messages.policies import VOLUME
from sluice_dsl.catalogue.base import Catalogue
from sluice_dsl.checks.actions import SET
from sluice_dsl.checks.bandwidth_checks import GUARANTEE_KINDS
from sluice_dsl.checks.conflicts import describe_target
from sluice_dsl.compile import Compiled
from sluice_dsl.diagnostics import join_words
from sluice_dsl.plan import TRANSIENT, Condition, Plan, PlannedAction, Reading
from sluice_dsl.syntax.units import METRIC_QUANTITIES, format_value

_PLACES: Final = {"proxy": "the proxy", "storage_node": "the storage nodes"}
_AT_VOLUMES: Final = "where a volume is used"
_EXCEPT: Final = "except where a narrower policy of the same kind holds"
_EXCEPT_PROMISED: Final = "except where a narrower policy has the same method"
_UPLOADS: Final = (FLOORS[PUT], CEILINGS[PUT])
_DOWNLOADS: Final = (FLOORS[GET], CEILINGS[GET], NODE_FLOORS[GET])


def explain(compiled: Compiled, catalogue: Catalogue) -> str:
    """The sentence and, below it, what it will do."""
    explained = explain_plan(compiled.plan, catalogue)
    return "\n".join([compiled.text, *(f"  {about}: {words}" for about, words in explained.items())])


def explain_plan(plan: Plan, catalogue: Catalogue) -> dict[str, str]:
    """Return the effect of a sentence in words, by topic.

    ``target``, ``kind`` (whether it watches metrics), ``fires`` (when), ``action 1`` and so on (action, place, end),
    and, for several filters, their ``order``.
    """
    actions = {f"action {number}": _action(one, plan, catalogue) for number, one in enumerate(plan.actions, 1)}
    order = _order(plan, catalogue)
    return {
        "target": _scope(plan),
        "kind": _kind(plan, catalogue),
        "fires": _fires(plan, catalogue),
        **actions,
        **({"order": order} if order else {}),
    }


def _scope(plan: Plan) -> str:
    target = plan.target
    each = ", each by itself, later ones included" if target.select in ("all", "group") else ""
    exception = _exception(plan)
    below = f", {exception}" if exception else ""
    account = f" (account path `{target.name}`)" if target.label and target.select == "name" else ""
    return f"{describe_target(target)}{account}{each}{below}"


def _exception(plan: Plan) -> str:
    """The part of the target that it does not apply to."""
    kinds = {action.kind for action in plan.actions}
    if kinds == {BANDWIDTH}:
        container = (plan.target.level, plan.target.select) == ("container", "name")
        return "" if container else _EXCEPT_PROMISED
    narrowest = plan.target.level == "object" or (plan.target.level, plan.target.select) == ("volume", "name")
    return "" if narrowest or kinds == {REPLICATION} else _EXCEPT


def _kind(plan: Plan, catalogue: Catalogue) -> str:
    if not plan.dynamic:
        return "static, in force on all nodes as soon as it is accepted"
    periods: dict[str, list[str]] = {}
    for reading in plan.columns:
        metric = catalogue.metric(reading.metric)
        read = f"{reading.label} (every {format_value(metric.period if metric else 1.0, 'duration')})"
        periods.setdefault(f" per {plan.granularity}" if not reading.level else "", []).append(read)
    watched = [f"{join_words(read, 'and')}{level}" for level, read in sorted(periods.items())]
    return f"dynamic, an actor watches {join_words(watched, 'and')}"


def _fires(plan: Plan, catalogue: Catalogue) -> str:
    if plan.condition is True:
        of_requests = any(
            action.kind not in (*GUARANTEE_KINDS, SERVICE) and action.keyword != ELASTICITY and OBJECTS in action.about
            for action in plan.actions
        )
        return "for every request" if of_requests else "always"
    condition = describe_condition(plan.condition, catalogue)
    if not plan.dynamic:
        return f"for each request with {condition}"
    if plan.sustained:
        lasting = f"after {format_value(plan.sustained, 'duration')} without a break in which {condition}"
    else:
        lasting = f"as soon as in one window {condition}"
    return f"{lasting}; a metric without a value satisfies no condition"


def describe_condition(condition: Condition, catalogue: Catalogue) -> str:
    """``condition`` in words, values with their units."""
    if isinstance(condition, bool):
        return "anything" if condition else "nothing"
    word, *rest = condition
    if word in ("and", "or"):
        return f" {word} ".join(_bracketed(part, word, catalogue) for part in rest)
    if word == "not":
        return f"not {describe_condition(rest[0], catalogue)}"
    if word == "size":
        return f"object size {rest[0]} {format_value(rest[1], 'size')}"
    if word == "compressibility":
        return f"object compressibility {rest[0]} {format_value(rest[1], 'ratio')}"
    if word in ("metric", "metric_at"):
        *where, op, value = rest
        reading = Reading(*where)
        metric = catalogue.metric(reading.metric)
        return f"{reading.label} {op} {format_value(value, METRIC_QUANTITIES[metric.unit] if metric else 'float')}"
    return f"{word} {join_words(rest[0])}"


def _bracketed(part: Condition, word: str, catalogue: Catalogue) -> str:
    written = describe_condition(part, catalogue)
    return f"({written})" if word == "and" and isinstance(part, list) and part[0] == "or" else written


def _action(action: PlannedAction, plan: Plan, catalogue: Catalogue) -> str:
    if action.verb != SET:
        return f"deletes `{action.keyword}` ({action.kind}), inherited or not; {_life(action, plan)}{_existing(action)}"
    given = f" with {describe_parameters(action.params, catalogue.action(action.keyword))}" if action.params else ""
    where = _where(action)
    inherited = ", inherited by narrower policies until a DELETE names it" if action.protective else ""
    lasting = f"{_life(action, plan)}{_existing(action)}"
    return f"sets `{action.keyword}` ({action.kind}){given}{where}{_both(action, catalogue)}{inherited}; {lasting}"


def _both(action: PlannedAction, catalogue: Catalogue) -> str:
    """A text that says that it applies to volumes as well as objects."""
    if VOLUME not in catalogue.levels or not {OBJECTS, VOLUMES} <= set(action.about):
        return ""
    info = catalogue.action(action.keyword)
    late = " that are attached for the first time from then on" if info is not None and info.changes_content else ""
    return f", and of volumes{late}"


def _existing(action: PlannedAction) -> str:
    return "; objects that are stored already are rewritten once" if action.existing else ""


def _where(action: PlannedAction) -> str:
    if action.place == KONNECTOR:
        return f" {_AT_VOLUMES}" if action.kind in (FILTER, THROTTLE) else ""
    if action.kind == FILTER:
        return f" on {_PLACES[action.place]}"
    if action.kind not in GUARANTEE_KINDS:
        return ""
    uploads = any(name in action.params for name in _UPLOADS)
    if action.place == PROXY or (uploads and not any(name in action.params for name in _DOWNLOADS)):
        return ", held back at the proxies"
    return ", held back at the storage nodes" + (", uploads at the proxies" if uploads else "")


def describe_parameters(params: Mapping[str, Scalar], info: ActionInfo | None) -> str:
    """Return ``params`` of the action ``info`` as text, values with their units; without ``info`` unchanged."""
    written = []
    for name, value in params.items():
        parameter = info.parameter(name) if info else None
        written.append(f"{name}={format_value(value, parameter.type if parameter else 'str')}")
    return ", ".join(written)


def _life(action: PlannedAction, plan: Plan) -> str:
    if not plan.dynamic:
        return "stays until the policy is deleted"
    if action.life == TRANSIENT:
        return "taken back after two consecutive windows in which the condition is false"
    return "once triggered it stays, although the condition ends, until the policy is deleted"


def _order(plan: Plan, catalogue: Catalogue) -> str:
    filters = [one for one in plan.actions if one.kind == FILTER and one.verb == SET]
    if len(filters) < 2:
        return ""
    stack = sorted((one for one in filters if one.place == KONNECTOR), key=lambda one: one.stage)
    around, stored, read = [], [], []
    for one in (action for action in filters if action.place != KONNECTOR):
        info = catalogue.action(one.keyword)
        if info and info.on_request:
            around.append(one)
        elif info and info.on_get and not info.on_put:
            read.append(one)
        else:
            stored.append(one)
    around.sort(key=lambda one: one.stage)
    stored.sort(key=lambda one: (one.place != PROXY, one.stage))
    read.sort(key=lambda one: (one.place == PROXY, -one.stage))
    parts = [
        f"around whole requests {_steps(around)}" if around else "",
        f"{_steps(stored)} on PUT; GET goes backwards" if stored else "",
        f"of what is read {_steps(read)}" if read else "",
        f"writes to a volume pass {_steps(stack)}; reads go backwards" if stack else "",
    ]
    return "; ".join(filter(None, parts))


def _steps(actions: Sequence[PlannedAction]) -> str:
    return ", then ".join(
        f"`{one.keyword}` ({_PLACES.get(one.place, _AT_VOLUMES)}, stage {one.stage})" for one in actions
    )
