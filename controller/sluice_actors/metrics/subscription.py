"""The subscribers of some metrics at one granularity, and the delivery of closed windows to them.

A subscription to several metrics delivers a window once, when each of its metrics has closed it.  A metric
that no node reports any more counts as silent.  A metric whose batches merely did not arrive makes the window
a missing one, which is not delivered.  When periods differ, the shortest sets the pace, and the last value of
the slower metrics is used.

A reading with a place of its own (a node, the cluster) has the same value for every path.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol

from sluice_actors.metrics.windows import NO_WINDOW, ClosedWindow, WindowHistory
from sluice_actors.runtime.actor import Actor, Delivery
from sluice_core.messages.policies import CLUSTER
from sluice_dsl.plan import Reading

Column = Mapping[str, float]
Columns = Sequence[Column]
#: The values of one path in a window: of one metric its value, of several a tuple of values, None for silence.
Observed = float | Sequence[float | None] | None

#: The number of paths that are published with their values, for a subscriber of all paths.
_SHOWN: Final = 100


class Rows(NamedTuple):
    """The observation of a subscriber of all paths: the values of each path, and those of all other paths."""

    observed: Iterator[tuple[str, Observed]]
    rest: Observed


class _Everywhere(Mapping[str, float]):
    """A column with one value for every path, and no path of its own."""

    def __init__(self, value: float) -> None:
        self._value = value

    def __getitem__(self, path: str) -> float:
        return self._value

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


class Subscriber(Actor):
    """An actor that receives closed windows, as messages ``(window, period, observed)``.

    A subscriber of one path gets ``Observed``; one of all paths (``path`` is None) :class:`Rows`.
    """

    __slots__ = ()

    @property
    def subscribed_path(self) -> str | None:
        """The path whose values it receives; None for all paths."""
        raise NotImplementedError

    def active_paths(self) -> Iterable[str]:
        """The paths whose values are published first, for a subscriber of all paths."""
        raise NotImplementedError


class WindowSource(Protocol):
    """The source of a subscription's windows (``sluice_actors.metrics.metric_router``)."""

    def activate(self, subscription: MetricSubscription) -> None:
        """Handle the first subscriber of ``subscription``."""

    def deactivate(self, subscription: MetricSubscription) -> None:
        """Handle the end of the last subscriber of ``subscription``."""

    def history(self, metric: str) -> WindowHistory:
        """The closed windows of ``metric``."""

    def deliver(self, deliveries: Iterator[Delivery]) -> None:
        """Deliver a window to the actors."""


class MetricSubscription:
    """The subscribers of some metrics at one granularity."""

    def __init__(self, source: WindowSource, readings: tuple[Reading, ...], granularity: str) -> None:
        self.readings = readings
        self.metrics = tuple(dict.fromkeys(one.metric for one in readings))
        self.granularity = granularity
        self._source = source
        self._by_path: dict[str, tuple[Subscriber, ...]] = {}
        self._of_all: dict[Subscriber, None] = {}
        # Subscribers that also receive silent windows, and their paths.
        self._engaged: dict[Subscriber, str] = {}
        self._pending: dict[int, float] = {}
        self._last: tuple[int, Columns] | None = None
        self._size = 0

    # -- called by policy actors

    def subscribe(self, actor: Subscriber) -> None:
        """Deliver windows to ``actor``; a second call changes nothing."""
        path = actor.subscribed_path
        if path is None:
            if actor in self._of_all:
                return
            self._of_all[actor] = None
        else:
            known = self._by_path.get(path, ())
            if actor in known:
                return
            self._by_path[path] = (*known, actor)
        self._size += 1
        if self._size == 1:
            self._source.activate(self)

    def unsubscribe(self, actor: Subscriber) -> None:
        """Deliver no more windows; unknown actors are ignored."""
        path = actor.subscribed_path
        if path is None:
            if actor not in self._of_all:
                return
            del self._of_all[actor]
        else:
            known = self._by_path.get(path, ())
            if actor not in known:
                return
            rest = tuple(one for one in known if one is not actor)
            if rest:
                self._by_path[path] = rest
            else:
                del self._by_path[path]
            self._engaged.pop(actor, None)
        self._size -= 1
        if not self._size:
            self._source.deactivate(self)

    def engage(self, actor: Subscriber, path: str) -> None:
        """Subscribe ``actor`` to windows without a value for ``path``, too."""
        self._engaged[actor] = path

    def disengage(self, actor: Subscriber) -> None:
        """Subscribe ``actor`` to windows with a value only."""
        self._engaged.pop(actor, None)

    # -- called by a replay

    @property
    def delivered_through(self) -> int:
        """The last window that was delivered; later ones are delivered as they close."""
        if self._last is not None:
            return self._last[0]
        found = [self._source.history(name).through for name in self.metrics]
        return min(NO_WINDOW if one is None else one for one in found)

    def columns_of(self, closed: Sequence[ClosedWindow | None]) -> Columns:
        """The values of each reading, from one window of each of the metrics; None is a silent one."""
        windows = dict(zip(self.metrics, closed, strict=True))
        return [self._column(one, windows[one.metric]) for one in self.readings]

    def _column(self, reading: Reading, closed: ClosedWindow | None) -> Column:
        if closed is None:
            return {}
        if not reading.level:
            return closed.at(self.granularity)
        value = closed.at(reading.level).get(reading.path)
        if value is None:
            return {}
        return {"": value} if self.granularity == CLUSTER else _Everywhere(value)

    def message_for(self, actor: Subscriber, window: int, period: float, columns: Columns) -> tuple[int, float, Any]:
        """A window in the form of the message for ``actor``."""
        path = actor.subscribed_path
        return window, period, _rows(columns) if path is None else _row(columns, path)

    # -- called by the router

    def window_closed(self, closed: ClosedWindow) -> None:
        """Handle a window that one of the metrics closed: deliver the windows that are complete now."""
        if len(self.metrics) == 1:
            self._deliver(closed.window, closed.period, self.columns_of((closed,)))
            return
        aggregators = [self._source.history(name) for name in self.metrics]
        if any(one.period < closed.period and not one.unreported(closed.window) for one in aggregators):
            return
        self._pending[closed.window] = closed.period
        for window in sorted(self._pending):
            columns = self._columns(aggregators, window, self._pending[window])
            if columns is not None:
                self._deliver(window, self._pending[window], columns)
                self._pending = {one: period for one, period in self._pending.items() if one > window}
        oldest = closed.window - 4 * closed.period
        self._pending = {one: period for one, period in self._pending.items() if one >= oldest}

    def observed(self, actor: Subscriber) -> dict[str, Any] | None:
        """The values of the last window that was delivered to ``actor``, by metric; None before the first."""
        if self._last is None:
            return None
        window, columns = self._last
        if actor.subscribed_path is not None:
            return {"window": window, "values": self._named(columns, actor.subscribed_path), "members": {}}
        paths = dict.fromkeys(actor.active_paths())
        for column in columns:
            paths.update(dict.fromkeys(heapq.nlargest(_SHOWN, column, key=column.__getitem__)))
        members = {path: self._named(columns, path) for path in list(paths)[:_SHOWN]}
        return {"window": window, "values": {}, "members": members}

    def _named(self, columns: Columns, path: str) -> dict[str, float | None]:
        return {one.label: column.get(path) for one, column in zip(self.readings, columns, strict=True)}

    def _columns(self, aggregators: Sequence[WindowHistory], window: int, period: float) -> Columns | None:
        closed = [aggregator.closed(window, period) for aggregator in aggregators]
        for one, aggregator in zip(closed, aggregators, strict=True):
            if one is None and not aggregator.unreported(window):
                return None
        return self.columns_of(closed)

    def _deliver(self, window: int, period: float, columns: Columns) -> None:
        self._last = (window, columns)
        self._source.deliver(self._deliveries(window, period, columns))

    def _deliveries(self, window: int, period: float, columns: Columns) -> Iterator[Delivery]:
        by_path = self._by_path
        if len(columns) == 1 and len(columns[0]) <= len(by_path):
            for path, value in columns[0].items():
                for actor in by_path.get(path, ()):
                    yield actor, (window, period, value)
        else:
            for path, actors in list(by_path.items()):
                observed = _row(columns, path)
                if observed is not None:
                    for actor in actors:
                        yield actor, (window, period, observed)
        for actor, path in list(self._engaged.items()):
            if _row(columns, path) is None:
                yield actor, (window, period, None)
        for actor in list(self._of_all):
            yield actor, (window, period, _rows(columns))


def _row(columns: Columns, path: str) -> Observed:
    if len(columns) == 1:
        return columns[0].get(path)
    row = tuple([column.get(path) for column in columns])
    return None if all(value is None for value in row) else row


def _rows(columns: Columns) -> Rows:
    if len(columns) == 1:
        return Rows(iter(columns[0].items()), None)
    paths = dict.fromkeys(path for column in columns for path in column)
    everywhere = [column if isinstance(column, _Everywhere) else {} for column in columns]
    return Rows(((path, _row(columns, path)) for path in paths), _row(everywhere, ""))
