"""CollectD's values of this node, as metrics of granularity ``node``.

CollectD sends to the exchange of the metrics, with this node's routing key.  It reads its plugins one after
the other, at different moments; the newest value of each part (disk, interface) is kept until the end of a window,
and dropped when it is not renewed for some periods.  So each window has a value of each metric while CollectD runs,
and no value when it does not: silence is not idleness.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from sluice_agent.metrics.publisher import call_each_second
from sluice_core.connections.consumer import Consumer
from sluice_core.errors import DecodeError
from sluice_core.metrics.node_metrics import NODE, NODE_METRICS, NodeMetric, collectd_routing_key, parse_collectd
from sluice_core.metrics.totals import Sums

log = logging.getLogger(__name__)

#: Periods after which a value is dropped.
_LIFETIME: Final = 2.5
_MOST_PARTS: Final = 1000


class Publish(Protocol):
    """Sends a node's values of one metric (see ``MetricPublisher.publish``)."""

    def __call__(self, metric: str, window: int, values: Sums, period: float) -> None: ...


@dataclass(slots=True)
class _Part:
    value: float
    interval: float
    at: float


@dataclass(eq=False)
class NodeValues:
    """Receives CollectD's messages; :meth:`tick` publishes the values of a window that has ended."""

    node: str
    publish: Publish
    clock: Callable[[], float] = time.time

    def __post_init__(self) -> None:
        self._parts: dict[tuple[str, str], _Part] = {}
        self._published: dict[str, int] = {}
        #: Messages that could not be decoded.
        self.undecodable = 0

    def received(self, routing_key: str, body: bytes) -> None:
        """Keep the newest values of one message; the first that cannot be decoded is logged, all are counted."""
        try:
            readings = parse_collectd(body)
        except DecodeError as error:
            self.undecodable += 1
            if self.undecodable == 1:
                log.error("message with routing key `%s`: %s; raw %r", routing_key, error, error.raw[:200])
            return
        now = self.clock()
        for reading in readings:
            key = (reading.metric.info.name, reading.part)
            if key in self._parts or len(self._parts) < _MOST_PARTS:
                self._parts[key] = _Part(reading.value, reading.interval, now)

    def tick(self) -> None:
        """Publish each metric whose window has ended since the last time."""
        now = self.clock()
        self._parts = {
            key: one for key, one in self._parts.items() if 0 <= now - one.at + 1 < _LIFETIME * one.interval + 1
        }
        for metric in NODE_METRICS:
            parts = [one for (name, _), one in self._parts.items() if name == metric.info.name]
            if parts:
                self._publish_metric(metric, parts, now)

    def _publish_metric(self, metric: NodeMetric, parts: list[_Part], now: float) -> None:
        name, period = metric.info.name, max(1, round(max(one.interval for one in parts)))
        window = (math.floor(now) // period - 1) * period
        published, self._published[name] = self._published.get(name), window
        if published == window or (published is None and math.floor(now) % period):
            return  # published already, or received in the middle of the first window
        value = metric.combine(one.value for one in parts)
        self.publish(name, window, {NODE: {self.node: value}}, float(period))


async def serve(node: str, amqp_url: str, publish: Publish, delay: float) -> None:
    """Consume the messages of the node's CollectD and publish its metrics, until cancelled.

    :param delay: seconds after the end of each second at which they are published
    """
    values = NodeValues(node, publish)
    consumer = Consumer(amqp_url, values.received, [collectd_routing_key(node)])
    consumer.start()
    try:
        await call_each_second(values.tick, delay)
    finally:
        await consumer.close()
