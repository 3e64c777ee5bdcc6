"""Routes closed windows to the policy actors that subscribe to their metrics.

A :class:`~sluice_actors.metrics.subscription.MetricSubscription` groups the policies that read the same metrics at
the same granularity, or of the same nodes.  Each metric in use has an aggregator on this host, which starts from the
backlog of undecoded batches and closes the windows.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator

from sluice_actors.metrics.aggregator_pool import AggregatorPool, Backlog
from sluice_actors.metrics.subscription import MetricSubscription
from sluice_actors.metrics.windows import ClosedWindow, WindowHistory
from sluice_actors.runtime.actor import Delivery
from sluice_actors.runtime.system import ActorSystem
from sluice_dsl.plan import Reading

Tap = Callable[[ClosedWindow], None]


class MetricRouter:
    """The metrics in use on one host.

    :param clock: unix seconds
    """

    def __init__(self, system: ActorSystem, clock: Callable[[], float] = time.time) -> None:
        #: Set after windows were delivered to the actors; the task that waits clears it.
        self.delivered = asyncio.Event()
        #: Called with a metric's name and True when a subscriber begins to need it, False when none does.
        self.on_use: Callable[[str, bool], None] = lambda metric, used: None
        #: The batches of all metrics in use by the team.
        self.backlog = Backlog()
        self.aggregators = AggregatorPool(self._window_closed, clock, self.backlog)
        self._system = system
        self._subscriptions: dict[tuple[tuple[Reading, ...], str], MetricSubscription] = {}
        self._active: dict[str, list[MetricSubscription]] = {}
        self._taps: dict[str, dict[str, Tap]] = {}

    def subscription(self, readings: tuple[Reading, ...], granularity: str) -> MetricSubscription:
        """The subscription to ``readings``, at ``granularity`` for those without a place of their own."""
        key = (tuple(readings), granularity)
        known = self._subscriptions.get(key)
        if known is None:
            known = self._subscriptions[key] = MetricSubscription(self, *key)
        return known

    def _window_closed(self, closed: ClosedWindow) -> None:
        for subscription in list(self._active.get(closed.metric, ())):
            subscription.window_closed(closed)
        for tap in list(self._taps.get(closed.metric, {}).values()):
            tap(closed)

    def tap(self, metric: str, tap: Tap, who: str) -> None:
        """Call ``tap`` with every window of ``metric`` until :meth:`untap` is called for ``who``."""
        self._taps.setdefault(metric, {})[who] = tap
        self._update_use(metric)

    def untap(self, metric: str, who: str) -> None:
        """End the calls that :meth:`tap` began for ``who``."""
        taps = self._taps.get(metric, {})
        taps.pop(who, None)
        if not taps:
            self._taps.pop(metric, None)
        self._update_use(metric)

    def last_window(self, metric: str) -> ClosedWindow | None:
        """The window of ``metric`` that was closed last; None without any."""
        here = self.aggregators.get(metric)
        return None if here is None else here.last()

    def _update_use(self, metric: str) -> None:
        """Keep an aggregator of ``metric`` while a subscription needs it."""
        used = metric in self._active or metric in self._taps
        if used:
            self.aggregators.start(metric)
        else:
            self.aggregators.stop(metric)
        self.on_use(metric, used)

    # -- called by subscriptions

    def activate(self, subscription: MetricSubscription) -> None:
        """Handle the first subscriber of ``subscription``."""
        for name in subscription.metrics:
            self._active.setdefault(name, []).append(subscription)
            self._update_use(name)

    def deactivate(self, subscription: MetricSubscription) -> None:
        """Handle the end of the last subscriber of ``subscription``."""
        self._subscriptions.pop((subscription.readings, subscription.granularity), None)
        for name in subscription.metrics:
            self._active[name].remove(subscription)
            if not self._active[name]:
                del self._active[name]
                self._update_use(name)

    def history(self, metric: str) -> WindowHistory:
        """The closed windows of a metric in use."""
        history = self.aggregators.get(metric)
        assert history is not None
        return history

    def deliver(self, deliveries: Iterator[Delivery]) -> None:
        """Deliver a window to the actors."""
        self._system.send_each(deliveries)
        self.delivered.set()
