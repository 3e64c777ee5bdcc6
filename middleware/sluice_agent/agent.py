"""One agent, assembled.  Many can live on one loop: it has no globals and handles no signals."""

from __future__ import annotations

import asyncio
import logging
from importlib import metadata

from sluice_agent import invalidations
from sluice_agent.bandwidth import service
from sluice_agent.code.fetcher import CodeFetcher
from sluice_agent.code.sandboxes import Sandboxes, checks
from sluice_agent.code.validation import interpreter
from sluice_agent.metrics.collectd import Collectd
from sluice_agent.metrics.publisher import MetricPublisher
from sluice_agent.metrics.workers import Workers
from sluice_agent.settings import Settings
from sluice_agent.snapshot.follower import Follower, Surroundings
from sluice_agent.snapshot.refusals import Capabilities
from sluice_agent.snapshot.storage_daemons import StorageDaemons
from sluice_core.code.code_store import CodeStore
from sluice_core.code.swift_code_store import SwiftCodeStore
from sluice_core.connections.publisher import Publisher
from sluice_core.errors import PeerError
from sluice_core.messages.policies import Hello, Upload
from sluice_core.metrics.totals import Totals
from sluice_core.snapshot.reader import SnapshotWriter
from sluice_core.store.store import AsyncStore

log = logging.getLogger(__name__)


def software() -> str:
    """Name and version of what is installed here."""
    try:
        return f"sluice {metadata.version('sluice')}"
    except metadata.PackageNotFoundError:
        return "sluice, not installed"


class Agent:
    """Everything between one node's Swift workers, Redis and RabbitMQ.

    Without ``settings.socket`` it serves no workers, without ``settings.amqp_url`` it publishes nothing.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._storage = StorageDaemons(settings.storage_daemons, settings.snapshot_dir, settings.socket)
        self._capabilities = Capabilities(self._storage)
        self._totals = Totals()
        self.store = AsyncStore(settings.redis_url, settings.redis_prefix)
        self.writer = SnapshotWriter(settings.snapshot_dir, group=settings.worker_group)
        self.bus = Publisher(settings.amqp_url) if settings.amqp_url else None
        self.workers = Workers(settings.socket, self._totals, self._arrived, self._left) if settings.socket else None
        shelf = None if settings.shelf is None else SwiftCodeStore(settings.shelf)
        swift = interpreter(settings.swift_python, settings.swift_user, settings.swift_group)
        store = CodeStore(settings.code_dir)
        self._code = CodeFetcher(shelf, store, self._uploads, self._say_soon, swift)
        self._known_uploads: list[Upload] = []
        asked = checks(settings.sandbox_dir, settings.storlets_engine, settings.wasm, swift)
        self._sandboxes = Sandboxes(asked, self._say_soon)
        self.follower = Follower(
            settings,
            self.store,
            self.writer,
            self._capabilities,
            self.workers,
            Surroundings(
                lambda: 0 if self.workers is None else self.workers.count,
                lambda: 0 if self.bus is None else self.bus.dropped,
                software(),
                self._storage.report,
                lambda: self._code.problems,
                lambda: self._code.code,
                lambda: self._sandboxes.states,
            ),
        )

    async def run(self) -> None:
        """Work until cancelled; then leave nothing open but the snapshot on disk.

        :raises PeerError: when the socket or the snapshot's folder cannot be had
        """
        try:
            if self.bus is not None:
                self.bus.start()
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self.follower.run())
                if self._settings.code_dir:
                    tasks.create_task(self._code.run())
                tasks.create_task(self._sandboxes.run())
                if self.workers is not None:
                    self.workers.open(self._settings.worker_mode, self._settings.worker_group)
                    tasks.create_task(service.serve(self._settings))
                self._storage.open()
                if self.bus is not None:
                    publisher = MetricPublisher(
                        self._settings.node,
                        self._totals,
                        self.bus,
                        self._settings.publish_delay,
                        objects=self._settings.busiest_objects,
                    )
                    tasks.create_task(publisher.run())
                    if self._settings.collectd:
                        tasks.create_task(self._collectd(publisher).run())
                if self._settings.cache_dir and self._settings.amqp_url:
                    tasks.create_task(invalidations.of(self._settings).run())
        finally:
            if self.workers is not None:
                self.workers.close()
            if self.bus is not None:
                await self.bus.close()
            await self.store.close()
            self.writer.close()

    def _collectd(self, publisher: MetricPublisher) -> Collectd:
        given = self._settings
        return Collectd(given.node, given.amqp_url, publisher.publish, given.publish_delay)

    def _arrived(self, hello: Hello) -> None:
        try:
            if self._capabilities.add(hello):
                self.follower.judge_again()
        except PeerError as error:
            log.error("a storage daemon goes on being waited for: %s", error)

    def _uploads(self) -> list[Upload]:
        """Those of the snapshot; while a thread replaces that, those of before."""
        if not self.follower.loading:
            self._known_uploads = self.writer.uploads()
        return self._known_uploads

    def _say_soon(self) -> None:
        self.follower.say_soon()

    def _left(self, worker: str) -> None:
        if self._capabilities.remove(worker):
            self.follower.judge_again()
