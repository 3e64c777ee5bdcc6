"""Receives the batches of the metrics in use from the bus."""

from __future__ import annotations

from collections.abc import Iterable

from sluice_actors.metrics.metric_router import MetricRouter
from sluice_actors.runtime.tasks import Service, Spawn
from sluice_core.connections.consumer import Consumer
from sluice_core.connections.exchanges import metric_routing_key


class BatchReceiver(Service):
    """Passes to ``router`` what comes for a queue; :meth:`bind_exactly` says of which metrics."""

    def __init__(self, amqp_url: str, router: MetricRouter) -> None:
        self.consumer = Consumer(amqp_url, router.aggregators.receive)
        self._router = router

    def start(self, spawn: Spawn) -> None:
        """Connect."""
        self.consumer.start()

    async def close(self) -> None:
        """Receive nothing more, and close no window by time."""
        await self.consumer.close()
        self._router.aggregators.close()

    def bind_exactly(self, metrics: Iterable[str]) -> None:
        """Receive the batches of these metrics and of no other."""
        wanted = {metric_routing_key(metric, "*") for metric in metrics}
        for pattern in set(self.consumer.bindings) - wanted:
            self.consumer.unbind(pattern)
        for pattern in sorted(wanted - set(self.consumer.bindings)):
            self.consumer.bind(pattern)
