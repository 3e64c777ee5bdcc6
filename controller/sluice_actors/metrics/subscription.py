"""The subscribers of some metrics at one granularity, and how they get a closed window.

A feed over several metrics delivers a window once, when each of its metrics has closed it.  A metric
that no node reports any more counts as silent; one whose batches merely did not come makes the window
a missing one, which is delivered to nobody.  When periods differ, the shortest sets the pace, and of
the slower metrics the last value holds.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from sluice_actors.metrics.aggregator import ClosedWindow, WindowHistory
from sluice_actors.policies.actor import PolicyActor, SingleActor
from sluice_actors.policies.conditions import Observed
from sluice_actors.policies.state_machine import NO_WINDOW
from sluice_actors.runtime.system import Delivery

if TYPE_CHECKING:
    from sluice_actors.metrics.metric_router import MetricRouter

Column = Mapping[str, float]
Columns = Sequence[Column]

#: Members of a family whose values are shown to whoever looks.
_SHOWN: Final = 100


class MetricSubscription:
    """The subscribers of some metrics at one granularity."""

    def __init__(self, hub: MetricRouter, metrics: tuple[str, ...], granularity: str) -> None:
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
            if not known:
                self._hub.touched(self, actor.path)
        elif actor in self._families:
            return
        else:
            self._families[actor] = None
            self._hub.touched(self, None)
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
                self._hub.touched(self, actor.path)
            self._engaged.pop(actor, None)
        elif actor in self._families:
            del self._families[actor]
            self._hub.touched(self, None)
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

    # -- what others ask

    @property
    def through_all(self) -> int:
        """The window up to which there is nothing to wait for; others come, or came, by themselves."""
        if self._last is not None:
            return self._last[0]
        found = [self._hub.windows(name).through for name in self.metrics]
        return min(NO_WINDOW if one is None else one for one in found)

    @property
    def paths(self) -> Collection[str]:
        """The paths that somebody waits for by name."""
        return self._singles.keys()

    @property
    def everything(self) -> bool:
        """True when somebody waits for whatever path there is."""
        return bool(self._families)

    def message(self, actor: PolicyActor, window: int, period: float, columns: Columns) -> tuple[int, float, Any]:
        """A window as ``actor`` is told of it."""
        path = actor.path if isinstance(actor, SingleActor) else None
        return window, period, _rows(columns) if path is None else _row(columns, path)

    # -- what the hub calls

    def closed(self, closed: ClosedWindow) -> None:
        """One of the metrics closed a window: deliver what is complete now."""
        if len(self.metrics) == 1:
            self._deliver(closed.window, closed.period, (closed.at(self.granularity),))
            return
        aggregators = [self._hub.windows(name) for name in self.metrics]
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

    def _columns(self, aggregators: Sequence[WindowHistory], window: int, period: float) -> Columns | None:
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
