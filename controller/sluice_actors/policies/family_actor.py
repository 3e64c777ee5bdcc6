"""The actor of a policy about each member of ALL or of a group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from sluice_actors.metrics.subscription import Observed, Rows
from sluice_actors.policies.actor import UNSETTLED, InForce, PolicyActor
from sluice_actors.policies.state_machine import StateMachine
from sluice_actors.runtime.actor import Work
from sluice_core.messages.policies import ALL, CLUSTER, GROUP, Target

#: A family reads the clock after this many members.
_MEMBERS_PER_STEP: Final = 128


def is_family(target: Target, granularity: str) -> bool:
    """True when a policy on ``target`` acts on each member by itself; never when it reads a metric of the cluster."""
    return granularity != CLUSTER and (target.level == CLUSTER or target.select in (ALL, GROUP))


@dataclass(slots=True)
class Member:
    """One member of a family: its machine and the bits at which the machine is settled."""

    machine: StateMachine
    settled: int = UNSETTLED


class FamilyActor(PolicyActor):
    """A policy about each member of ALL or a group; members in the initial state are removed."""

    __slots__ = ("_members",)

    def _restore(self, members: Mapping[str, Mapping[str, Any]]) -> None:
        self._members = {path: Member(StateMachine.from_data(data)) for path, data in members.items()}

    @property
    def subscribed_path(self) -> None:
        return None

    def on_start(self) -> None:
        super().on_start()
        for member in self._members.values():
            member.settled = UNSETTLED

    def on_message(self, message: tuple[int, float, Rows]) -> Work:
        """Handle one closed window: its number, the period and the observation by path."""
        return self._window(*message)

    def _window(self, window: int, period: float, rows: Rows) -> Work:
        bits_of, members = self.program.bits, self._members
        silent = self.program.residual(0, None) is False
        unseen = set(members)
        count = 0
        for path, value in rows.observed:
            count += 1
            if count % _MEMBERS_PER_STEP == 0:
                yield None
            bits = bits_of(value)
            member = members.get(path)
            if member is None:
                if (bits or not silent) and self._admits(path):
                    members[path] = member = Member(StateMachine())
                    self._evaluate(path, member, window, period, bits, value)
                continue
            unseen.discard(path)
            if bits != member.settled or not self._admits(path):
                self._evaluate(path, member, window, period, bits, value)
        rest = bits_of(rows.rest)
        for path in unseen:
            count += 1
            if count % _MEMBERS_PER_STEP == 0:
                yield None
            if members[path].settled != rest or not self._admits(path):
                self._evaluate(path, members[path], window, period, rest, rows.rest)

    def _evaluate(self, path: str, member: Member, window: int, period: float, bits: int, value: Observed) -> None:
        if not self._admits(path):
            self._leave(path, member, window)
            return
        moved = self._step(path, member.machine, window, period, self.program.residual(bits, value))
        member.settled = UNSETTLED if moved else bits
        if not moved and member.machine.blank:
            del self._members[path]

    def _leave(self, path: str, member: Member, window: int) -> None:
        """Withdraw all actions from members that left the group, PERSISTENT ones too."""
        if member.machine.outputs() != (False, False):
            self._record("taken_back", path, window)
        del self._members[path]
        self.context.listener.changed(self)

    def _admits(self, path: str) -> bool:
        target = self.plan.target
        return target.select != GROUP or self.context.groups.contains(target.level, target.name, path)

    def in_force(self) -> InForce:
        for path, member in self._members.items():
            yield from self._machine_in_force(path, member.machine)

    def members(self) -> dict[str, dict[str, Any]]:
        return {path: one.machine.to_data() for path, one in self._members.items() if not one.machine.blank}
