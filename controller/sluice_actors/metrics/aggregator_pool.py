"""The aggregators of one host: they get the batches from the bus, and timers close their windows.

The batches of the last seconds are kept undecoded (:class:`Backlog`), for policies taken over from another host.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Final

from sluice_actors.metrics.aggregator import Aggregator
from sluice_actors.metrics.windows import ClosedWindow
from sluice_actors.runtime.services import Service, Spawn
from sluice_core.connections.consumer import Consumer
from sluice_core.connections.exchanges import metric_routing_key
from sluice_core.errors import DecodeError
from sluice_core.messages.nodes import MetricBatch
from sluice_volumes.metrics import SLOW_PERIODS

log = logging.getLogger(__name__)

#: Seconds for which a batch is kept, longer than the team needs to detect a lost host and take over its work.
KEPT: Final = 12.0
#: Bytes of one metric that are kept; beyond that, fewer seconds are kept.
BYTES: Final = 64 * 1024 * 1024


class Backlog:
    """Raw batches by metric, in the order of their arrival.

    A host that takes over from one that has ended finds here the last batches that the other one received.  Bytes are
    cheap to keep; only batches of metrics in use here are decoded.
    """

    def __init__(self) -> None:
        self._raw: dict[str, deque[tuple[float, bytes]]] = {}
        self._sizes: dict[str, int] = {}

    def add(self, metric: str, body: bytes, now: float, kept: float = KEPT) -> None:
        """Keep one batch; drop those older than ``kept`` seconds, and those beyond :data:`BYTES`."""
        raw = self._raw.setdefault(metric, deque())
        raw.append((now, body))
        size = self._sizes.get(metric, 0) + len(body)
        while raw and (size > BYTES or not now - kept <= raw[0][0] <= now):
            size -= len(raw.popleft()[1])
        self._sizes[metric] = size

    def since(self, metric: str, moment: float) -> list[tuple[float, bytes]]:
        """The time of arrival and the bytes of all batches that arrived after ``moment``."""
        return [one for one in self._raw.get(metric, ()) if one[0] > moment]

    def decoded(self, metric: str, moment: float) -> Iterator[tuple[float, MetricBatch]]:
        """The same, decoded one by one; invalid ones are left out (``AggregatorPool.receive`` has logged them)."""
        for came, body in self.since(metric, moment):
            try:
                batch = MetricBatch.decode(body)
            except DecodeError:
                continue
            yield came, batch


#: A timer that fires later than this many seconds shows that the event loop was blocked.
_HELD: Final = 0.05
#: An aggregator starts with windows that ended this many seconds ago, less one; for a slow metric with the last one.
_LOOK_BACK: Final = 2


def routing_name(metric: str) -> str:
    """A metric's name in routing keys, and in the backlog."""
    return metric_routing_key(metric, "").split(".")[1]


#: Seconds for which batches are kept, by metric: for slow ones at least the last window of each node.
_KEPT: Final = {routing_name(metric): KEPT + 2 * period for metric, period in SLOW_PERIODS.items()}


@dataclass(slots=True)
class AggregatorPool:
    """One aggregator per metric that is used on this host.

    :param on_closed: called with each window, in the order in which a metric's windows close
    :param clock: unix seconds
    :param backlog: keeps the batches of all metrics
    """

    on_closed: Callable[[ClosedWindow], None]
    clock: Callable[[], float]
    backlog: Backlog
    undecodable: int = 0  #: messages that were not metric batches
    _aggregators: dict[str, Aggregator] = field(default_factory=dict)
    # The names of the aggregators in the spelling of routing keys.
    _decoded: frozenset[str] = frozenset()
    _timers: dict[str, asyncio.TimerHandle] = field(default_factory=dict)

    def receive(self, routing_key: str, body: bytes) -> None:
        """Handle a message from the bus."""
        metric = routing_key.split(".")[1]
        self.backlog.add(metric, body, self.clock(), _KEPT.get(metric, KEPT))
        if metric not in self._decoded:
            return
        try:
            batch = MetricBatch.decode(body)
        except DecodeError as error:
            self.undecodable += 1
            if self.undecodable == 1:
                log.error("message with routing key `%s`: %s; raw %r", routing_key, error, error.raw[:200])
            return
        self.add_batch(batch)

    def add_batch(self, batch: MetricBatch) -> None:
        """Merge a node's batch; batches of metrics without an aggregator are ignored."""
        aggregator = self._aggregators.get(batch.metric)
        if aggregator is not None:
            aggregator.add(batch, self.clock())
            self.close_due(batch.metric)

    def close_due(self, metric: str) -> None:
        """Close the windows of ``metric`` that are due, and set the timer for the others."""
        aggregator = self._aggregators[metric]
        now = self.clock()
        for closed in aggregator.close_due(now):
            self.on_closed(closed)
        self._disarm(metric)
        deadline = aggregator.deadline()
        if deadline is not None:
            self._arm(metric, max(0.0, deadline - now), self._time_is_over)

    def get(self, metric: str) -> Aggregator | None:
        """The aggregator of ``metric``; None if this host does not use it."""
        return self._aggregators.get(metric)

    def start(self, metric: str) -> None:
        """Start an aggregator with the batches of the backlog; a second call changes nothing."""
        if metric in self._aggregators:
            return
        now = self.clock()
        aggregator = self._aggregators[metric] = Aggregator(metric, now)
        self._decoded = frozenset(map(routing_name, self._aggregators))
        # The last window of a slow metric began up to two periods ago, and is valid until the next one closes.
        aggregator.period = SLOW_PERIODS.get(metric, aggregator.period)
        aggregator.through = int(now - _LOOK_BACK - 2 * (aggregator.period - 1))
        for came, batch in self.backlog.decoded(routing_name(metric), aggregator.through + aggregator.period):
            if batch.window > aggregator.through:
                aggregator.add(batch, came)
        self._arm(metric, 0.0, self.close_due)

    def stop(self, metric: str) -> None:
        """End the aggregator of ``metric``, if there is one."""
        if self._aggregators.pop(metric, None) is not None:
            self._disarm(metric)
            self._decoded = frozenset(map(routing_name, self._aggregators))

    def report(self) -> dict[str, dict[str, int]]:
        """Metric → the counts of its aggregator, for the host's report."""
        return {name: {"nodes": one.nodes, **asdict(one.counts)} for name, one in self._aggregators.items()}

    def close(self) -> None:
        """Cancel all timers."""
        for metric in list(self._timers):
            self._disarm(metric)

    def _disarm(self, metric: str) -> None:
        timer = self._timers.pop(metric, None)
        if timer is not None:
            timer.cancel()

    def _arm(self, metric: str, delay: float, then: Callable[[str], None]) -> None:
        self._timers[metric] = asyncio.get_running_loop().call_later(delay, then, metric)

    def _time_is_over(self, metric: str) -> None:
        deadline = self._aggregators[metric].deadline()
        if deadline is not None and self.clock() - deadline > _HELD:
            # The event loop was blocked: batches that arrived in time may still wait to be read.
            self._arm(metric, _HELD, self.close_due)
        else:
            self.close_due(metric)


class BatchReceiver(Service):
    """Receives batches for ``pool`` from the bus, for the metrics that were given to :meth:`bind_exactly`."""

    def __init__(self, amqp_url: str, pool: AggregatorPool) -> None:
        self.consumer = Consumer(amqp_url, pool.receive)
        self._pool = pool

    def start(self, spawn: Spawn) -> None:
        """Connect."""
        self.consumer.start()

    async def close(self) -> None:
        """Stop receiving, and stop the timers that close windows."""
        await self.consumer.close()
        self._pool.close()

    def bind_exactly(self, metrics: Iterable[str]) -> None:
        """Bind the batches of these metrics and of no others."""
        wanted = {metric_routing_key(metric, "*") for metric in metrics}
        for pattern in set(self.consumer.bindings) - wanted:
            self.consumer.unbind(pattern)
        for pattern in sorted(wanted - set(self.consumer.bindings)):
            self.consumer.bind(pattern)
