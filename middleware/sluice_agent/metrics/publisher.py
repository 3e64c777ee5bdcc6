"""Publishes the metrics of the node's workers once a second, one batch per metric."""

from __future__ import annotations

import asyncio
import heapq
import logging
import math
import time
from collections import Counter
from collections.abc import Callable
from typing import Final, Protocol

from sluice_core.connections.exchanges import metric_routing_key
from sluice_core.messages.nodes import MetricBatch
from sluice_core.messages.policies import OBJECT
from sluice_core.metrics.totals import WEIGHT, Sums, Totals, means

log = logging.getLogger(__name__)

PERIOD: Final = 1.0
#: Windows that a late agent still publishes; older ones are a gap in the numbers.
_MAX_LATE_WINDOWS: Final = 5
#: Objects whose values a node publishes, by default.
MOST_OBJECTS: Final = 1000
NOTHING: Final[Sums] = {}


class Bus(Protocol):
    """A publisher of messages."""

    dropped: int

    def publish(self, routing_key: str, body: bytes) -> None:
        """Send, without blocking."""


class MetricPublisher:
    """Closes a window ``delay`` seconds after each wall-clock second.

    When the process slept through some seconds, what grew meanwhile is spread evenly over them.
    """

    def __init__(
        self,
        node: str,
        totals: Totals,
        bus: Bus,
        delay: float,
        clock: Callable[[], float] = time.time,
        objects: int = MOST_OBJECTS,
    ) -> None:
        """
        :param objects: how many objects are published, the busiest
        """
        self._node = node
        self._totals = totals
        self._bus = bus
        self._delay = delay
        self._clock = clock
        self._objects = objects
        self._numbers: Counter[str] = Counter()
        self._last: int | None = None

    async def run(self) -> None:
        """Publish until cancelled."""
        while True:
            now = self._clock() - self._delay
            await asyncio.sleep(math.floor(now) + PERIOD - now)
            self.tick()

    def tick(self) -> None:
        """Close the window that ended last, unless it was closed before."""
        window = math.floor(self._clock() - self._delay) - 1
        elapsed = 1 if self._last is None else window - self._last
        if elapsed == 0:
            return  # woken a moment too early
        if elapsed < 0:
            log.warning("the clock went back by %d s", -elapsed)
            elapsed = 1
        self._last = window
        values = self._totals.close_window(window, PERIOD * elapsed)
        weights = {name: values.pop(name + WEIGHT) for name in list(values) if name + WEIGHT in values}
        for missed in range(min(elapsed, _MAX_LATE_WINDOWS) - 1, -1, -1):
            for metric, found in values.items():
                if metric in weights:
                    self.publish(metric, window - missed, means(found, weights[metric]), weights=weights[metric])
                else:
                    self.publish(metric, window - missed, busiest(found, self._objects))

    def publish(self, metric: str, window: int, values: Sums, period: float = PERIOD, weights: Sums = NOTHING) -> None:
        """Send this node's values of one metric."""
        self._numbers[metric] += 1
        batch = MetricBatch(self._node, metric, window, self._numbers[metric], values, period, weights)
        self._bus.publish(metric_routing_key(metric, self._node), batch.encode())


def busiest(values: Sums, most: int) -> Sums:
    """``values`` with at most so many objects: those with the highest values."""
    objects = values.get(OBJECT)
    if objects is None or len(objects) <= most:
        return values
    kept = heapq.nlargest(most, objects, key=objects.__getitem__)
    return {**values, OBJECT: {path: objects[path] for path in kept}}
