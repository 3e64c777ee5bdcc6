"""The plan: the result of a checked sentence, which actors run, and the assignments that agents read.

A condition is JSON data like a request predicate (``sluice_core.messages.predicate``), with two more leaves; their
value is in the metric's base unit (bytes, bytes/s, 1/s, seconds):

    ["metric", NAME, op, value]                    the target's
    ["metric_at", NAME, LEVEL, PATH, op, value]    of one path whatever the target is: of a node, or of the cluster

It is kept in negation normal form: NOT stands only before request clauses (a NOT before a metric
clause is folded into its operator).  That makes three-valued logic exact with two values: a metric without a value
makes its clause false, and so a silent metric satisfies no condition.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, NamedTuple

from sluice_core.describe import OBJECTS, Scalar
from sluice_core.messages.base import Bounds, Message
from sluice_core.messages.policies import CONTAINER, NAME, TENANT, VOLUME, Assignment, Target
from sluice_core.messages.predicate import OPERATORS, Predicate, all_of, any_of

#: Version of the language; docs/reference/language.md carries the same number.
LANGUAGE: Final = 1

PERSISTENT: Final = "persistent"
TRANSIENT: Final = "transient"

Condition = bool | list[Any]
#: Level → the parts of a path at it.
_DEPTHS: Final = {TENANT: 1, CONTAINER: 2, VOLUME: 2}


class Reading(NamedTuple):
    """A metric, and where it is read: ``path`` at ``level``; both are empty when the target determines them."""

    metric: str
    level: str = ""
    path: str = ""

    @property
    def label(self) -> str:
        """The metric as a sentence names it."""
        return f"{self.metric} AT {self.path}" if self.path else self.metric


@dataclass(frozen=True, slots=True)
class PlannedAction(Message):
    """One action: all fields of an assignment except the policy and the request predicate.

    ``existing`` is true when the action also applies to stored objects.  ``about`` says whether it
    is for objects, volumes or both.
    """

    kind: str
    verb: str
    keyword: str
    params: Mapping[str, Scalar] = field(default_factory=dict)
    place: str = "proxy"
    stage: int = 500
    protective: bool = False
    life: str = PERSISTENT
    existing: bool = False
    about: tuple[str, ...] = (OBJECTS,)


@dataclass(frozen=True, slots=True)
class Plan(Message):
    """A compiled sentence.

    ``sustained`` is in seconds.  ``granularity`` (tenant, container, volume, cluster) is where its metrics
    are read; a target that is a group or ALL means each member by itself, unless that is the cluster.
    ``readings`` has the place of each metric; empty when all ``metrics`` are read at the target.
    """

    target: Target
    actions: tuple[PlannedAction, ...]
    condition: Condition = True
    sustained: float = 0.0
    metrics: tuple[str, ...] = ()
    granularity: str = "tenant"
    language: int = LANGUAGE
    readings: tuple[Reading, ...] = ()

    row_types: ClassVar[Mapping[str, tuple[Any, Bounds]]] = {"readings": (Reading, {})}
    nested: ClassVar[Mapping[str, type[Message]]] = {"target": Target, "actions": PlannedAction}

    @property
    def dynamic(self) -> bool:
        """True when an actor must watch metrics for it."""
        return bool(self.metrics)

    def measured_at(self, reading: Reading) -> tuple[str, str]:
        """Level and path at which a metric is read; the path is empty for the cluster, a group and ALL."""
        if reading.level:
            return reading.level, reading.path
        depth = _DEPTHS.get(self.granularity)
        if self.target.select != NAME or depth is None:
            return self.granularity, ""
        return self.granularity, "/".join(self.target.name.split("/")[:depth])

    @property
    def columns(self) -> tuple[Reading, ...]:
        """The readings of the condition, also when ``readings`` is empty."""
        return self.readings or tuple(map(Reading, self.metrics))


class MetricClause(NamedTuple):
    """A metric that is compared with ``limit``, in its base unit."""

    reading: Reading
    operator: str
    limit: float


def metric_clauses(condition: Condition) -> Iterator[MetricClause]:
    """Yield the clauses of ``condition`` about metrics, from left to right."""
    if isinstance(condition, bool):
        return
    word, *rest = condition
    if word in ("metric", "metric_at"):
        *where, op, limit = rest
        yield MetricClause(Reading(*where), op, limit)
    elif word in ("and", "or"):
        for part in rest:
            yield from metric_clauses(part)


def residual(condition: Condition, values: Mapping[str, float | None]) -> Predicate:
    """Return the rest of ``condition`` when the readings have ``values``, by label (missing or None: silent).

    True: holds for every request; False: for none; else a predicate over the request.
    """
    if isinstance(condition, bool):
        return condition
    word, *rest = condition
    if word == "metric":
        name, op, limit = rest
        value = values.get(name)
        return value is not None and OPERATORS[op](value, limit)
    if word == "metric_at":
        *where, op, limit = rest
        value = values.get(Reading(*where).label)
        return value is not None and OPERATORS[op](value, limit)
    if word == "and":
        return all_of(*(residual(part, values) for part in rest))
    if word == "or":
        return any_of(*(residual(part, values) for part in rest))
    return condition


def assignment_for(
    policy_id: str, plan: Plan, action_index: int, created: int, when: Predicate, member: str = ""
) -> Assignment:
    """The assignment of action ``action_index`` (from 0) in force for requests that satisfy ``when``.

    ``member`` is the path of the member of a group or ALL that it was set for, else empty;
    ``created`` is the policy's age in unix milliseconds.
    """
    action = plan.actions[action_index]
    suffix = f"@{member}" if member else ""
    return Assignment(
        id=f"{policy_id}.{action_index}{suffix}",
        policy=policy_id,
        kind=action.kind,
        verb=action.verb,
        keyword=action.keyword,
        target=plan.target,
        member=member,
        params=action.params,
        place=action.place,
        stage=action.stage,
        order=action_index,
        protective=action.protective,
        created=created,
        when=when,
        existing=action.existing,
        about=action.about,
    )


def static_assignments(policy_id: str, plan: Plan, created: int) -> tuple[Assignment, ...]:
    """All assignments of a plan that needs no actor; none when its condition can never hold.

    :raises ValueError: for a dynamic plan, whose assignments an actor determines
    """
    if plan.dynamic:
        raise ValueError(f"policy `{policy_id}` watches {', '.join(plan.metrics)}, an actor sets its assignments")
    when = residual(plan.condition, {})
    if when is False:
        return ()
    return tuple(assignment_for(policy_id, plan, index, created, when) for index in range(len(plan.actions)))
