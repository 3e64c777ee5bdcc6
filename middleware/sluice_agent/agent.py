"""One agent, assembled.  Many can live on one loop: it has no globals and handles no signals."""

from __future__ import annotations

import asyncio
from importlib import metadata

from sluice_agent.follower import Follower, Surroundings
from sluice_agent.publisher import MetricPublisher
from sluice_agent.refusals import Capabilities
from sluice_agent.settings import Settings
from sluice_agent.workers import Workers
from sluice_core.bus import Publisher
from sluice_core.messages import Hello
from sluice_core.snapshot import SnapshotWriter
from sluice_core.store import AsyncStore
from sluice_core.windows import Totals


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
        self._capabilities = Capabilities()
        self._totals = Totals()
        self.store = AsyncStore(settings.redis_url, settings.redis_prefix)
        self.writer = SnapshotWriter(settings.snapshot_dir, group=settings.worker_group)
        self.bus = Publisher(settings.amqp_url) if settings.amqp_url else None
        self.workers = Workers(settings.socket, self._totals, self._arrived, self._left) if settings.socket else None
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
                if self.workers is not None:
                    self.workers.open(self._settings.worker_mode, self._settings.worker_group)
                if self.bus is not None:
                    publisher = MetricPublisher(
                        self._settings.node, self._totals, self.bus, self._settings.publish_delay
                    )
                    tasks.create_task(publisher.run())
        finally:
            if self.workers is not None:
                self.workers.close()
            if self.bus is not None:
                await self.bus.close()
            await self.store.close()
            self.writer.close()

    def _arrived(self, hello: Hello) -> None:
        if self._capabilities.add(hello):
            self.follower.judge_again()

    def _left(self, worker: str) -> None:
        if self._capabilities.remove(worker):
            self.follower.judge_again()
