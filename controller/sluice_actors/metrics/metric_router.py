"""Routes batches to aggregators, and closed windows to the policy actors that subscribe to them.

A :class:`~sluice_actors.metrics.subscription.MetricSubscription` groups the policies that read the same metrics at
the same granularity.  The :class:`MetricRouter` has one aggregator per metric whose windows are closed on this host,
and the timers that close them.

In a team another host aggregates most metrics (``sluice_actors.hosts.exchange``).  The router then *follows* the
windows that come from there, and keeps the batches, not decoded, in a backlog.  It can close the windows itself
at any moment: the aggregator starts from the backlog, behind the last window that was delivered.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

from sluice_actors.metrics.aggregator import CLOSE_DELAY, Aggregator, ClosedWindow, WindowHistory
from sluice_actors.metrics.backlog import Backlog
from sluice_actors.metrics.subscription import MetricSubscription
from sluice_actors.policies.actor import PolicyActor
from sluice_actors.runtime.system import ActorSystem, Delivery
from sluice_core.connections.exchanges import metric_routing_key
from sluice_core.errors import DecodeError
from sluice_core.messages.policies import MetricBatch

log = logging.getLogger(__name__)

Tap = Callable[[ClosedWindow], None]

#: A timer that is later than this many seconds says that the loop was held by something.
_HELD: Final = 0.05
#: A metric of which nothing was delivered yet begins so many seconds ago, if there is a backlog.
_LOOK_BACK: Final = 2


def routing_name(metric: str) -> str:
    """A metric's name as it stands in routing keys, and in the backlog."""
    return metric_routing_key(metric, "").split(".")[1]


class MetricRouter:
    """The metrics in use.

    :param used: called with a metric's name and True when somebody begins to need it, False when nobody does
    :param clock: unix seconds
    :param backlog: where batches are kept, in a team
    """

    def __init__(
        self,
        system: ActorSystem,
        close_delay: float = CLOSE_DELAY,
        used: Callable[[str, bool], None] | None = None,
        clock: Callable[[], float] = time.time,
        backlog: Backlog | None = None,
    ) -> None:
        #: Set after windows were handed to the actors; whoever waits clears it.
        self.delivered = asyncio.Event()
        #: Messages that were no metric batches.
        self.undecodable = 0
        #: Told of a feed's metrics, its granularity, and the path that somebody begins or ceases to wait for.
        self.interest: Callable[[MetricSubscription, str | None], None] | None = None
        self.backlog = backlog
        self._system = system
        self._close_delay = close_delay
        self._used = used
        self._clock = clock
        self._feeds: dict[tuple[tuple[str, ...], str], MetricSubscription] = {}
        self._open: dict[str, list[MetricSubscription]] = {}
        self._taps: dict[str, dict[str, Tap]] = {}
        self._aggregators: dict[str, Aggregator] = {}
        self._followed: dict[str, WindowHistory] = {}
        # As routing keys spell them.
        self._decoded: frozenset[str] = frozenset()
        self._timers: dict[str, asyncio.TimerHandle] = {}

    def feed(self, metrics: tuple[str, ...], granularity: str) -> MetricSubscription:
        """The feed of ``metrics`` at ``granularity``."""
        key = (tuple(metrics), granularity)
        feed = self._feeds.get(key)
        if feed is None:
            feed = self._feeds[key] = MetricSubscription(self, *key)
        return feed

    def observed(self, actor: PolicyActor) -> dict[str, Any] | None:
        """The values that ``actor`` saw last; None before the first."""
        return self.feed(actor.plan.metrics, actor.plan.granularity).observed(actor)

    # -- batches, from the bus

    def receive(self, routing_key: str, body: bytes) -> None:
        """Take a message of the bus."""
        if self.backlog is not None:
            metric = routing_key.split(".")[1]
            self.backlog.add(metric, body, self._clock())
            if metric not in self._decoded:
                return
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
            if metric not in self._followed:
                self._hand_on(closed)
            for tap in list(self._taps.get(metric, {}).values()):
                tap(closed)
        self._disarm(metric)
        deadline = aggregator.deadline()
        if deadline is not None:
            self._arm(metric, max(0.0, deadline - now), self._time_is_over)

    def _hand_on(self, closed: ClosedWindow) -> None:
        for feed in list(self._open.get(closed.metric, ())):
            feed.closed(closed)

    def _disarm(self, metric: str) -> None:
        timer = self._timers.pop(metric, None)
        if timer is not None:
            timer.cancel()

    def _arm(self, metric: str, delay: float, then: Callable[[str], None]) -> None:
        self._timers[metric] = asyncio.get_running_loop().call_later(delay, then, metric)

    def _time_is_over(self, metric: str) -> None:
        deadline = self._aggregators[metric].deadline()
        if deadline is not None and self._clock() - deadline > _HELD:
            # The loop was held: batches that came in time may still wait to be read.
            self._arm(metric, _HELD, self.turn)
        else:
            self.turn(metric)

    # -- windows, from another host

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics that policies here wait for."""
        return tuple(self._open)

    def follows(self, metric: str) -> bool:
        """True when the windows of ``metric`` come from another host."""
        return metric in self._followed

    def waiting(self, metric: str) -> list[MetricSubscription]:
        """The feeds that wait for ``metric``."""
        return self._open.get(metric, [])

    def follow(self, metric: str) -> WindowHistory:
        """Windows of ``metric`` come by :meth:`relay` from now on; what was closed here is where they go on."""
        followed = self._followed.get(metric)
        if followed is None:
            here = self._aggregators.get(metric)
            followed = self._followed[metric] = WindowHistory(metric, self._close_delay)
            if here is not None:
                followed.period = here.period
                for closed in here.after(-1):
                    followed.remember(closed)
                followed.through = here.through
            self._settle(metric)
        return followed

    def relay(self, closed: ClosedWindow) -> None:
        """Another host closed a window of a metric that we follow."""
        followed = self._followed[closed.metric]
        followed.period = closed.period
        followed.remember(closed)
        self._hand_on(closed)

    def lead(self, metric: str) -> None:
        """Close the windows of ``metric`` here, beginning behind the last one that was delivered."""
        followed = self._followed.pop(metric, None)
        if followed is None:
            return
        here = self._aggregators.get(metric)
        if here is not None:
            for closed in here.after(-1 if followed.through is None else followed.through):
                self._hand_on(closed)
        else:
            self._settle(metric, followed)

    def tap(self, metric: str, tap: Tap, who: str) -> None:
        """Have ``tap`` called with every window of ``metric``, which is closed here, until ``who`` wants no more."""
        self._taps.setdefault(metric, {})[who] = tap
        self._settle(metric)

    def untap(self, metric: str, who: str) -> None:
        """Call what ``who`` gave to :meth:`tap` no more."""
        taps = self._taps.get(metric, {})
        taps.pop(who, None)
        if not taps:
            self._taps.pop(metric, None)
        self._settle(metric)

    def _settle(self, metric: str, before: WindowHistory | None = None) -> None:
        """Have an aggregator of ``metric`` if its windows are to be closed here, and none otherwise."""
        wanted = metric in self._taps or (metric in self._open and metric not in self._followed)
        if wanted and metric not in self._aggregators:
            self._begin(metric, before or self._followed.get(metric))
        elif not wanted and metric in self._aggregators:
            del self._aggregators[metric]
            self._disarm(metric)
        self._decoded = frozenset(map(routing_name, self._aggregators))
        if self._used is not None:
            self._used(metric, metric in self._open or metric in self._taps)

    def _begin(self, metric: str, before: WindowHistory | None) -> None:
        """An aggregator that begins with what the backlog has behind ``before``."""
        now = self._clock()
        aggregator = self._aggregators[metric] = Aggregator(metric, now, self._close_delay)
        if self.backlog is None:
            return
        if before is not None and before.through is not None:
            aggregator.through, aggregator.period = before.through, before.period
        else:
            aggregator.through = int(now) - _LOOK_BACK
        for came, batch in self.backlog.decoded(routing_name(metric), aggregator.through + aggregator.period):
            if batch.window > aggregator.through:
                aggregator.add(batch, came)
        self._arm(metric, 0.0, self.turn)

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

    def open(self, feed: MetricSubscription) -> None:
        """``feed`` has a subscriber now."""
        for name in feed.metrics:
            self._open.setdefault(name, []).append(feed)
            self._settle(name)

    def shut(self, feed: MetricSubscription) -> None:
        """``feed`` has no subscriber any more."""
        self._feeds.pop((feed.metrics, feed.granularity), None)
        for name in feed.metrics:
            self._open[name].remove(feed)
            if not self._open[name]:
                del self._open[name]
                self._followed.pop(name, None)
                self._settle(name)

    def touched(self, feed: MetricSubscription, path: str | None) -> None:
        """Somebody begins or ceases to wait for ``path`` (None: for all paths) at ``feed``."""
        if self.interest is not None:
            self.interest(feed, path)

    def last(self, metric: str) -> ClosedWindow | None:
        """The window of ``metric`` that was closed here last."""
        here = self._aggregators.get(metric)
        return None if here is None else here.last()

    def windows(self, metric: str) -> WindowHistory:
        """The closed windows of a metric in use."""
        followed = self._followed.get(metric)
        return self._aggregators[metric] if followed is None else followed

    def deliver(self, deliveries: Iterator[Delivery]) -> None:
        """Hand a window to the actors."""
        self._system.tell_each(deliveries)
        self.delivered.set()
