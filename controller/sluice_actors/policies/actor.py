"""Policy actors: one sentence, watching its metrics and saying what is in force.

A policy about one target is a :class:`SingleActor` with one machine; one about ALL or a group is a
:class:`FamilyActor` with a machine per member that has something to remember, made when the member is
first seen.  Both are *quiet* most of the time: as long as the same metric clauses hold as in the last
window and the machine said that nothing moves (it is *settled*), a message costs one comparison.

What is in force is read by whoever writes it down (:class:`DecisionListener`) when *it* is ready: the latest
state counts, so nothing is queued here.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Protocol

from sluice_actors.policies.conditions import CompiledCondition, ConditionCache, Observed
from sluice_actors.policies.state_machine import NO_WINDOW, Rules, StateMachine
from sluice_actors.runtime.system import Actor, Work
from sluice_core.messages.policies import ALL, CLUSTER, CONTAINER, GROUP, TENANT, Firing, PolicyState, Target
from sluice_core.messages.predicate import Predicate
from sluice_dsl.plan import Plan

#: The machine may still move although the same clauses hold.
UNSETTLED: Final = -1
#: A family looks at the clock after so many members.
_MEMBERS_PER_STEP: Final = 128
_FIRINGS: Final = 20

InForce = Iterator[tuple[str, int, Predicate]]


class DecisionListener(Protocol):
    """Whom policy actors report to; called on the loop, must not block."""

    def changed(self, actor: PolicyActor) -> None:
        """The actor's state is worth writing down: what is in force, or that it is about to end."""

    def failed(self, actor: PolicyActor, error: Exception) -> None:
        """The actor is suspended because of ``error``; it reports ``changed`` when it works again."""


class Subscription(Protocol):
    """A policy's place at its metrics (``sluice_actors.metrics.metric_router``)."""

    def subscribe(self, actor: PolicyActor) -> None:
        """Deliver closed windows to ``actor``."""

    def unsubscribe(self, actor: PolicyActor) -> None:
        """Deliver nothing more."""

    def engage(self, actor: SingleActor) -> None:
        """Tell ``actor`` also about windows without a value for it."""

    def disengage(self, actor: SingleActor) -> None:
        """Silence is no news for ``actor``."""


class Membership(Protocol):
    """Who belongs to a group."""

    def contains(self, level: str, group: str, path: str) -> bool:
        """True when ``path`` is a member of the ``group`` of tenants or containers (``level``) now."""


class NoGroups:
    """No group has a member."""

    def contains(self, level: str, group: str, path: str) -> bool:
        return False


@dataclass(slots=True)
class Context:
    """What all policy actors of a host share."""

    office: DecisionListener
    feed: Callable[[tuple[str, ...], str], Subscription]
    membership: Membership
    programs: ConditionCache
    transient_windows: int = 2
    now: Callable[[], float] = time.time


def family(target: Target, granularity: str) -> bool:
    """True when ``target`` means each of its members by itself."""
    if target.level == CLUSTER:
        return granularity != CLUSTER
    return target.select in (ALL, GROUP)


def metric_path(target: Target, granularity: str) -> str:
    """The path at ``granularity`` at which the metrics of a single ``target`` are read."""
    depth = {CLUSTER: 0, TENANT: 1, CONTAINER: 2}.get(granularity, 3)
    return "/".join(target.name.split("/", depth)[:depth])


class PolicyActor(Actor):
    """What both kinds share.  ``version`` is the one of the policy's document in the store."""

    __slots__ = ("context", "created", "feed", "firings", "plan", "policy", "program", "reason", "rules", "version")

    def __init__(
        self, context: Context, policy: str, plan: Plan, created: int, version: int, state: PolicyState | None = None
    ) -> None:
        super().__init__()
        self.context = context
        self.policy = policy
        self.plan = plan
        self.created = created
        self.version = version
        self.firings: tuple[Firing, ...] = state.firings[-_FIRINGS:] if state is not None else ()
        # Of an earlier failure; taken back at the start.
        self.reason = state.reason if state is not None else ""
        self.feed: Subscription | None = None
        self.program: CompiledCondition | None = None
        self.rules = Rules(plan.sustained, context.transient_windows, frozenset(action.life for action in plan.actions))

    def __repr__(self) -> str:
        return f"<policy {self.policy}>"

    def on_start(self) -> None:
        """Compiles the condition and subscribes; machines are kept through a restart."""
        self.program = self.context.programs.get(self.plan.condition, self.plan.metrics)
        self.feed = self.context.feed(self.plan.metrics, self.plan.granularity)
        self.feed.subscribe(self)
        if self.reason:
            self.reason = ""
            self.context.office.changed(self)

    def on_failure(self, error: Exception) -> None:
        """What is in force stays (the last good decision); the state says that the actor failed."""
        self.reason = f"{type(error).__name__}: {error}"
        self.context.office.failed(self, error)

    def on_stop(self) -> None:
        if self.feed is not None:
            self.feed.unsubscribe(self)

    def in_force(self) -> InForce:
        """``(member, number of the action, predicate)`` of all that is in force now."""
        raise NotImplementedError

    def members(self) -> dict[str, dict[str, Any]]:
        """Member → machine data, for :class:`PolicyState`."""
        raise NotImplementedError

    @property
    def seen(self) -> int:
        """The last window that this actor, or the one it continues, is known to have looked at."""
        windows = [one.window for one in self.firings]
        windows += [int(data["window"]) for data in self.members().values()]
        return max(windows, default=NO_WINDOW)

    def state(self) -> PolicyState:
        """What to write down now."""
        active = next(self.in_force(), None) is not None
        status = "failed" if self.reason else "active" if active else "waiting"
        return PolicyState(self.policy, status, self.members(), self.firings, self.reason)

    def _machine_in_force(self, member: str, machine: StateMachine) -> InForce:
        for number, action in enumerate(self.plan.actions):
            predicate = machine.in_force(action.life)
            if predicate is not False:
                yield member, number, predicate

    def _step(self, member: str, machine: StateMachine, window: int, period: float, residual: Predicate) -> bool:
        """Feed ``machine`` and report; False when it is settled."""
        before, ending = machine.outputs(), machine.ending
        moved = machine.step(self.rules, window, period, residual)
        after = machine.outputs()
        if after != before:
            what = "changed"
            if before == (False, False):
                what = "set"
            elif after == (False, False):
                what = "taken_back"
            fired = Firing(self.context.now(), what, member, window)
            self.firings = (*self.firings, fired)[-_FIRINGS:]
            self.context.office.changed(self)
        elif machine.ending is not ending:
            # Written down too: a host that dies every other window must not keep an action on for ever.
            self.context.office.changed(self)
        return moved


class SingleActor(PolicyActor):
    """A policy about one named target, or about the cluster as a whole."""

    __slots__ = ("_bits", "_engaged", "machine", "path", "settled")

    def __init__(
        self, context: Context, policy: str, plan: Plan, created: int, version: int, state: PolicyState | None = None
    ) -> None:
        """
        :raises DecodeError: when ``state`` is not one of such a policy
        """
        super().__init__(context, policy, plan, created, version, state)
        self.path = metric_path(plan.target, plan.granularity)
        known = state.members.get("") if state is not None else None
        self.machine = StateMachine() if known is None else StateMachine.from_data(known)
        self.settled = UNSETTLED
        self._engaged = False

    def on_start(self) -> None:
        super().on_start()
        assert self.program is not None
        self._bits = self.program.bits
        quiet = self.machine.blank and self.program.residual(0, None) is False
        self.settled = 0 if quiet else UNSETTLED
        self._engaged = False
        self._engage()

    def on_message(self, message: tuple[int, float, Any]) -> Work | None:
        """One closed window: its number, the metric's period and what was observed (None: silence)."""
        bits = self._bits(message[2])
        if bits != self.settled:
            self._look(message, bits)
        return None

    def _look(self, message: tuple[int, float, Any], bits: int) -> None:
        window, period, observed = message
        assert self.program is not None
        moved = self._step("", self.machine, window, period, self.program.residual(bits, observed))
        self.settled = UNSETTLED if moved else bits
        self._engage()

    def _engage(self) -> None:
        engaged = self.settled != 0
        if engaged is not self._engaged and self.feed is not None:
            self._engaged = engaged
            if engaged:
                self.feed.engage(self)
            else:
                self.feed.disengage(self)

    def in_force(self) -> InForce:
        return self._machine_in_force("", self.machine)

    def members(self) -> dict[str, dict[str, Any]]:
        return {} if self.machine.blank else {"": self.machine.to_data()}


class Member:
    """One member of a family: its machine and the bits at which that is settled."""

    __slots__ = ("machine", "settled")

    def __init__(self, machine: StateMachine) -> None:
        self.machine = machine
        self.settled = UNSETTLED


class FamilyActor(PolicyActor):
    """A policy about each member of ALL or a group; members that are blank are forgotten."""

    __slots__ = ("_members",)

    def __init__(
        self, context: Context, policy: str, plan: Plan, created: int, version: int, state: PolicyState | None = None
    ) -> None:
        """
        :raises DecodeError: when ``state`` is not one of such a policy
        """
        super().__init__(context, policy, plan, created, version, state)
        known = state.members if state is not None else {}
        self._members = {path: Member(StateMachine.from_data(data)) for path, data in known.items()}

    def on_start(self) -> None:
        super().on_start()
        for member in self._members.values():
            member.settled = UNSETTLED

    def on_message(self, message: tuple[int, float, Iterator[tuple[str, Observed]]]) -> Work:
        """One closed window: its number, the period and what was observed by path."""
        return self._window(*message)

    def _window(self, window: int, period: float, observed: Iterator[tuple[str, Observed]]) -> Work:
        assert self.program is not None
        bits_of, members = self.program.bits, self._members
        silent = self.program.residual(0, None) is False
        unseen = set(members)
        count = 0
        for path, value in observed:
            count += 1
            if count % _MEMBERS_PER_STEP == 0:
                yield None
            bits = bits_of(value)
            member = members.get(path)
            if member is None:
                if (bits or not silent) and self._admits(path):
                    members[path] = member = Member(StateMachine())
                    self._look(path, member, window, period, bits, value)
                continue
            unseen.discard(path)
            if bits != member.settled or not self._admits(path):
                self._look(path, member, window, period, bits, value)
        for path in unseen:
            count += 1
            if count % _MEMBERS_PER_STEP == 0:
                yield None
            if members[path].settled != 0 or not self._admits(path):
                self._look(path, members[path], window, period, 0, None)

    def _look(self, path: str, member: Member, window: int, period: float, bits: int, value: Observed) -> None:
        assert self.program is not None
        if not self._admits(path):
            self._leave(path, member, window)
            return
        moved = self._step(path, member.machine, window, period, self.program.residual(bits, value))
        member.settled = UNSETTLED if moved else bits
        if not moved and member.machine.blank:
            del self._members[path]

    def _leave(self, path: str, member: Member, window: int) -> None:
        """Who left the group keeps nothing of it, PERSISTENT actions neither."""
        if member.machine.outputs() != (False, False):
            fired = Firing(self.context.now(), "taken_back", path, window)
            self.firings = (*self.firings, fired)[-_FIRINGS:]
        del self._members[path]
        self.context.office.changed(self)

    def _admits(self, path: str) -> bool:
        target = self.plan.target
        return target.select != GROUP or self.context.membership.contains(target.level, target.name, path)

    def in_force(self) -> InForce:
        for path, member in self._members.items():
            yield from self._machine_in_force(path, member.machine)

    def members(self) -> dict[str, dict[str, Any]]:
        return {path: one.machine.to_data() for path, one in self._members.items() if not one.machine.blank}


def policy_actor(
    context: Context, policy: str, plan: Plan, created: int, version: int, state: PolicyState | None = None
) -> PolicyActor:
    """The actor of ``plan``.

    :raises DecodeError: when ``state`` does not fit it
    """
    kind = FamilyActor if family(plan.target, plan.granularity) else SingleActor
    return kind(context, policy, plan, created, version, state)
