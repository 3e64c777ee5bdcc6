"""Fakes for tests of policies and their runtime: a clock to set, plans without a sentence, windows in any order.

testbed = PolicyTestbed()
actor = testbed.add(plan_of(["metric", "PUTS_SEC", ">", 3]))
await testbed.window(1000, PUTS_SEC={"AUTH_test": 7.0})
assert testbed.in_force(actor) == {("", 0): True}
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sluice_actors.metrics.aggregator import GRACE
from sluice_actors.metrics.metric_router import MetricRouter
from sluice_actors.metrics.windows import CLOSE_DELAY
from sluice_actors.policies.actor import Context, PolicyActor
from sluice_actors.policies.actor_factory import policy_actor
from sluice_actors.policies.conditions import ConditionCache
from sluice_actors.policies.group_index import GroupIndex
from sluice_actors.runtime.system import ActorSystem
from sluice_core.messages.nodes import MetricBatch
from sluice_core.messages.policies import CONTAINER, TENANT, PolicyState, Target
from sluice_core.messages.predicate import Predicate
from sluice_dsl.plan import TRANSIENT, Condition, Plan, PlannedAction


class Clock:
    """A clock that stands still until it is set."""

    def __init__(self, now: float = 1000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def metrics_of(condition: Condition) -> tuple[str, ...]:
    """The metrics of ``condition``, in their order."""
    if isinstance(condition, bool):
        return ()
    if condition[0] == "metric":
        return (condition[1],)
    if condition[0] in ("and", "or"):
        return tuple(dict.fromkeys(name for part in condition[1:] for name in metrics_of(part)))
    return ()


def plan_of(
    condition: Condition,
    target: Target | str = "AUTH_test",
    lives: Sequence[str] = (TRANSIENT,),
    sustained: float = 0.0,
    granularity: str | None = None,
) -> Plan:
    """A plan that sets one filter per life; ``target`` is a path or a :class:`Target`."""
    if isinstance(target, str):
        target = Target(CONTAINER if "/" in target else TENANT, "name", target)
    level = granularity if granularity is not None else target.level
    actions = tuple(PlannedAction("filter", "set", f"filter{i}", life=life) for i, life in enumerate(lives))
    return Plan(target, actions, condition, sustained, metrics_of(condition), level)


def batch_of(
    metric: str,
    window: int,
    values: Mapping[str, float],
    node: str = "node1",
    seq: int | None = None,
    period: float = 1.0,
) -> MetricBatch:
    """A node's batch; paths with a slash are containers, the others tenants."""
    split: dict[str, dict[str, float]] = {}
    for path, value in values.items():
        split.setdefault(CONTAINER if "/" in path else TENANT, {})[path] = value
    return MetricBatch(node, metric, window, window if seq is None else seq, split, period)


class RecordingListener:
    """Records the calls of its methods."""

    def __init__(self) -> None:
        self.reports: list[PolicyActor] = []
        self.errors: list[Exception] = []

    def changed(self, actor: PolicyActor) -> None:
        self.reports.append(actor)

    def failed(self, actor: PolicyActor, error: Exception) -> None:
        self.errors.append(error)


class PolicyTestbed:
    """An actor system with a router, without broker and store."""

    def __init__(self, transient_windows: int = 2, groups: GroupIndex | None = None) -> None:
        self.clock = Clock()
        self.system = ActorSystem()
        self.listener = RecordingListener()
        self.used: dict[str, bool] = {}
        self.router = MetricRouter(self.system, clock=self.clock)
        self.router.on_use = self.used.__setitem__
        self.context = Context(
            self.listener,
            self.router.subscription,
            groups if groups is not None else GroupIndex(),
            ConditionCache(),
            transient_windows,
            self.clock,
        )

    def add(self, plan: Plan, policy: str = "p1", state: PolicyState | None = None) -> PolicyActor:
        """Spawn the actor of ``plan``."""
        actor = policy_actor(self.context, policy, plan, 1, 1, state)
        self.system.spawn(actor)
        return actor

    async def window(self, window: int, period: float = 1.0, **values: Mapping[str, float]) -> None:
        """Close ``window``: metric → path → value, all from one node; metrics not named sent no batch."""
        await self.batches(batch_of(metric, window, rows, period=period) for metric, rows in values.items())

    async def batches(self, batches: Iterable[MetricBatch]) -> None:
        """Deliver ``batches``, let the time of their windows pass, and wait for the actors."""
        await self.system.idle()
        taken = list(batches)
        for batch in taken:
            self.clock.now = max(self.clock.now, batch.window + batch.period + 0.05)
            self.router.aggregators.add_batch(batch)
        self.clock.now = max(self.clock.now + GRACE, *(one.window + one.period + CLOSE_DELAY for one in taken))
        for metric in {batch.metric for batch in taken}:
            if self.used.get(metric):
                self.router.aggregators.close_due(metric)
        await self.system.idle()

    @staticmethod
    def in_force(actor: PolicyActor) -> dict[tuple[str, int], Predicate]:
        """(member, number of the action) → predicate in force."""
        return {(member, number): predicate for member, number, predicate in actor.in_force()}

    @staticmethod
    def done(actor: PolicyActor) -> list[tuple[str, Any]]:
        """The recorded changes of the actor, with their windows."""
        return [(one.what, one.window) for one in actor.firings]

    async def close(self) -> None:
        """Stop everything."""
        self.router.aggregators.close()
        await self.system.close()
