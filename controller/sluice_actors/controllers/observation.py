"""The observations of a controller: the last complete window of each metric that it names, the nodes, and bandwidth.

A controller needs the whole window, of all targets at all granularities.  So the metric's batches are merged on the
controller's own host (``MetricRouter.tap``), whichever host evaluates the metric for policies; no window crosses hosts.

Of bandwidth it sees the rows of the report that the allocating host writes to Redis each second.  The report is up to a
second old; a report older than five seconds is not shown.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple, TypeVar

from sluice_actors.metrics.metric_router import MetricRouter
from sluice_actors.metrics.windows import ClosedWindow
from sluice_core.control import FlowPart, FlowState, NodeCapacity, Observation
from sluice_core.describe import Scalar
from sluice_core.messages.bandwidth_report import BandwidthReport
from sluice_core.store.operations import REPORT_FRESH, REPORT_RETENTION, read_bandwidth_report, read_idle_flows
from sluice_core.store.store import AsyncStore

#: A window older than this many of its periods is out of date.
_FRESH: Final = 3
#: The controller does not wait longer for a metric than this many of its periods, and seconds for a window to close.
_PATIENCE: Final = 3
_MARGIN: Final = 2.0

NodeStatus = Mapping[str, Mapping[str, Scalar]]


class MetricObserver:
    """Watches metrics for one controller, ``name``.

    :param period: returns the period of a metric that has not arrived yet
    """

    def __init__(
        self, name: str, router: MetricRouter, period: Callable[[str], float], clock: Callable[[], float]
    ) -> None:
        #: Set when a window was closed; the task that waits clears it.
        self.new_window = asyncio.Event()
        self._who = f"controller/{name}"
        self._router = router
        self._period = period
        self._clock = clock
        self._last: dict[str, ClosedWindow] = {}
        self._since: dict[str, float] = {}

    def watch(self, metrics: Iterable[str]) -> None:
        """Subscribe to the windows of exactly these metrics."""
        wanted = set(metrics)
        for metric in self._since.keys() - wanted:
            self._router.untap(metric, self._who)
            del self._since[metric]
            self._last.pop(metric, None)
        for metric in sorted(wanted - self._since.keys()):
            self._since[metric] = asyncio.get_running_loop().time()
            self._router.tap(metric, self._closed, self._who)
            last = self._router.last_window(metric)
            if last is not None:
                self._closed(last)

    def close(self) -> None:
        """End all subscriptions."""
        self.watch(())

    @property
    def awaited_metrics(self) -> list[str]:
        """The metrics whose first window the controller still waits for."""
        now = asyncio.get_running_loop().time()
        return [
            metric
            for metric, since in sorted(self._since.items())
            if metric not in self._last and now - since < _PATIENCE * self._period(metric) + _MARGIN
        ]

    def observation(self, metrics: Iterable[str], nodes: NodeStatus) -> Observation | None:
        """The observation of ``metrics`` now; None if none of their windows is known, unless none is requested."""
        now = self._clock()
        wanted = tuple(metrics)
        fresh = {
            metric: self._last[metric]
            for metric in wanted
            if metric in self._last and now - self._last[metric].window <= (_FRESH + 1) * self._last[metric].period
        }
        if wanted and not fresh:
            return None
        at = max((closed.window for closed in fresh.values()), default=int(now))
        return Observation(float(at), {metric: closed.values for metric, closed in fresh.items()}, nodes)

    def _closed(self, closed: ClosedWindow) -> None:
        self._last[closed.metric] = closed
        self.new_window.set()


#: Fields of a report → their names in the objects that a controller gets.
_RENAMED: Final = {"storage_policy": "policy"}
Row = TypeVar("Row", bound=NamedTuple)


@dataclass(frozen=True, slots=True)
class BandwidthView:
    """The rows of one report."""

    flows: tuple[FlowState, ...] = ()
    parts: tuple[FlowPart, ...] = ()
    capacities: tuple[NodeCapacity, ...] = ()
    sides: Mapping[str, str] | None = None

    @classmethod
    def from_report(cls, report: BandwidthReport) -> BandwidthView:
        """The rows of ``report``."""
        return cls(
            _rows(FlowState, report.flows),
            _rows(FlowPart, report.parts),
            _rows(NodeCapacity, report.nodes),
            dict(report.sides),
        )

    def add_to(self, observation: Observation) -> Observation:
        """Return ``observation`` with these rows."""
        sides = self.sides or {}
        return replace(observation, flows=self.flows, parts=self.parts, capacities=self.capacities, sides=sides)


async def read_bandwidth(store: AsyncStore) -> BandwidthView | None:
    """The measurements and shares of the last second; None if no host allocates.

    :raises PeerError: when Redis is unreachable
    """
    report, left = await store.run(read_bandwidth_report(store.keys))
    if report is None or REPORT_RETENTION - left > REPORT_FRESH:
        return None
    if report.promises:
        report = report.with_idle(await store.run(read_idle_flows(store.keys, report.promises)))
    return BandwidthView.from_report(report)


def _rows(row: type[Row], rows: Iterable[Mapping[str, Any]]) -> tuple[Row, ...]:
    names = [_RENAMED.get(name, name) for name in row._fields]
    return tuple(row(*(one.get(name, 0.0) for name in names)) for one in rows)
