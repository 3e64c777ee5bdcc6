"""The actor of one policy: it reads closed windows and decides which actions are in force.

Theory of operation

* A policy about one target, or about the cluster, is a :class:`SingleActor` with one state machine.
  A policy about ALL or a group is a :class:`~sluice_actors.policies.family_actor.FamilyActor` with a state machine
  per member that has state to remember; it is made when the member first has a value.
* An actor is *quiet* most of the time.  The clauses of the condition that hold are the bits of one number.  As long as
  these bits equal those of the last window, and the state machine reported that the same residual changes nothing (it
  is *settled*), a message costs one comparison.
* The actor does not queue decisions.  It reports that its state changed, and the :class:`DecisionListener` reads the
  actions in force when *it* is ready: the latest state counts.
* After a failure the last good decision stays in force; the state machines are kept when the actor restarts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from sluice_actors.metrics.subscription import MetricSubscription, Subscriber
from sluice_actors.metrics.windows import NO_WINDOW
from sluice_actors.policies.conditions import CompiledCondition, ConditionCache
from sluice_actors.policies.group_index import GroupIndex
from sluice_actors.policies.state_machine import Rules, StateMachine
from sluice_actors.runtime.actor import Work
from sluice_core.messages.policies import CLUSTER, CONTAINER, TENANT, VOLUME, Firing, PolicyState, Target
from sluice_core.messages.predicate import Predicate
from sluice_dsl.plan import Plan, Reading

#: The machine may still change although the same clauses hold.
UNSETTLED: Final = -1
_FIRINGS: Final = 20

InForce = Iterator[tuple[str, int, Predicate]]


class DecisionListener(Protocol):
    """Receives the reports of policy actors; called on the event loop, must not block."""

    def changed(self, actor: PolicyActor) -> None:
        """The actor's state has to be written: its actions in force, or that they are about to end."""

    def failed(self, actor: PolicyActor, error: Exception) -> None:
        """The actor is suspended because of ``error``; it calls ``changed`` when it works again."""


@dataclass(slots=True)
class Context:
    """State and services that all policy actors of a host share."""

    listener: DecisionListener
    subscription: Callable[[tuple[Reading, ...], str], MetricSubscription]
    groups: GroupIndex
    conditions: ConditionCache
    transient_windows: int = 2
    now: Callable[[], float] = time.time


class PolicyActor(Subscriber):
    """The common part of both kinds of actors.  ``version`` is that of the policy's document in the store."""

    __slots__ = (
        "context",
        "created",
        "firings",
        "plan",
        "policy",
        "program",
        "reason",
        "rules",
        "subscription",
        "version",
    )

    #: Set when the actor starts.
    program: CompiledCondition

    def __init__(
        self, context: Context, policy: str, plan: Plan, created: int, version: int, state: PolicyState | None = None
    ) -> None:
        """
        :raises DecodeError: when ``state`` does not fit the policy
        """
        super().__init__()
        self.context = context
        self.policy = policy
        self.plan = plan
        self.created = created
        self.version = version
        self.firings: tuple[Firing, ...] = state.firings[-_FIRINGS:] if state is not None else ()
        # The reason of an earlier failure; cleared at the start.
        self.reason = state.reason if state is not None else ""
        self.subscription: MetricSubscription | None = None
        self.rules = Rules(plan.sustained, context.transient_windows, frozenset(action.life for action in plan.actions))
        self._restore(state.members if state is not None else {})

    def __repr__(self) -> str:
        return f"<policy {self.policy}>"

    def _restore(self, members: Mapping[str, Mapping[str, Any]]) -> None:
        """Make the machines, which continue from ``members`` (a result of :meth:`members`).

        :raises DecodeError: when these do not fit the policy
        """
        raise NotImplementedError

    def on_start(self) -> None:
        """Compiles the condition and subscribes; machines are kept through a restart."""
        columns = self.plan.columns
        self.program = self.context.conditions.get(self.plan.condition, [one.label for one in columns])
        self.subscription = self.context.subscription(columns, self.plan.granularity)
        self.subscription.subscribe(self)
        if self.reason:
            self.reason = ""
            self.context.listener.changed(self)

    def on_failure(self, error: Exception) -> None:
        """Leave the last good decision in force, and record that the actor failed."""
        self.reason = f"{type(error).__name__}: {error}"
        self.context.listener.failed(self, error)

    def on_stop(self) -> None:
        if self.subscription is not None:
            self.subscription.unsubscribe(self)

    def in_force(self) -> InForce:
        """``(member, number of the action, predicate)`` of all actions in force now."""
        raise NotImplementedError

    def active_paths(self) -> Iterator[str]:
        return (member for member, _, _ in self.in_force())

    def members(self) -> dict[str, dict[str, Any]]:
        """Member → machine data, for :class:`PolicyState`."""
        raise NotImplementedError

    @property
    def seen(self) -> int:
        """The last window that this actor, or the one it continues, is known to have evaluated."""
        windows = [one.window for one in self.firings]
        windows += [int(data["window"]) for data in self.members().values()]
        return max(windows, default=NO_WINDOW)

    def state(self) -> PolicyState:
        """The state to write now."""
        active = next(self.in_force(), None) is not None
        status = "failed" if self.reason else "active" if active else "waiting"
        return PolicyState(self.policy, status, self.members(), self.firings, self.reason)

    def _machine_in_force(self, member: str, machine: StateMachine) -> InForce:
        for number, action in enumerate(self.plan.actions):
            predicate = machine.in_force(action.life)
            if predicate is not False:
                yield member, number, predicate

    def _record(self, what: str, member: str, window: int) -> None:
        fired = Firing(self.context.now(), what, member, window)
        self.firings = (*self.firings, fired)[-_FIRINGS:]

    def _step(self, member: str, machine: StateMachine, window: int, period: float, residual: Predicate) -> bool:
        """Pass a window to ``machine`` and report changes; False when the machine is settled."""
        before, ending = machine.outputs(), machine.ending
        moved = machine.step(self.rules, window, period, residual)
        after = machine.outputs()
        if after != before:
            what = "changed"
            if before == (False, False):
                what = "set"
            elif after == (False, False):
                what = "taken_back"
            self._record(what, member, window)
            self.context.listener.changed(self)
        elif machine.ending is not ending:
            # Written too: a host that restarts every other window must not keep an action in force for ever.
            self.context.listener.changed(self)
        return moved


def metric_path(target: Target, granularity: str) -> str:
    """The path at ``granularity`` at which the metrics of a single ``target`` are read."""
    depth = {CLUSTER: 0, TENANT: 1, CONTAINER: 2, VOLUME: 2}.get(granularity, 3)
    return "/".join(target.name.split("/", depth)[:depth])


class SingleActor(PolicyActor):
    """A policy about one named target, or about the cluster as a whole."""

    __slots__ = ("_bits", "_engaged", "machine", "path", "settled")

    def _restore(self, members: Mapping[str, Mapping[str, Any]]) -> None:
        self.path = metric_path(self.plan.target, self.plan.granularity)
        known = members.get("")
        self.machine = StateMachine() if known is None else StateMachine.from_data(known)
        self.settled = UNSETTLED
        self._engaged = False

    @property
    def subscribed_path(self) -> str:
        return self.path

    def on_start(self) -> None:
        super().on_start()
        self._bits = self.program.bits
        quiet = self.machine.blank and self.program.residual(0, None) is False
        self.settled = 0 if quiet else UNSETTLED
        self._engaged = False
        self._engage()

    def on_message(self, message: tuple[int, float, Any]) -> Work | None:
        """One closed window: its number, the metric's period and what was observed (None: silence)."""
        bits = self._bits(message[2])
        if bits != self.settled:
            self._evaluate(message, bits)
        return None

    def _evaluate(self, message: tuple[int, float, Any], bits: int) -> None:
        window, period, observed = message
        moved = self._step("", self.machine, window, period, self.program.residual(bits, observed))
        self.settled = UNSETTLED if moved else bits
        self._engage()

    def _engage(self) -> None:
        engaged = self.settled != 0
        if engaged is not self._engaged and self.subscription is not None:
            self._engaged = engaged
            if engaged:
                self.subscription.engage(self, self.path)
            else:
                self.subscription.disengage(self)

    def in_force(self) -> InForce:
        return self._machine_in_force("", self.machine)

    def members(self) -> dict[str, dict[str, Any]]:
        return {} if self.machine.blank else {"": self.machine.to_data()}
