"""One metric over all nodes: batches in, closed windows out.  No timer and no I/O.

A window is *closed* when every node known to be alive has delivered its batch, or when its time is
over (its end plus the close delay); windows close in their order.  A node is alive for three windows
after the last one it delivered, so a dead node is waited for three times.  After a silence of all
nodes (start, broker cut) it is not known who is alive: for three windows only time closes.

An empty batch says that nothing happened on a node.  *No* batch says nothing at all: a window for
which no node delivered is never closed, and nobody is told that it was silent.

A batch for a closed window is late: counted and dropped.  One that is further in the future than any
clock should be is counted as skewed and dropped.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from sluice_core.messages.policies import MetricBatch
from sluice_core.metrics.merge import Merged

CLOSE_DELAY: Final = 0.25
ALIVE_WINDOWS: Final = 3
#: A first batch that comes after the time is over gives the other nodes this much more.
GRACE: Final = 0.1
#: How far a node's clock may be ahead of ours, and ours may be set back.
SKEW: Final = 10.0
#: Policies over several metrics wait for the slowest of them.
_REMEMBERED: Final = 3
_FORGOTTEN_AFTER: Final = 60

#: Granularity → path → value.
WindowValues = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True, slots=True)
class ClosedWindow:
    """A closed window of one metric; ``values`` has all that is known about it."""

    metric: str
    window: int
    period: float
    values: WindowValues

    def at(self, granularity: str) -> Mapping[str, float]:
        """Path → value at ``granularity``."""
        return self.values.get(granularity, {})


@dataclass(slots=True)
class _Open:
    window: int
    period: float
    first: float
    merged: Merged = field(default_factory=Merged)
    delivered: dict[str, set[int]] = field(default_factory=dict)

    def add(self, batch: MetricBatch) -> None:
        self.merged.add(batch)

    def closed(self, metric: str) -> ClosedWindow:
        return ClosedWindow(metric, self.window, self.period, self.merged.values())


@dataclass(slots=True)
class _Node:
    window: int
    seq: int


@dataclass(slots=True)
class AggregatorCounts:
    """What an aggregator counted: batches too late, from a wrong clock, and lost on the way (gaps in ``seq``)."""

    late: int = 0
    skewed: int = 0
    lost: int = 0
    partial: int = 0


class WindowHistory:
    """The last closed windows of one metric, wherever they were closed."""

    def __init__(self, metric: str, close_delay: float = CLOSE_DELAY) -> None:
        self.metric = metric
        self.period = 1.0
        self._delay = close_delay
        #: The window closed last.
        self.through: int | None = None
        self._closed: dict[int, ClosedWindow] = {}

    def remember(self, closed: ClosedWindow) -> None:
        """``closed`` is the newest now."""
        self.through = closed.window
        self._closed[closed.window] = closed
        while len(self._closed) > _REMEMBERED:
            del self._closed[next(iter(self._closed))]

    def idle(self, window: int) -> bool:
        """True when no node reports this metric, so that it has no value rather than an unknown one."""
        return False

    def closed(self, window: int, period: float) -> ClosedWindow | None:
        """What was closed for ``window`` of ``period``; of a slower metric the last value that still stands."""
        if self.period <= period:
            return self._closed.get(window)
        newest = self.last()
        if newest is None or newest.window + 2 * newest.period + self._delay < window:
            return None
        return newest

    def last(self) -> ClosedWindow | None:
        """The window closed last."""
        return next(reversed(self._closed.values()), None)

    def overdue(self, now: float) -> float:
        """For how many seconds the next window should have been closed."""
        return 0.0 if self.through is None else now - (self.through + 2 * self.period + self._delay)

    def after(self, window: int) -> list[ClosedWindow]:
        """Those of the last closed ones that follow ``window``."""
        return [closed for number, closed in self._closed.items() if number > window]


class Aggregator(WindowHistory):
    """Merges the batches of one metric.

    :param now: unix time at which it begins to listen
    """

    def __init__(self, metric: str, now: float, close_delay: float = CLOSE_DELAY) -> None:
        super().__init__(metric, close_delay)
        self.tally = AggregatorCounts()
        self._since = now
        self._nodes: dict[str, _Node] = {}
        self._open: dict[int, _Open] = {}
        self._learning_until = 0.0

    def add(self, batch: MetricBatch, now: float) -> None:
        """Take a node's batch; look at ``due`` afterwards."""
        if batch.window > now + SKEW:
            self.tally.skewed += 1
            return
        if self.through is not None and self.through > now + SKEW:
            self._forget(now)
        self.period = batch.period
        self._note_node(batch)
        if self.through is not None and batch.window <= self.through:
            self.tally.late += 1
            return
        window = self._open.get(batch.window)
        if window is None:
            window = self._open[batch.window] = _Open(batch.window, batch.period, now)
        seen = window.delivered.setdefault(batch.node, set())
        if batch.seq not in seen:
            seen.add(batch.seq)
            window.add(batch)

    def due(self, now: float) -> list[ClosedWindow]:
        """The windows that close now, in their order."""
        found = []
        for number in sorted(self._open):
            window = self._open[number]
            complete = self._complete(window)
            if not complete and self._deadline(window) > now:
                break
            del self._open[number]
            self.tally.partial += not complete and number >= self._learning_until
            closed = window.closed(self.metric)
            self.remember(closed)
            found.append(closed)
        return found

    def deadline(self) -> float | None:
        """When ``due`` should be looked at even if no batch comes, in unix time."""
        return min(map(self._deadline, self._open.values()), default=None)

    def idle(self, window: int) -> bool:
        return window >= self._since + ALIVE_WINDOWS * self.period and not self._alive(window)

    @property
    def nodes(self) -> int:
        """How many nodes were heard of in the last minute."""
        return len(self._nodes)

    def _deadline(self, window: _Open) -> float:
        return max(window.window + window.period + self._delay, window.first + min(GRACE, self._delay))

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
        # A smaller number is an agent that began anew, not a loss.
        self.tally.lost += max(0, batch.seq - node.seq - 1)
        node.seq = batch.seq
        node.window = max(node.window, batch.window)

    def _forget(self, now: float) -> None:
        """Our clock was set back: begin anew rather than call everything late for hours."""
        self._nodes.clear()
        self._open.clear()
        self._closed.clear()
        self._since = now
        self.through = None
