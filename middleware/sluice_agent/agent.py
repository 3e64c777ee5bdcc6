"""One agent, assembled.  Several agents can run on one loop: an agent has no globals and handles no signals."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AsyncExitStack
from functools import partial
from typing import Any, Final

from sluice_agent import invalidation_service
from sluice_agent.bandwidth import service
from sluice_agent.code.fetcher import CodeFetcher
from sluice_agent.code.sandboxes import Sandboxes, sandbox_checks
from sluice_agent.code.validation import swift_interpreter
from sluice_agent.metrics import collectd, usage
from sluice_agent.metrics.publisher import MetricPublisher
from sluice_agent.metrics.usage import NodeAccounts
from sluice_agent.metrics.worker_server import WorkerServer
from sluice_agent.settings import PUBLISH_DELAY, Settings
from sluice_agent.snapshot.capabilities import Capabilities
from sluice_agent.snapshot.follower import SnapshotFollower
from sluice_agent.snapshot.reporter import NodeReporter
from sluice_agent.snapshot.storage_daemons import StorageDaemons
from sluice_code.code_store import CodeStore
from sluice_code.software import software
from sluice_code.swift_code_store import SwiftCodeStore
from sluice_core.connections.publisher import Publisher
from sluice_core.errors import PeerError
from sluice_core.messages.nodes import Hello, NodeReport
from sluice_core.messages.uploads import Upload
from sluice_core.metrics.totals import Totals
from sluice_core.snapshot.reader import SnapshotWriter
from sluice_core.store.store import AsyncStore, cancel_tasks

log = logging.getLogger(__name__)

#: Seconds that a service has to end before it is cancelled again; closing connections may take a few.
_CANCEL_AGAIN: Final = 10.0


class Agent:
    """Connects one node's Swift workers with Redis and RabbitMQ.

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
        self.workers = (
            WorkerServer(settings.socket, self._totals, self._add_worker, self._remove_worker)
            if settings.socket
            else None
        )
        remote_store = None if settings.code_store is None else SwiftCodeStore(settings.code_store)
        swift = self._swift = swift_interpreter(settings.swift_python, settings.swift_user, settings.swift_group)
        self._code = CodeFetcher(
            remote_store,
            CodeStore(settings.code_dir),
            self._uploads,
            lambda: self._reporter.report_soon(),
            swift,
            has_konnector=self._capabilities.has_konnector,
        )
        self._known_uploads: list[Upload] = []
        checks = sandbox_checks(settings.sandbox_dir, settings.storlets_engine, settings.wasm, swift)
        self._sandboxes = Sandboxes(checks, lambda: self._reporter.report_soon())
        self._software = software()
        self._reporter = NodeReporter(settings, self.store, self.writer, self.workers, self._describe_node)
        self.follower = SnapshotFollower(
            settings, self.store, self.writer, self._capabilities, self.workers, self._reporter
        )
        self._services = [*self._make_services(settings)]

    def _make_services(self, settings: Settings) -> Iterator[Callable[[], Coroutine[Any, Any, None]]]:
        """Yield the services that run until the agent is cancelled, as far as the settings enable them."""
        yield self.follower.run
        yield self._sandboxes.run
        if settings.code_dir:
            yield self._code.run
        if self.workers is not None:
            yield partial(service.serve, settings)
        if self.bus is not None:
            publisher = MetricPublisher(
                settings.node, self._totals, self.bus, PUBLISH_DELAY, objects=settings.busiest_objects
            )
            yield publisher.run
            if settings.collectd:
                yield partial(collectd.serve, settings.node, settings.amqp_url, publisher.publish, PUBLISH_DELAY)
            if settings.storage_confs:
                accounts = NodeAccounts(settings.node, self.store)
                yield partial(usage.serve, settings, self._swift, self.bus, accounts)
                yield accounts.serve_requests
        if settings.cache_dir and settings.amqp_url:
            yield partial(invalidation_service.serve, settings)

    async def run(self, on_open: Callable[[], None] = lambda: None) -> None:
        """Work until cancelled; then close everything but the snapshot on disk.

        :param on_open: called when workers are served
        :raises PeerError: when the socket or the snapshot's folder cannot be used
        """
        async with AsyncExitStack() as resources:
            resources.callback(self.writer.close)
            resources.push_async_callback(self.store.close)
            if self.bus is not None:
                resources.push_async_callback(self.bus.close)
                self.bus.start()
            if self.workers is not None:
                resources.callback(self.workers.close)
                self.workers.open(self._settings.worker_mode, self._settings.worker_group)
            self._storage.open()
            on_open()
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(run()) for run in self._services]
                try:
                    await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
                except asyncio.CancelledError:
                    await cancel_tasks(tasks, _CANCEL_AGAIN)
                    raise

    def _add_worker(self, hello: Hello) -> None:
        told = self._announced()
        try:
            if self._capabilities.add(hello):
                self.follower.recheck_assignments()
        except PeerError as error:
            log.error("the node still waits for a storage daemon: %s", error)
        if self._announced() != told:
            self._reporter.report_soon()

    def _remove_worker(self, worker: str) -> None:
        told = self._announced()
        if self._capabilities.remove(worker):
            self.follower.recheck_assignments()
        if self._announced() != told:
            self._reporter.report_soon()

    def _announced(self) -> tuple[object, ...]:
        """The parts of the report that other nodes wait for; a change of them is reported at once."""
        known = self._capabilities
        return known.konnector_url(), known.motifs(), known.unconfirmed_volumes()

    def _describe_node(self) -> NodeReport:
        given_up = self._capabilities.refused_code(self._uploads())
        return NodeReport(
            self._settings.node,
            history="",
            epoch=0,
            refused={**given_up, **self._code.problems},
            workers=0 if self.workers is None else self.workers.count,
            dropped=0 if self.bus is None else self.bus.dropped,
            software=self._software,
            storage=self._storage.report(),
            code={key: one for key, one in self._code.usable_revisions.items() if f"upload/{key}" not in given_up},
            sandbox=self._sandboxes.states,
            plugins=self._capabilities.missing_plugins(),
            konnector=self._capabilities.konnector_url(),
            volume_faults=self._capabilities.volume_faults(),
            motifs=self._capabilities.motifs(),
            unconfirmed_volumes=self._capabilities.unconfirmed_volumes(),
        )

    def _uploads(self) -> list[Upload]:
        """The uploads of the snapshot; while a thread replaces the snapshot, the uploads of the last call."""
        if not self.follower.is_loading:
            self._known_uploads = self.writer.uploads()
        return self._known_uploads
