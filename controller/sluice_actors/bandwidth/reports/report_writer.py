"""Writes the newest reports into Redis, where the API reads them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from sluice_core.messages.bandwidth_report import BandwidthReport, IdleFlowReport
from sluice_core.store.operation import Operation, nothing
from sluice_core.store.operations import REPORT_RETENTION
from sluice_core.store.store import AsyncStore

_TTL = int(REPORT_RETENTION)


class ReportWriter:
    """:param allowed: whether we are to write any more"""

    def __init__(self, store: AsyncStore, allowed: Callable[[], bool]) -> None:
        self._store = store
        self._allowed = allowed
        self._new = asyncio.Event()
        #: Of the last round, if any.
        self.reports: tuple[BandwidthReport, IdleFlowReport] | None = None

    def put(self, reports: tuple[BandwidthReport, IdleFlowReport]) -> None:
        """Have ``reports`` written next."""
        self.reports = reports
        self._new.set()

    async def write(self) -> None:
        """Wait for reports and write them; the rows of idle floors only where Redis does not have them yet.

        :raises PeerError: when Redis is away
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
