"""Writes the newest reports of a round to Redis for the API, and logs lasting shortfalls."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from sluice_actors.runtime.event_log import LogEvent
from sluice_core.messages.bandwidth_report import BandwidthReport, IdleFlowReport
from sluice_core.messages.events import FLOOR_MET, FLOOR_SHORT
from sluice_core.store.operation import Operation, nothing
from sluice_core.store.operations import REPORT_RETENTION
from sluice_core.store.store import AsyncStore

_TTL = int(REPORT_RETENTION)


class ReportWriter:
    """:param allowed: returns whether this host may still write"""

    def __init__(self, store: AsyncStore, allowed: Callable[[], bool]) -> None:
        self._store = store
        self._allowed = allowed
        self._new = asyncio.Event()
        #: Those of the last round, if any.
        self.reports: tuple[BandwidthReport, IdleFlowReport] | None = None

    def put(self, reports: tuple[BandwidthReport, IdleFlowReport]) -> None:
        """Queue ``reports`` as the next ones to be written."""
        self.reports = reports
        self._new.set()

    async def write(self) -> None:
        """Wait for reports and write them; the rows of idle floors only if Redis does not have them yet.

        :raises PeerError: when Redis is unreachable
        """
        await self._new.wait()
        self._new.clear()
        if self.reports is None or not self._allowed():
            return
        (report, promises), keys = self.reports, self._store.keys
        if report.promises:
            key = keys.promises(report.promises)
            kept = await self._store.run(Operation((("EXPIRE", key, _TTL),), lambda replies: replies[0]))
            if not kept:
                await self._store.run(Operation((("SET", key, promises.raw, "EX", _TTL),), nothing))
        data = await asyncio.to_thread(report.encode)  # some megabytes in a big cluster
        await self._store.run(Operation((("SET", keys.bandwidth, data, "EX", _TTL),), nothing))


#: The source of events about floors, whichever host allocates.
SOURCE: Final = "bandwidth"
_SHORT_SECONDS: Final = 5.0
_MET_SECONDS: Final = 60.0


@dataclass(slots=True)
class _Floor:
    """Seconds at which it was first and last found short; ``logged`` if an event about that has been logged."""

    first: float
    last: float
    logged: bool = False


@dataclass(slots=True)
class FloorWatcher:
    """Logs when floors of a policy cannot be met, and when they are met again.

    Rounds differ: a floor counts as short after :data:`_SHORT_SECONDS` in which it was never met, and as met again
    after :data:`_MET_SECONDS` in which it was never short.
    """

    log_event: LogEvent
    _floors: dict[str, _Floor] = field(default_factory=dict)

    def update(self, missing: Mapping[str, float], now: float) -> None:
        """Apply the outcome of a round.

        :param missing: policy → bytes per second that its floors lack
        :param now: seconds on a monotonic clock
        """
        for policy, rate in missing.items():
            floor = self._floors.setdefault(policy, _Floor(now, now))
            floor.last = now
            if not floor.logged and now - floor.first >= _SHORT_SECONDS:
                floor.logged = True
                self._add(FLOOR_SHORT, policy, f"{rate / 1e6:.3f} MB/s are missing to the floors of", rate)
        for policy in [name for name in self._floors if name not in missing]:
            floor = self._floors[policy]
            if not floor.logged:
                del self._floors[policy]
            elif now - floor.last >= _MET_SECONDS:
                del self._floors[policy]
                self._add(FLOOR_MET, policy, "nothing is missing any more to the floors of", 0.0)

    def _add(self, kind: str, policy: str, text: str, rate: float) -> None:
        self.log_event(kind, f"{text} policy `{policy}`", SOURCE, policy=policy, fields={"missing": rate})
