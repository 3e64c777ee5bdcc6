"""Merges the batches of one metric over all nodes into closed windows.  No timer, no I/O.

Theory of operation

* A window *closes* when every live node has delivered its batch, or when its time has passed: the window's end plus
  the close delay.  Windows close in their order.
* A node is *live* for three windows after the last one it delivered, so windows wait for a failed node three times.
  After a silence of all nodes (start, broker cut) the live nodes are not known: for three windows only time
  closes a window.
* An empty batch means that nothing happened on a node.  A missing batch has no meaning: a window for
  which no node delivered never closes, and no subscriber receives it.
* A batch for a closed window is *late*: it is counted and dropped.  A batch whose window lies further ahead than
  any clock should be is *skewed*: it is counted and dropped.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from sluice_actors.metrics.windows import CLOSE_DELAY, ClosedWindow, WindowHistory
from sluice_core.messages.nodes import MetricBatch
from sluice_core.metrics.merge import MergedBatches

ALIVE_WINDOWS: Final = 3
#: Additional seconds for the other nodes when the first batch arrives after the time of a window has passed.
GRACE: Final = 0.1
#: Seconds by which a node's clock may be ahead of this host's clock, and by which this one may be set back.
SKEW: Final = 10.0
_FORGOTTEN_AFTER: Final = 60


@dataclass(slots=True)
class _Open:
    window: int
    period: float
    first: float
    merged: MergedBatches = field(default_factory=MergedBatches)
    delivered: dict[str, set[int]] = field(default_factory=dict)


@dataclass(slots=True)
class _Node:
    window: int
    seq: int


@dataclass(slots=True)
class AggregatorCounts:
    """The counts of an aggregator: batches too late, from a wrong clock, and lost on the way (gaps in ``seq``)."""

    late: int = 0
    skewed: int = 0
    lost: int = 0
    partial: int = 0


class Aggregator(WindowHistory):
    """Merges the batches of one metric.

    :param now: Unix time from which it receives batches
    """

    def __init__(self, metric: str, now: float) -> None:
        super().__init__(metric)
        self.counts = AggregatorCounts()
        self._since = now
        self._nodes: dict[str, _Node] = {}
        self._open: dict[int, _Open] = {}
        self._learning_until = 0.0

    def add(self, batch: MetricBatch, now: float) -> None:
        """Merge a node's batch; call ``close_due`` afterwards."""
        if batch.window > now + SKEW:
            self.counts.skewed += 1
            return
        if self.through is not None and self.through > now + SKEW:
            self._forget(now)
        if batch.period > self.period and self.through is not None and not self._closed:
            # No window was closed yet, and ``through`` was set for windows that begin later.
            self.through -= int(batch.period - self.period)
        self.period = batch.period
        self._note_node(batch)
        if self.through is not None and batch.window <= self.through:
            self.counts.late += 1
            return
        window = self._open.get(batch.window)
        if window is None:
            window = self._open[batch.window] = _Open(batch.window, batch.period, now)
        seen = window.delivered.setdefault(batch.node, set())
        if batch.seq not in seen:
            seen.add(batch.seq)
            window.merged.add(batch)

    def close_due(self, now: float) -> list[ClosedWindow]:
        """The windows that close now, in their order."""
        closing = []
        for number in sorted(self._open):
            window = self._open[number]
            complete = self._complete(window)
            if not complete and self._deadline(window) > now:
                break
            del self._open[number]
            self.counts.partial += not complete and number >= self._learning_until
            closed = ClosedWindow(self.metric, number, window.period, window.merged.values())
            self.remember(closed)
            closing.append(closed)
        return closing

    def deadline(self) -> float | None:
        """The Unix time at which ``close_due`` must be called even if no batch arrives; None without open windows."""
        return min(map(self._deadline, self._open.values()), default=None)

    def unreported(self, window: int) -> bool:
        return window >= self._since + ALIVE_WINDOWS * self.period and not self._alive(window)

    @property
    def nodes(self) -> int:
        """The number of nodes that have sent batches in the last minute."""
        return len(self._nodes)

    def _deadline(self, window: _Open) -> float:
        end = window.window + window.period
        return max(end + self.close_delay(window.period), window.first + min(GRACE, CLOSE_DELAY))

    def _complete(self, window: _Open) -> bool:
        if window.window < self._learning_until:
            return False
        return all(node in window.delivered for node in self._alive(window.window))

    def _alive(self, window: int) -> list[str]:
        oldest = window - ALIVE_WINDOWS * self.period
        return [name for name, node in self._nodes.items() if node.window >= oldest]

    def _note_node(self, batch: MetricBatch) -> None:
        if not self._alive(batch.window):
            self._learning_until = batch.window + ALIVE_WINDOWS * batch.period
        node = self._nodes.get(batch.node)
        if node is None:
            self._nodes[batch.node] = _Node(batch.window, batch.seq)
            oldest = batch.window - _FORGOTTEN_AFTER * batch.period
            self._nodes = {name: one for name, one in self._nodes.items() if one.window >= oldest}
            return
        # A smaller number comes from an agent that started again, and is not a loss.
        self.counts.lost += max(0, batch.seq - node.seq - 1)
        node.seq = batch.seq
        node.window = max(node.window, batch.window)

    def _forget(self, now: float) -> None:
        """Start anew after this host's clock was set back; otherwise all batches would count as late for hours."""
        self._nodes.clear()
        self._open.clear()
        self._closed.clear()
        self._since = now
        self.through = None
