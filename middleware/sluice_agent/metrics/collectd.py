"""CollectD's values of this node, as metrics of granularity ``node``.

CollectD sends to the exchange of the metrics, with this node's routing key.  It reads its plugins one after
the other, at moments of its own; here the newest value of each part (disk, interface) stands until the end
of a window, and what is not renewed for some periods is dropped.  So a window has a value of each metric
as long as CollectD lives, and nothing at all when it does not: nobody takes silence for idleness.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from sluice_core.connections.consumer import Consumer
from sluice_core.errors import DecodeError
from sluice_core.metrics.node_metrics import NODE, NODE_METRICS, NodeMetric, collectd_routing_key, parse_collectd
from sluice_core.metrics.totals import Sums

log = logging.getLogger(__name__)

#: Periods after which a value is no longer believed.
_BELIEVED: Final = 2.5
#: Seconds between looks at whether a window has ended; no period is shorter.
_TICK: Final = 1.0
_MOST_PARTS: Final = 1000


class Publish(Protocol):
    """Sends a node's values of one metric (see ``MetricPublisher.publish``)."""

    def __call__(self, metric: str, window: int, values: Sums, period: float) -> None: ...


@dataclass(slots=True)
class _Part:
    value: float
    interval: float
    at: float


class NodeValues:
    """Takes messages of CollectD; ``tick`` publishes what stands at the end of a window."""

    def __init__(self, node: str, publish: Publish, clock: Callable[[], float] = time.time) -> None:
        self._node = node
        self._publish = publish
        self._clock = clock
        self._parts: dict[tuple[str, str], _Part] = {}
        self._told: dict[str, int] = {}
        #: Messages that were none of CollectD's.
        self.undecodable = 0

    def received(self, routing_key: str, body: bytes) -> None:
        """Take a message."""
        try:
            found = parse_collectd(body)
        except DecodeError as error:
            self.undecodable += 1
            if self.undecodable == 1:
                log.error("message with routing key `%s`: %s; raw %r", routing_key, error, error.raw[:200])
            return
        now = self._clock()
        for one in found:
            key = (one.metric.info.name, one.part)
            if key in self._parts or len(self._parts) < _MOST_PARTS:
                self._parts[key] = _Part(one.value, one.interval, now)

    def tick(self) -> None:
        """Publish each metric whose window has ended since the last time."""
        now = self._clock()
        self._parts = {
            key: one for key, one in self._parts.items() if 0 <= now - one.at + 1 < _BELIEVED * one.interval + 1
        }
        for metric in NODE_METRICS:
            parts = [one for (name, _), one in self._parts.items() if name == metric.info.name]
            if parts:
                self._tell(metric, parts, now)

    def _tell(self, metric: NodeMetric, parts: list[_Part], now: float) -> None:
        name, period = metric.info.name, max(1, round(max(one.interval for one in parts)))
        window = (math.floor(now) // period - 1) * period
        told, self._told[name] = self._told.get(name), window
        if told == window or (told is None and math.floor(now) % period):
            return  # told, or heard of in the middle of the first window
        value = metric.combine(one.value for one in parts)
        self._publish(name, window, {NODE: {self._node: value}}, float(period))


class Collectd:
    """Listens to the node's CollectD, and publishes."""

    def __init__(self, node: str, amqp_url: str, publish: Publish, delay: float) -> None:
        self.values = NodeValues(node, publish)
        self._delay = delay
        self._consumer = Consumer(amqp_url, self.values.received, [collectd_routing_key(node)])

    async def run(self) -> None:
        """Work until cancelled."""
        self._consumer.start()
        try:
            while True:
                now = time.time() - self._delay
                await asyncio.sleep(math.floor(now) + _TICK - now)
                self.values.tick()
        finally:
            await self._consumer.close()
