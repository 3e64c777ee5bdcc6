"""From closed windows to the actors that wait for them.

A :class:`Feed` stands for the policies that read the same metrics at the same granularity; it knows
who is interested in which path.  The :class:`Hub` owns one aggregator per metric in use and the timers
that close windows.

A feed over several metrics delivers a window once, when each of its metrics has closed it.  A metric
that no node reports any more counts as silent; one whose batches merely did not come makes the window
a missing one, which is delivered to nobody.  When periods differ, the shortest sets the pace, and of
the slower metrics the last value holds.
"""

from __future__ import annotations

import asyncio
import heapq
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from sluice_actors.aggregator import CLOSE_DELAY, Aggregator, Closed
from sluice_actors.policy import PolicyActor, SingleActor
from sluice_actors.program import Observed
from sluice_actors.runtime import ActorSystem, Delivery
from sluice_core.errors import DecodeError
from sluice_core.messages import MetricBatch

log = logging.getLogger(__name__)

Column = Mapping[str, float]
Columns = Sequence[Column]

#: Members of a family whose values are shown to whoever looks.
_SHOWN: Final = 100
#: A timer that is later than this many seconds says that the loop was held by something.
_HELD: Final = 0.05


class Feed:
    """The subscribers of some metrics at one granularity."""

    def __init__(self, hub: Hub, metrics: tuple[str, ...], granularity: str) -> None:
        self.metrics = metrics
        self.granularity = granularity
        self._hub = hub
        self._singles: dict[str, tuple[SingleActor, ...]] = {}
        self._families: dict[PolicyActor, None] = {}
        self._engaged: dict[SingleActor, None] = {}
        self._pending: dict[int, float] = {}
        self._last: tuple[int, Columns] | None = None
        self._size = 0

    # -- what policy actors call

    def subscribe(self, actor: PolicyActor) -> None:
        """Deliver to ``actor``; twice is once."""
        if isinstance(actor, SingleActor):
            known = self._singles.get(actor.path, ())
            if actor in known:
                return
            self._singles[actor.path] = (*known, actor)
        elif actor in self._families:
            return
        else:
            self._families[actor] = None
        self._size += 1
        if self._size == 1:
            self._hub.open(self)

    def unsubscribe(self, actor: PolicyActor) -> None:
        """Deliver nothing more; unknown ones are ignored."""
        if isinstance(actor, SingleActor):
            known = self._singles.get(actor.path, ())
            if actor not in known:
                return
            rest = tuple(one for one in known if one is not actor)
            if rest:
                self._singles[actor.path] = rest
            else:
                del self._singles[actor.path]
            self._engaged.pop(actor, None)
        elif actor in self._families:
            del self._families[actor]
        else:
            return
        self._size -= 1
        if not self._size:
            self._hub.shut(self)

    def engage(self, actor: SingleActor) -> None:
        """Tell ``actor`` of silent windows too."""
        self._engaged[actor] = None

    def disengage(self, actor: SingleActor) -> None:
        """Silence is no news for ``actor``."""
        self._engaged.pop(actor, None)

    # -- what the hub calls

    def closed(self, closed: Closed) -> None:
        """One of the metrics closed a window: deliver what is complete now."""
        if len(self.metrics) == 1:
            self._deliver(closed.window, closed.period, (closed.at(self.granularity),))
            return
        aggregators = [self._hub.aggregator(name) for name in self.metrics]
        if any(one.period < closed.period and not one.idle(closed.window) for one in aggregators):
            return
        self._pending[closed.window] = closed.period
        for window in sorted(self._pending):
            columns = self._columns(aggregators, window, self._pending[window])
            if columns is not None:
                self._deliver(window, self._pending[window], columns)
                self._pending = {one: period for one, period in self._pending.items() if one > window}
        oldest = closed.window - 4 * closed.period
        self._pending = {one: period for one, period in self._pending.items() if one >= oldest}

    def observed(self, actor: PolicyActor) -> dict[str, Any] | None:
        """The values of the last delivered window as ``actor`` saw them; None before the first."""
        if self._last is None:
            return None
        window, columns = self._last
        if isinstance(actor, SingleActor):
            return {"window": window, "values": self._named(columns, actor.path), "members": {}}
        paths = dict.fromkeys(member for member, _, _ in actor.in_force())
        for column in columns:
            paths.update(dict.fromkeys(heapq.nlargest(_SHOWN, column, key=column.__getitem__)))
        members = {path: self._named(columns, path) for path in list(paths)[:_SHOWN]}
        return {"window": window, "values": {}, "members": members}

    def _named(self, columns: Columns, path: str) -> dict[str, float | None]:
        return {name: column.get(path) for name, column in zip(self.metrics, columns, strict=True)}

    def _columns(self, aggregators: Sequence[Aggregator], window: int, period: float) -> Columns | None:
        columns: list[Column] = []
        for aggregator in aggregators:
            closed = aggregator.closed(window, period)
            if closed is not None:
                columns.append(closed.at(self.granularity))
            elif aggregator.idle(window):
                columns.append({})
            else:
                return None
        return columns

    def _deliver(self, window: int, period: float, columns: Columns) -> None:
        self._last = (window, columns)
        self._hub.deliver(self._deliveries(window, period, columns))

    def _deliveries(self, window: int, period: float, columns: Columns) -> Iterator[Delivery]:
        singles = self._singles
        if len(columns) == 1 and len(columns[0]) <= len(singles):
            for path, value in columns[0].items():
                for actor in singles.get(path, ()):
                    yield actor, (window, period, value)
        else:
            for path, actors in list(singles.items()):
                observed = _row(columns, path)
                if observed is not None:
                    for actor in actors:
                        yield actor, (window, period, observed)
        for actor in list(self._engaged):
            if _row(columns, actor.path) is None:
                yield actor, (window, period, None)
        for family in list(self._families):
            yield family, (window, period, _rows(columns))


def _row(columns: Columns, path: str) -> Observed:
    if len(columns) == 1:
        return columns[0].get(path)
    row = tuple([column.get(path) for column in columns])
    return None if all(value is None for value in row) else row


def _rows(columns: Columns) -> Iterator[tuple[str, Observed]]:
    if len(columns) == 1:
        return iter(columns[0].items())
    paths = dict.fromkeys(path for column in columns for path in column)
    return ((path, _row(columns, path)) for path in paths)


class Hub:
    """The metrics in use.

    :param used: called with a metric's name and True when somebody begins to need it, False when nobody does
    :param clock: unix seconds
    """

    def __init__(
        self,
        system: ActorSystem,
        close_delay: float = CLOSE_DELAY,
        used: Callable[[str, bool], None] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        #: Set after windows were handed to the actors; whoever waits clears it.
        self.delivered = asyncio.Event()
        #: Messages that were no metric batches.
        self.undecodable = 0
        self._system = system
        self._close_delay = close_delay
        self._used = used
        self._clock = clock
        self._feeds: dict[tuple[tuple[str, ...], str], Feed] = {}
        self._open: dict[str, list[Feed]] = {}
        self._aggregators: dict[str, Aggregator] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}

    def feed(self, metrics: tuple[str, ...], granularity: str) -> Feed:
        """The feed of ``metrics`` at ``granularity``."""
        key = (tuple(metrics), granularity)
        feed = self._feeds.get(key)
        if feed is None:
            feed = self._feeds[key] = Feed(self, *key)
        return feed

    def observed(self, actor: PolicyActor) -> dict[str, Any] | None:
        """The values that ``actor`` saw last; None before the first."""
        return self.feed(actor.plan.metrics, actor.plan.granularity).observed(actor)

    def receive(self, routing_key: str, body: bytes) -> None:
        """Take a message of the bus."""
        try:
            batch = MetricBatch.decode(body)
        except DecodeError as error:
            self.undecodable += 1
            if self.undecodable == 1:
                log.error("message with routing key `%s`: %s; raw %r", routing_key, error, error.raw[:200])
            return
        self.take(batch)

    def take(self, batch: MetricBatch) -> None:
        """Take a node's batch; those of metrics that nobody uses are ignored."""
        aggregator = self._aggregators.get(batch.metric)
        if aggregator is not None:
            aggregator.add(batch, self._clock())
            self.turn(batch.metric)

    def turn(self, metric: str) -> None:
        """Close what is due of ``metric`` and set the timer for what is not."""
        aggregator = self._aggregators[metric]
        now = self._clock()
        for closed in aggregator.due(now):
            for feed in list(self._open[metric]):
                feed.closed(closed)
        timer = self._timers.pop(metric, None)
        if timer is not None:
            timer.cancel()
        deadline = aggregator.deadline()
        if deadline is not None:
            self._arm(metric, max(0.0, deadline - now), self._time_is_over)

    def _arm(self, metric: str, delay: float, then: Callable[[str], None]) -> None:
        self._timers[metric] = asyncio.get_running_loop().call_later(delay, then, metric)

    def _time_is_over(self, metric: str) -> None:
        deadline = self._aggregators[metric].deadline()
        if deadline is not None and self._clock() - deadline > _HELD:
            # The loop was held: batches that came in time may still wait to be read.
            self._arm(metric, _HELD, self.turn)
        else:
            self.turn(metric)

    def report(self) -> dict[str, dict[str, int]]:
        """Metric → what its aggregator counted."""
        return {
            name: {
                "nodes": one.nodes,
                "late": one.tally.late,
                "skewed": one.tally.skewed,
                "lost": one.tally.lost,
                "partial": one.tally.partial,
            }
            for name, one in self._aggregators.items()
        }

    def close(self) -> None:
        """Set no timer any more."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    # -- what feeds call

    def open(self, feed: Feed) -> None:
        """``feed`` has a subscriber now."""
        for name in feed.metrics:
            if name not in self._open:
                self._open[name] = []
                self._aggregators[name] = Aggregator(name, self._clock(), self._close_delay)
                if self._used is not None:
                    self._used(name, True)
            self._open[name].append(feed)

    def shut(self, feed: Feed) -> None:
        """``feed`` has no subscriber any more."""
        self._feeds.pop((feed.metrics, feed.granularity), None)
        for name in feed.metrics:
            self._open[name].remove(feed)
            if self._open[name]:
                continue
            del self._open[name], self._aggregators[name]
            timer = self._timers.pop(name, None)
            if timer is not None:
                timer.cancel()
            if self._used is not None:
                self._used(name, False)

    def aggregator(self, metric: str) -> Aggregator:
        """The aggregator of a metric in use."""
        return self._aggregators[metric]

    def deliver(self, deliveries: Iterator[Delivery]) -> None:
        """Hand a window to the actors."""
        self._system.tell_each(deliveries)
        self.delivered.set()
