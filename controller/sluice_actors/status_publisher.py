"""Publishes the values of watched policies, and the host's own report."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from sluice_actors.metrics.metric_router import MetricRouter
from sluice_actors.policies.actor import PolicyActor
from sluice_actors.runtime.services import Service, Spawn, repeat_forever, wait_at_most
from sluice_actors.runtime.system import ActorSystem
from sluice_core.store.store import AsyncStore

_REPORT_INTERVAL: Final = 5.0


@dataclass(slots=True)
class StatusPublisher(Service):
    """Publishes both; ``report`` makes the report, every five seconds and after each :meth:`publish_soon`."""

    name: str
    store: AsyncStore
    system: ActorSystem
    router: MetricRouter
    actors: Mapping[str, PolicyActor]
    report: Callable[[], dict[str, Any]]
    clock: Callable[[], float]
    _reported: float = 0.0

    def publish_soon(self) -> None:
        """Publish the report at once."""
        self._reported = 0.0
        self.router.delivered.set()

    def start(self, spawn: Spawn) -> None:
        spawn(repeat_forever("show", self._step))

    async def _step(self) -> None:
        await wait_at_most(self.router.delivered, _REPORT_INTERVAL)
        await self.system.idle()
        self.router.delivered.clear()
        now = self.clock()
        shown = {}
        for name in await self.store.watched(now):
            actor = self.actors.get(name)
            subscription = None if actor is None else actor.subscription
            observed = None if actor is None or subscription is None else subscription.observed(actor)
            if observed is not None:
                shown[name] = observed
        if shown:
            await self.store.observe(shown)
        if now - self._reported >= _REPORT_INTERVAL or now < self._reported:
            self._reported = now
            try:
                await self.store.host_report(self.name, self.report())
            except BaseException:
                self._reported = 0.0
                raise
