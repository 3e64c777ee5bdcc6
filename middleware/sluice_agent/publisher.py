"""Once a second: what the node's workers counted, one batch per metric, to the bus."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections import Counter
from collections.abc import Callable
from typing import Final, Protocol

from sluice_core.keys import metric_routing_key
from sluice_core.messages import MetricBatch
from sluice_core.windows import Totals

log = logging.getLogger(__name__)

PERIOD: Final = 1.0
#: Windows that a late agent still makes good; what is older is told by the gap.
_MOST_LATE: Final = 5


class Bus(Protocol):
    """What is needed of a bus."""

    dropped: int

    def publish(self, routing_key: str, body: bytes) -> None:
        """Send, without blocking."""


class MetricPublisher:
    """Closes a window ``delay`` seconds after each wall-clock second.

    When the process slept through some seconds, what grew meanwhile is spread evenly over them.
    """

    def __init__(
        self, node: str, totals: Totals, bus: Bus, delay: float, clock: Callable[[], float] = time.time
    ) -> None:
        self._node = node
        self._totals = totals
        self._bus = bus
        self._delay = delay
        self._clock = clock
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
        for missed in range(min(elapsed, _MOST_LATE) - 1, -1, -1):
            for metric, found in values.items():
                self._numbers[metric] += 1
                batch = MetricBatch(self._node, metric, window - missed, self._numbers[metric], found, PERIOD)
                self._bus.publish(metric_routing_key(metric, self._node), batch.encode())
