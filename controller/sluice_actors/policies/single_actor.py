"""The actor of a policy about one named target, or about the cluster as a whole."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sluice_actors.policies.actor import UNSETTLED, InForce, PolicyActor
from sluice_actors.policies.state_machine import StateMachine
from sluice_actors.runtime.actor import Work
from sluice_core.messages.policies import CLUSTER, CONTAINER, TENANT, VOLUME, Target


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
            self._look(message, bits)
        return None

    def _look(self, message: tuple[int, float, Any], bits: int) -> None:
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
