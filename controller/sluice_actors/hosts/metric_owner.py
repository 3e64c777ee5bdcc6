"""A host that owns a metric: it closes the windows and pushes to each subscriber what changed for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from sluice_actors.hosts.messages import InterestUpdate, WindowUpdate
from sluice_actors.metrics.metric_router import MetricRouter
from sluice_actors.metrics.windows import ClosedWindow

#: A subscriber that says nothing for so long is gone.
FORGOTTEN: Final = 4.0

#: Whose taps they are.
_WHO: Final = "owner"

Column = Mapping[str, float]


@dataclass(slots=True)
class _Served:
    """One subscriber of one metric."""

    session: str
    heard: float
    expected: int = 1
    number: int = 0
    paths: dict[str, set[str]] = field(default_factory=dict)
    all_of: tuple[str, ...] = ()
    sent: dict[str, Column] = field(default_factory=dict)

    def apply(self, wants: InterestUpdate) -> None:
        for granularity, paths in wants.more.items():
            self.paths.setdefault(granularity, set()).update(paths)
        for granularity, paths in wants.less.items():
            self.paths.get(granularity, set()).difference_update(paths)
        self.all_of = wants.all

    def column(self, closed: ClosedWindow, granularity: str) -> Column:
        """What this subscriber wants of ``closed``."""
        column = closed.at(granularity)
        if granularity in self.all_of:
            return column
        return {path: column[path] for path in column.keys() & self.paths.get(granularity, set())}

    def update(self, host: str, closed: ClosedWindow) -> WindowUpdate:
        """What to push for ``closed``."""
        changed: dict[str, Column] = {}
        gone: dict[str, tuple[str, ...]] = {}
        for granularity in {*self.paths, *self.all_of, *self.sent}:
            before, now = self.sent.get(granularity, {}), self.column(closed, granularity)
            changes = {path: value for path, value in now.items() if before.get(path) != value}
            if changes:
                changed[granularity] = changes
            if len(before) + len(changes) > len(now):
                lost = tuple(before.keys() - now.keys())
                if lost:
                    gone[granularity] = lost
            self.sent[granularity] = now
        number, self.number = self.number, self.number + 1
        return WindowUpdate(host, closed.metric, self.session, number, closed.window, closed.period, changed, gone)


@dataclass(slots=True)
class MetricOwner:
    """Serves whoever asks.

    :param push: called with a subscriber and what is for it
    """

    host: str
    router: MetricRouter
    push: Callable[[str, WindowUpdate], None]
    clock: Callable[[], float]
    _served: dict[str, dict[str, _Served]] = field(default_factory=dict)

    def subscribed(self, wants: InterestUpdate) -> None:
        """A subscriber says what it wants; one that missed something is forgotten, and will ask anew."""
        hosts = self._served.get(wants.metric, {})
        served = hosts.get(wants.host)
        if wants.number == 0:
            self._begin(wants)
        elif served is not None and served.session == wants.session and wants.number >= served.expected:
            if wants.number > served.expected:
                self._end(wants.metric, wants.host)
                return
            served.expected += 1
            served.heard = self.clock()
            served.apply(wants)

    def expire(self, now: float) -> None:
        """Forget who is gone."""
        for metric, hosts in list(self._served.items()):
            for host, served in list(hosts.items()):
                if now - served.heard > FORGOTTEN:
                    self._end(metric, host)

    def serves(self) -> dict[str, int]:
        """Metric → how many hosts subscribe to it here."""
        return {metric: len(hosts) for metric, hosts in self._served.items()}

    def _begin(self, wants: InterestUpdate) -> None:
        served = _Served(wants.session, self.clock())
        served.apply(wants)
        hosts = self._served.setdefault(wants.metric, {})
        hosts[wants.host] = served
        if len(hosts) == 1:
            self.router.tap(wants.metric, partial(self._closed, wants.metric), _WHO)
        last = self.router.last_window(wants.metric)
        if last is not None:
            self.push(wants.host, served.update(self.host, last))

    def _end(self, metric: str, host: str) -> None:
        hosts = self._served[metric]
        del hosts[host]
        if not hosts:
            del self._served[metric]
            self.router.untap(metric, _WHO)

    def _closed(self, metric: str, closed: ClosedWindow) -> None:
        for host, served in self._served[metric].items():
            self.push(host, served.update(self.host, closed))
