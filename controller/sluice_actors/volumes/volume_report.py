"""Writes the last metrics of volumes to Redis, from where the API exports them to Prometheus.

One host of the cluster does this, the one that owns :data:`NAME`: it closes the windows of the metrics of volumes,
and writes the newest of each every five seconds.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from sluice_actors.metrics.metric_router import MetricRouter
from sluice_actors.metrics.windows import ClosedWindow
from sluice_actors.runtime.services import Ownership, Service, Spawn, repeat_forever
from sluice_core.store.store import AsyncStore
from sluice_volumes import operations
from sluice_volumes.messages import VolumeReport
from sluice_volumes.metrics import VOLUME_METRICS

#: The name under which the reporting host owns its work.
NAME: Final = "volumes/report"
#: Seconds between two reports.
_INTERVAL: Final = 5.0
#: Seconds after its end until which a window counts as current; konnectors send each second.
_FRESH: Final = 5.0
#: The maximum number of volumes, and of tenants, in a report: those whose paths come first.
MOST: Final = 5000


@dataclass(eq=False)
class VolumeReporter(Service):
    """Writes reports while this host owns :data:`NAME`."""

    windows: MetricRouter
    store: AsyncStore
    ownership: Ownership
    clock: Callable[[], float]
    _tapped: bool = field(init=False, default=False)
    _newest: dict[str, ClosedWindow] = field(init=False, default_factory=dict)

    def start(self, spawn: Spawn) -> None:
        spawn(repeat_forever("volume report", self._step))

    async def _step(self) -> None:
        await self.write()
        await asyncio.sleep(_INTERVAL)

    async def write(self) -> None:
        """Write a report if this host owns the work and there are any values.

        :raises PeerError: when Redis is unreachable
        """
        self._set_tapped(self.ownership.owns(NAME))
        report = self._report(self.clock())
        if report.values:
            await self.store.run(operations.write_volume_report(self.store.keys, report))

    def _set_tapped(self, wanted: bool) -> None:
        if wanted == self._tapped:
            return
        self._tapped = wanted
        self._newest.clear()
        for metric in VOLUME_METRICS:
            if wanted:
                self.windows.tap(metric.name, self._take, NAME)
            else:
                self.windows.untap(metric.name, NAME)

    def _take(self, closed: ClosedWindow) -> None:
        self._newest[closed.metric] = closed

    def _report(self, now: float) -> VolumeReport:
        values: dict[str, dict[str, dict[str, float]]] = {}
        left_out: Counter[str] = Counter()
        for metric, closed in self._newest.items():
            if now - closed.window - closed.period <= _FRESH:
                values[metric] = {}
                for level, rows in closed.values.items():
                    values[metric][level] = dict(islice(sorted(rows.items()), MOST))
                    left_out[level] = max(left_out[level], len(rows) - MOST)
        return VolumeReport(now, values, {level: count for level, count in left_out.items() if count > 0})
