"""Keeps the history of metrics, on the host that allocates bandwidth, which has the report of it at hand.

* It receives the batches of all metrics over a queue of its own, and closes their windows with aggregators of its own.
  So it neither delays nor changes the windows of policies.
* It writes to ``history_redis_url`` over connections of its own.  A row that Redis does not accept within
  :data:`_TIMEOUT` is dropped and counted, never written later: the history then has a gap.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Any, Final

from sluice_actors.metric_history.collector import MARGIN, Changes, Collector, HistoryRow
from sluice_actors.metric_history.samples import of_report, of_window
from sluice_actors.metrics.aggregator_pool import AggregatorPool, Backlog
from sluice_actors.metrics.windows import CLOSE_DELAY, ClosedWindow
from sluice_actors.runtime.services import Ownership, Service, Spawn, repeat_forever
from sluice_core.connections.consumer import Consumer
from sluice_core.errors import DecodeError, PeerError
from sluice_core.messages.bandwidth_report import BandwidthReport, IdleFlowReport
from sluice_core.messages.nodes import MetricBatch
from sluice_core.store.store import AsyncStore
from sluice_metric_history.operations import forget_series, read_directory, write_row, write_series
from sluice_metric_history.resolutions import RESOLUTIONS, SERIES_BYTES

log = logging.getLogger(__name__)

_TIMEOUT: Final = 1.0
_OWNERSHIP_CHECK_SECONDS: Final = 1.0
#: Seconds between two reads of the directory, for the changes of other hosts.
_DIRECTORY_SECONDS: Final = 60
_BATCHES: Final = "metric.#"
#: Batches of a thousand nodes for some seconds; older ones are discarded.
_MAX_QUEUED, _TTL = 50_000, 5.0
#: More metrics than this are a mistake of their publisher.
_MOST_METRICS: Final = 500


class MetricHistory(Service):
    """Keeps history while this host owns ``name``; if its room is 0 series it does nothing.

    :param settings: of the host
    :param name: the name under which a host owns the allocation of bandwidth
    """

    def __init__(
        self, settings: Mapping[str, Any], ownership: Ownership, name: str, clock: Callable[[], float]
    ) -> None:
        self._ownership = ownership
        self._name = name
        self._clock = clock
        self._room = int(settings["history_megabytes"] * 1e6 / SERIES_BYTES)
        url = settings["history_redis_url"] or settings["redis_url"]
        self._store = AsyncStore(url, settings["redis_prefix"], _TIMEOUT)
        self._consumer = Consumer(settings["amqp_url"], self.receive, max_length=_MAX_QUEUED, ttl=_TTL)
        self._collector: Collector | None = None
        self._pool = self._new_pool()
        # Metric → whether the values of several nodes add up.
        self._adds: dict[str, bool] = {}
        self._looked = 0.0
        #: Numbers of written and of dropped rows.
        self.written = self.dropped = 0

    # -- for the host

    def start(self, spawn: Spawn) -> None:
        if self._room:
            self._consumer.start()
            spawn(repeat_forever("metric history", self._step))

    async def close(self) -> None:
        self._leave()
        await self._consumer.close()
        await self._store.close()

    def add_report(self, report: BandwidthReport, idle_flows: IdleFlowReport) -> None:
        """Keep a second of bandwidth, if this host keeps history."""
        if self._collector is not None:
            for sample in of_report(report.with_idle(idle_flows)):
                self._collector.add(sample)

    def report(self) -> dict[str, Any]:
        """The service's part of the host's report."""
        collector = self._collector
        found = {"keeping": collector is not None, "written": self.written, "dropped": self.dropped}
        return found if collector is None else {**found, "series": len(collector.records), "room": self._room}

    # -- the task

    async def _step(self) -> None:
        if not self._ownership.owns(self._name):
            self._leave()
            await asyncio.sleep(_OWNERSHIP_CHECK_SECONDS)
            return
        await self.enter()
        await asyncio.sleep(1.0 - (self._clock() - CLOSE_DELAY - MARGIN) % 1.0)
        await self.write_due()

    async def enter(self) -> None:
        """Begin to keep history, with the series in the directory.

        :raises PeerError: when Redis is unreachable
        """
        if self._collector is not None:
            return
        known = await self._store.run(read_directory(self._store.keys))
        now = self._looked = self._clock()
        self._collector = Collector(self._room, now, known.values())
        self._consumer.bind(_BATCHES)
        log.info("keeping the history of metrics from now on, %d series so far", len(known))

    async def write_due(self) -> None:
        """Write the rows that are due, and the changes of the directory.

        :raises PeerError: when the directory cannot be written, which is tried again later
        """
        collector = self._collector
        if collector is not None:
            for row in list(collector.rows(self._clock())):
                if row.points:
                    await self._attempt(row)
            await self._update_directory(collector)

    def _leave(self) -> None:
        if self._collector is not None:
            log.info("keeping the history of metrics no more")
            self._collector = None
            self._consumer.unbind(_BATCHES)
            self._pool.close()
            self._pool = self._new_pool()
            self._adds.clear()

    async def _attempt(self, row: HistoryRow) -> None:
        """Write a row, or drop it if Redis does not accept it in time."""
        renewed: list[str] = []
        if row.resolution is RESOLUTIONS[-1]:
            turn = row.at // row.resolution.step % 60
            renewed = [name for number, name in enumerate(row.points) if number % 60 == turn]
        try:
            await self._store.run(write_row(self._store.keys, row.resolution, row.at, row.points, renewed))
        except PeerError as error:
            self.dropped += 1
            if self.dropped == 1:
                log.warning("the history of metrics has a gap: %s", error)
        else:
            self.written += 1

    async def _update_directory(self, collector: Collector) -> None:
        """Write the changes of the directory, and read the changes of other hosts.

        :raises PeerError: when Redis is unreachable; the changes are written later
        """
        keys = self._store.keys
        changes, collector.changes = collector.changes, Changes()
        try:
            await self._store.run(forget_series(keys, changes.forget))
            changes.forget.clear()
            await self._store.run(write_series(keys, changes.put.values()))
        except BaseException:
            collector.changes.put = {**changes.put, **collector.changes.put}
            collector.changes.forget = changes.forget + collector.changes.forget
            raise
        if self._clock() - self._looked >= _DIRECTORY_SECONDS:
            self._looked = self._clock()
            found = await self._store.run(read_directory(keys))
            collector.reconcile(found, self._clock())

    # -- windows

    def _new_pool(self) -> AggregatorPool:
        return AggregatorPool(self._closed, self._clock, Backlog())

    def receive(self, routing_key: str, body: bytes) -> None:
        """Handle the batch of a node."""
        if self._collector is None:
            return
        try:
            batch = MetricBatch.decode(body)
        except DecodeError:
            self._pool.undecodable += 1
            return
        if batch.merge or batch.weights or batch.quantile:
            self._adds[batch.metric] = False
        elif batch.values:
            self._adds.setdefault(batch.metric, True)
        if self._pool.get(batch.metric) is None:
            if len(self._pool.report()) >= _MOST_METRICS:
                return
            self._pool.start(batch.metric)
        self._pool.add_batch(batch)

    def _closed(self, closed: ClosedWindow) -> None:
        if self._collector is None:
            return
        for sample in of_window(closed, self._adds.get(closed.metric, False)):
            self._collector.add(sample)
        self._collector.add_silence(closed)
