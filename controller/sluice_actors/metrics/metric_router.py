"""Routes closed windows to the policy actors that subscribe to their metrics.

A :class:`~sluice_actors.metrics.subscription.MetricSubscription` groups the policies that read the same metrics at
the same granularity, or of the same nodes.  Each metric in use has its windows closed on this host, by an aggregator,
or on another host of the team (``sluice_actors.hosts.exchange``).  In the second case the router *follows* the windows
that come from there.  It can close the windows itself at any moment: the aggregator starts from the backlog of
undecoded batches, behind the last window that was delivered.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator

from sluice_actors.metrics.aggregator_pool import AggregatorPool
from sluice_actors.metrics.backlog import Backlog
from sluice_actors.metrics.subscription import MetricSubscription
from sluice_actors.metrics.windows import CLOSE_DELAY, NO_WINDOW, ClosedWindow, WindowHistory
from sluice_actors.runtime.actor import Delivery
from sluice_actors.runtime.system import ActorSystem
from sluice_core.metrics.reading import Reading

Tap = Callable[[ClosedWindow], None]


class MetricRouter:
    """The metrics in use on one host.

    :param clock: unix seconds
    """

    def __init__(
        self, system: ActorSystem, close_delay: float = CLOSE_DELAY, clock: Callable[[], float] = time.time
    ) -> None:
        #: Set after windows were handed to the actors; whoever waits clears it.
        self.delivered = asyncio.Event()
        #: Called with a metric's name and True when somebody begins to need it, False when nobody does.
        self.on_use: Callable[[str, bool], None] = lambda metric, used: None
        self.on_interest: Callable[[MetricSubscription, str | None], None] = lambda subscription, path: None
        #: The batches of all metrics in use by the team.
        self.backlog = Backlog()
        self.aggregators = AggregatorPool(self._window_closed, close_delay, clock, self.backlog)
        self._system = system
        self._close_delay = close_delay
        self._subscriptions: dict[tuple[tuple[Reading, ...], str], MetricSubscription] = {}
        self._active: dict[str, list[MetricSubscription]] = {}
        self._taps: dict[str, dict[str, Tap]] = {}
        self._followed: dict[str, WindowHistory] = {}

    def subscription(self, readings: tuple[Reading, ...], granularity: str) -> MetricSubscription:
        """The subscription to ``readings``, at ``granularity`` where they do not say where."""
        key = (tuple(readings), granularity)
        known = self._subscriptions.get(key)
        if known is None:
            known = self._subscriptions[key] = MetricSubscription(self, *key)
        return known

    # -- windows, closed here

    def _window_closed(self, closed: ClosedWindow) -> None:
        if closed.metric not in self._followed:
            self._deliver(closed)
        for tap in list(self._taps.get(closed.metric, {}).values()):
            tap(closed)

    def _deliver(self, closed: ClosedWindow) -> None:
        for subscription in list(self._active.get(closed.metric, ())):
            subscription.window_closed(closed)

    def tap(self, metric: str, tap: Tap, who: str) -> None:
        """Call ``tap`` with every window of ``metric``, which is closed here, until ``who`` calls :meth:`untap`."""
        self._taps.setdefault(metric, {})[who] = tap
        self._settle(metric)

    def untap(self, metric: str, who: str) -> None:
        """End what ``who`` began with :meth:`tap`."""
        taps = self._taps.get(metric, {})
        taps.pop(who, None)
        if not taps:
            self._taps.pop(metric, None)
        self._settle(metric)

    def last_window(self, metric: str) -> ClosedWindow | None:
        """The window of ``metric`` that was closed here last."""
        here = self.aggregators.get(metric)
        return None if here is None else here.last()

    # -- windows, from another host

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics that policies here wait for."""
        return tuple(self._active)

    def follows(self, metric: str) -> bool:
        """True when the windows of ``metric`` come from another host."""
        return metric in self._followed

    def subscriptions(self, metric: str) -> list[MetricSubscription]:
        """The subscriptions that wait for ``metric``."""
        return self._active.get(metric, [])

    def follow(self, metric: str) -> None:
        """Windows of ``metric`` come by :meth:`relay` from now on; what was closed here is where they go on."""
        followed = self._followed[metric] = WindowHistory(metric, self._close_delay)
        here = self.aggregators.get(metric)
        if here is not None:
            followed.period = here.period
            for closed in here.after(NO_WINDOW):
                followed.remember(closed)
            followed.through = here.through
        self._settle(metric)

    def relay(self, closed: ClosedWindow) -> None:
        """Another host closed a window of a metric that we follow."""
        followed = self._followed[closed.metric]
        followed.period = closed.period
        followed.remember(closed)
        self._deliver(closed)

    def aggregate_here(self, metric: str) -> None:
        """Close the windows of ``metric`` here, beginning behind the last one that was delivered."""
        followed = self._followed.pop(metric, None)
        if followed is None:
            return
        here = self.aggregators.get(metric)
        if here is not None:
            for closed in here.after(NO_WINDOW if followed.through is None else followed.through):
                self._deliver(closed)
        else:
            self._settle(metric, followed)

    def _settle(self, metric: str, before: WindowHistory | None = None) -> None:
        """Have an aggregator of ``metric`` if its windows are to be closed here, and none otherwise."""
        active, tapped = metric in self._active, metric in self._taps
        if tapped or (active and metric not in self._followed):
            self.aggregators.start(metric, before or self._followed.get(metric))
        else:
            self.aggregators.stop(metric)
        self.on_use(metric, active or tapped)

    # -- what subscriptions call

    def activate(self, subscription: MetricSubscription) -> None:
        """``subscription`` has a subscriber now."""
        for name in subscription.metrics:
            self._active.setdefault(name, []).append(subscription)
            self._settle(name)

    def deactivate(self, subscription: MetricSubscription) -> None:
        """``subscription`` has no subscriber any more."""
        self._subscriptions.pop((subscription.readings, subscription.granularity), None)
        for name in subscription.metrics:
            self._active[name].remove(subscription)
            if not self._active[name]:
                del self._active[name]
                self._followed.pop(name, None)
                self._settle(name)

    def history(self, metric: str) -> WindowHistory:
        """The closed windows of a metric in use."""
        history = self._followed.get(metric) or self.aggregators.get(metric)
        assert history is not None
        return history

    def deliver(self, deliveries: Iterator[Delivery]) -> None:
        """Hand a window to the actors."""
        self._system.send_each(deliveries)
        self.delivered.set()
