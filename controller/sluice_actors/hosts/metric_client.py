"""A host's subscriptions to metrics that other hosts of the team own.

Theory of operation

* The client tells the owner of a metric which targets its actors wait for, and gets what changed in each closed
  window.  Both directions are numbered; a gap ends the session.
* It never waits for an owner.  As soon as another host owns the metric, or the owner is late, the router closes the
  windows here, behind the last one that came.  When the owner delivers a window that joins what was delivered,
  the router follows again.  No window is lost or delivered twice.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from sluice_actors.hosts.messages import InterestUpdate, WindowUpdate, pack
from sluice_actors.metrics.metric_router import MetricRouter
from sluice_actors.metrics.subscription import MetricSubscription
from sluice_actors.metrics.windows import ClosedWindow
from sluice_core.connections.exchanges import values_routing_key

log = logging.getLogger(__name__)

#: Seconds between two messages to an owner that say that we still live.
RENEW: Final = 1.0
#: How many seconds late an owner's window may be before we close it ourselves.
PATIENCE: Final = 0.75
#: An owner that did not answer, or was late, is asked again after so many seconds.
AGAIN: Final = 3.0
#: Actors begin and end in crowds; one message then says it all.
_GATHER: Final = 0.02

Send = Callable[[str, bytes], None]
Paths = dict[str, set[str]]


@dataclass(slots=True)
class RemoteSubscription:
    """What was asked of an owner, and what is known from it."""

    owner: str
    begun: float
    session: str = field(default_factory=lambda: uuid.uuid4().hex)
    number: int = 0
    expected: int = 0
    renewed: float = 0.0
    paths: Paths = field(default_factory=dict)
    touched: dict[tuple[str, str], None] = field(default_factory=dict)
    columns: dict[str, dict[str, float]] = field(default_factory=dict)


@dataclass(slots=True)
class MetricClient:
    """The subscriptions of one host.

    :param owner_of: the host that owns a metric; empty when that cannot be known now
    """

    host: str
    router: MetricRouter
    send: Send
    owner_of: Callable[[str], str]
    clock: Callable[[], float]
    _remotes: dict[str, RemoteSubscription] = field(default_factory=dict)
    _not_before: dict[str, float] = field(default_factory=dict)
    _flushing: asyncio.TimerHandle | None = None

    def __post_init__(self) -> None:
        self.router.on_interest = self._interest

    def review(self, now: float) -> None:
        """Follow who owns each metric in use, and is not late."""
        for metric in self.router.metrics:
            self._look_after(metric, now)
        for metric in self._remotes.keys() - set(self.router.metrics):
            del self._remotes[metric]

    def follows(self) -> dict[str, str]:
        """Metric → the host whose windows are followed."""
        return {name: one.owner for name, one in self._remotes.items() if self.router.follows(name)}

    def close(self) -> None:
        """Set no timer any more."""
        if self._flushing is not None:
            self._flushing.cancel()

    def _look_after(self, metric: str, now: float) -> None:
        owner, remote = self.owner_of(metric), self._remotes.get(metric)
        if not owner:
            owner = remote.owner if remote is not None else self.host
        if owner == self.host:
            self._remotes.pop(metric, None)
            self.router.aggregate_here(metric)
        elif remote is not None and remote.owner != owner:
            self._give_up(metric)
            self._subscribe(metric, owner, now)
        elif remote is None:
            if now >= self._not_before.get(metric, 0.0):
                self._subscribe(metric, owner, now)
        elif self._silent(metric, remote, now):
            self._give_up(metric)
            self._not_before[metric] = now + AGAIN
        elif now - remote.renewed >= RENEW:
            self._update(metric, remote, {}, {})

    def _silent(self, metric: str, remote: RemoteSubscription, now: float) -> bool:
        if not self.router.follows(metric):
            return now - remote.begun > AGAIN
        windows = self.router.history(metric)
        return windows.through is not None and windows.overdue(now) > PATIENCE

    def _give_up(self, metric: str) -> None:
        if self.router.follows(metric):
            owner = self._remotes[metric].owner
            log.info("closing the windows of `%s` here, `%s` is late or not its owner", metric, owner)
        del self._remotes[metric]
        self.router.aggregate_here(metric)

    def _subscribe(self, metric: str, owner: str, now: float) -> None:
        """Begin a session."""
        remote = self._remotes[metric] = RemoteSubscription(owner, now)
        for subscription in self.router.subscriptions(metric):
            for granularity, paths in subscription.paths(metric):
                remote.paths.setdefault(granularity, set()).update(paths)
        self._update(metric, remote, remote.paths, {})

    def _interest(self, subscription: MetricSubscription, path: str | None) -> None:
        for metric in subscription.metrics:
            remote = self._remotes.get(metric)
            if remote is not None:
                remote.touched[subscription.granularity, "" if path is None else path] = None
                remote.touched |= {(one.level, one.path): None for one in subscription.readings if one.level}
                if self._flushing is None:
                    self._flushing = asyncio.get_running_loop().call_later(_GATHER, self._flush)

    def _flush(self) -> None:
        self._flushing = None
        for metric, remote in self._remotes.items():
            touched, remote.touched = remote.touched, {}
            if not touched:
                continue
            more: Paths = {}
            less: Paths = {}
            waiting = self.router.subscriptions(metric)
            for granularity, path in touched:
                known = remote.paths.setdefault(granularity, set())
                wanted = any(
                    level == granularity and path in paths for one in waiting for level, paths in one.paths(metric)
                )
                if wanted and path not in known:
                    known.add(path)
                    more.setdefault(granularity, set()).add(path)
                elif not wanted and path in known:
                    known.discard(path)
                    less.setdefault(granularity, set()).add(path)
            self._update(metric, remote, more, less)

    def _update(self, metric: str, remote: RemoteSubscription, more: Paths, less: Paths) -> None:
        waiting = self.router.subscriptions(metric)
        all_of = dict.fromkeys(one.granularity for one in waiting if one.wants_all(metric))
        wants = InterestUpdate(
            self.host, metric, remote.session, remote.number, _listed(more), _listed(less), tuple(all_of)
        )  # fmt: skip
        remote.number += 1
        remote.renewed = self.clock()
        self.send(values_routing_key(remote.owner), pack(wants))

    def receive(self, values: WindowUpdate) -> None:
        """Handle what an owner pushed."""
        remote = self._remotes.get(values.metric)
        if remote is None or remote.session != values.session or values.number < remote.expected:
            return
        if values.number > remote.expected:
            log.info("values of `%s` were lost on the way, asking for all of them", values.metric)
            self._give_up(values.metric)
            return
        remote.expected += 1
        self._window_closed(values.metric, _merged(remote, values))

    def _window_closed(self, metric: str, closed: ClosedWindow) -> None:
        """The owner closed a window: deliver it if it joins what was delivered before."""
        if metric not in self.router.metrics:
            return
        through = self.router.history(metric).through
        if not self.router.follows(metric):
            if through is not None and closed.window - through > 1.5 * closed.period:
                return
            self.router.follow(metric)
        if through is None or closed.window > through:
            self.router.relay(closed)


def _listed(paths: Paths) -> dict[str, tuple[str, ...]]:
    return {granularity: tuple(found) for granularity, found in paths.items() if found}


def _merged(remote: RemoteSubscription, values: WindowUpdate) -> ClosedWindow:
    """The window that ``values`` stands for; columns are never changed, others may hold them still."""
    touched: Iterable[str] = {*values.changed, *values.gone}
    for granularity in touched:
        column = dict(remote.columns.get(granularity, ()))
        column.update(values.changed.get(granularity, {}))
        for path in values.gone.get(granularity, ()):
            column.pop(path, None)
        remote.columns[granularity] = column
    return ClosedWindow(values.metric, values.window, values.period, dict(remote.columns))
