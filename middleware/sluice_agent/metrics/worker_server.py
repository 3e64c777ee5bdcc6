"""The server for the counters of Swift's workers: a Unix socket that keeps message boundaries (SEQPACKET).

A worker sends its hello, then its running totals each second; a worker ends with its connection.  The server
sends nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Callable
from dataclasses import dataclass

from sluice_agent.message_server import MessageServer
from sluice_core.errors import DecodeError
from sluice_core.messages.nodes import Counters, Hello
from sluice_core.metrics.totals import Totals

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _WorkerConnection:
    connection: socket.socket
    hello: Hello | None = None
    snapshot: str = ""
    replaced: bool = False


class WorkerServer(MessageServer[_WorkerConnection]):
    """Listens at ``path``; feeds ``totals``; calls ``on_join`` and ``on_leave``."""

    def __init__(
        self, path: str, totals: Totals, on_join: Callable[[Hello], None], on_leave: Callable[[str], None]
    ) -> None:
        super().__init__(path)
        self._totals = totals
        self._on_join = on_join
        self._on_leave = on_leave
        self._changed = asyncio.Event()

    @property
    def count(self) -> int:
        """The workers that have sent their hello."""
        return sum(worker.hello is not None for worker in self._workers.values())

    async def wait_until_reading(self, snapshot: str, timeout: float) -> list[int]:
        """Wait until every worker reads ``snapshot``, at most ``timeout`` seconds.

        :return: the process ids of those that still do not
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                while self.not_reading(snapshot):
                    self._changed.clear()
                    await self._changed.wait()
        return self.not_reading(snapshot)

    def not_reading(self, snapshot: str) -> list[int]:
        """Process ids of the workers that read another snapshot; storage daemons read none."""
        return [
            worker.hello.pid
            for worker in self._workers.values()
            if worker.hello is not None and not worker.hello.disk_file and worker.snapshot != snapshot
        ]

    def _make_worker(self, connection: socket.socket) -> _WorkerConnection:
        return _WorkerConnection(connection)

    def _handle(self, worker: _WorkerConnection, raw: bytes) -> bool:
        """Handle one message; return False when the worker should connect again."""
        if worker.replaced:
            return False  # it counts the metrics of its former connection
        if worker.hello is None:
            hello = Hello.decode(raw)
            for other in self._workers.values():
                other.replaced = other.replaced or (other.hello is not None and other.hello.worker == hello.worker)
            worker.hello = hello
            if not hello.disk_file:
                self._totals.add_worker(hello)
            log.info("%s worker %d is there", hello.role, hello.pid)
            self._on_join(hello)
            return True
        counters = Counters.decode(raw)
        if counters.worker != worker.hello.worker:
            raise DecodeError(f"counters of `{counters.worker}` from `{worker.hello.worker}`", raw)
        worker.snapshot = counters.snapshot
        self._changed.set()
        return self._totals.update(counters)

    def _forget(self, worker: _WorkerConnection) -> None:
        self._changed.set()
        if worker.hello is None or self._has_returned(worker.hello.worker):
            return
        log.info("%s worker %d is gone", worker.hello.role, worker.hello.pid)
        if not worker.hello.disk_file:
            self._totals.lose_worker(worker.hello.worker)
        self._on_leave(worker.hello.worker)

    def _has_returned(self, name: str) -> bool:
        """Whether the worker has another connection already."""
        return any(worker.hello is not None and worker.hello.worker == name for worker in self._workers.values())
