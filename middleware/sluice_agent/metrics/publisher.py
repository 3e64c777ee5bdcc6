"""Publishes the metrics of the node's workers once a second, one batch per metric."""

from __future__ import annotations

import asyncio
import heapq
import logging
import math
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final, Protocol

from sluice_core.connections.exchanges import metric_routing_key
from sluice_core.messages.nodes import MetricBatch
from sluice_core.messages.policies import OBJECT
from sluice_core.metrics.sketch import estimate_quantiles, pack
from sluice_core.metrics.totals import WEIGHT, Sums, Totals, means

log = logging.getLogger(__name__)

PERIOD: Final = 1.0
#: Windows that a late agent still publishes; older ones are a gap in the numbers.
_MAX_LATE_WINDOWS: Final = 5
#: Objects whose values a node publishes, by default.
MOST_OBJECTS: Final = 1000


class Bus(Protocol):
    """A publisher of messages."""

    dropped: int

    def publish(self, routing_key: str, body: bytes) -> None:
        """Send without blocking; messages beyond the queue's limit are counted in ``dropped``."""


async def call_each_second(tick: Callable[[], None], delay: float) -> None:
    """Call ``tick`` until cancelled, ``delay`` seconds after the wall clock begins a second."""
    while True:
        now = time.time() - delay
        await asyncio.sleep(math.floor(now) + PERIOD - now)
        tick()


@dataclass(eq=False)
class MetricPublisher:
    """Closes a window ``delay`` seconds after each wall-clock second.

    When the process was suspended for some seconds, the growth of that time is spread evenly over them.
    """

    node: str
    totals: Totals
    bus: Bus
    delay: float
    clock: Callable[[], float] = time.time
    #: How many objects are published; the busiest ones are chosen.
    objects: int = MOST_OBJECTS

    def __post_init__(self) -> None:
        self._numbers: Counter[str] = Counter()
        self._last: int | None = None

    async def run(self) -> None:
        """Close a window each second until cancelled."""
        await call_each_second(self.tick, self.delay)

    def tick(self) -> None:
        """Close the window that ended last, unless it was closed before."""
        window = math.floor(self.clock() - self.delay) - 1
        elapsed = 1 if self._last is None else window - self._last
        if elapsed == 0:
            return  # the timer fired a moment too early
        if elapsed < 0:
            log.warning("the clock went back by %d s", -elapsed)
            elapsed = 1
        self._last = window
        batches = list(self._close(PERIOD * elapsed))
        for missed in range(min(elapsed, _MAX_LATE_WINDOWS) - 1, -1, -1):
            for batch in batches:
                self._send(replace(batch, window=window - missed))

    def publish(self, metric: str, window: int, values: Sums, period: float = PERIOD) -> None:
        """Send this node's values of one metric."""
        self._send(MetricBatch(self.node, metric, window, 0, values, period))

    def _close(self, elapsed: float) -> Iterator[MetricBatch]:
        """One batch of each metric of the workers, for the ``elapsed`` seconds until now; window and number are 0."""
        found = self.totals.close_window(elapsed)
        for metric, values in found.items():
            weights = found.get(metric + WEIGHT)
            if weights is not None:
                yield MetricBatch(self.node, metric, 0, 0, means(values, weights), weights=weights)
            elif not metric.endswith(WEIGHT):
                yield MetricBatch(self.node, metric, 0, 0, busiest(values, self.objects))
        for metric, (quantile, sketches) in self.totals.close_quantiles(elapsed).items():
            values = estimate_quantiles(sketches, quantile)
            packed = {level: {path: pack(one) for path, one in rows.items()} for level, rows in sketches.items()}
            yield MetricBatch(self.node, metric, 0, 0, values, quantile=quantile, sketches=packed)

    def _send(self, batch: MetricBatch) -> None:
        self._numbers[batch.metric] += 1
        batch = replace(batch, seq=self._numbers[batch.metric])
        self.bus.publish(metric_routing_key(batch.metric, self.node), batch.encode())


def busiest(values: Sums, most: int) -> Sums:
    """``values`` with at most so many objects: those with the highest values."""
    objects = values.get(OBJECT)
    if objects is None or len(objects) <= most:
        return values
    kept = heapq.nlargest(most, objects, key=objects.__getitem__)
    return {**values, OBJECT: {path: objects[path] for path in kept}}
