"""When rounds are made: as soon as all nodes have reported a second, at the latest some milliseconds after its end.

The wall clock is used only for the end of seconds.  The monotonic clock records which second had its round, so setting
the wall clock neither repeats rounds nor leaves any out.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Collection
from typing import Final

from sluice_actors.bandwidth.loads.node_loads import Node

#: Seconds after the end of a second at which its round is made at the latest.
DELAY: Final = 0.18
#: A round waits for the nodes that reported within this many seconds.
_RECENT_SECONDS: Final = 2.5
#: The least distance between the ends of the seconds of two rounds, however the wall clock is set meanwhile.
_MIN_DISTANCE: Final = 0.5


class RoundTimer:
    """:param clock: Unix time
    :param monotonic: seconds of a clock that never jumps
    """

    def __init__(self, clock: Callable[[], float], monotonic: Callable[[], float]) -> None:
        self._clock = clock
        self._monotonic = monotonic
        self._boundary = -math.inf
        self._awaited: set[str] = set()
        #: Set when all nodes that the round waits for have reported.
        self.complete = asyncio.Event()

    def start(self, nodes: Collection[Node]) -> float:
        """Wait for reports of the second that ends next; returns the longest time to wait, in seconds."""
        now, there = self._clock(), self._monotonic()
        boundary = there + math.floor(now - DELAY) + 1 - now
        if boundary - self._boundary < _MIN_DISTANCE:
            boundary += 1.0
        self._boundary = boundary
        self._awaited = {node.name for node in nodes if -_RECENT_SECONDS < node.arrived - boundary < 0.0}
        self.complete.clear()
        return boundary + DELAY - there

    def reported(self, node: str, now: float) -> None:
        """A report of ``node`` arrived at ``now``."""
        if now >= self._boundary and node in self._awaited:
            self._awaited.discard(node)
            if not self._awaited:
                self.complete.set()
