"""The server for the counters of Swift's workers: a Unix socket that keeps message boundaries (SEQPACKET).

A worker sends its hello, then its running totals each second; the end of its connection is its end.  asyncio has no
transport for such sockets, so they are watched by hand.  The server sends nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from sluice_agent.listener import Listener
from sluice_core.errors import DecodeError
from sluice_core.messages.nodes import Counters, Hello
from sluice_core.metrics.totals import Totals

log = logging.getLogger(__name__)

#: More than any message may have (64 KiB), so that one too long is seen as such.
_RECEIVE: Final = 1 << 17


@dataclass(slots=True)
class _Worker:
    connection: socket.socket
    hello: Hello | None = None
    snapshot: str = ""
    replaced: bool = False


class WorkerServer:
    """Listens at ``path``; feeds ``totals``; calls ``on_join`` and ``on_leave``."""

    def __init__(
        self, path: str, totals: Totals, on_join: Callable[[Hello], None], on_leave: Callable[[str], None]
    ) -> None:
        self._totals = totals
        self._on_join = on_join
        self._on_leave = on_leave
        self._listener = Listener(path, self._add_connection)
        self._workers: dict[int, _Worker] = {}
        self._changed = asyncio.Event()

    @property
    def count(self) -> int:
        """The workers that have sent their hello."""
        return sum(worker.hello is not None for worker in self._workers.values())

    def open(self, mode: int = 0o660, group: str = "") -> None:
        """Listen; a socket file that a killed agent left is replaced.

        :raises PeerError: when the socket cannot be opened
        """
        self._listener.open(mode, group)

    def close(self) -> None:
        """Close all connections, and remove the socket file."""
        for number in list(self._workers):
            self._hang_up(number)
        self._listener.close()

    async def wait_until_reading(self, snapshot: str, timeout: float) -> list[int]:
        """Wait until every worker reads ``snapshot``, at most ``timeout`` seconds.

        :return: the process ids of those that still do not"""
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

    def _add_connection(self, connection: socket.socket) -> None:
        self._workers[connection.fileno()] = _Worker(connection)
        asyncio.get_running_loop().add_reader(connection, self._receive, connection.fileno())

    def _receive(self, number: int) -> None:
        worker = self._workers[number]
        try:
            raw = worker.connection.recv(_RECEIVE)
        except BlockingIOError:
            return
        except OSError as error:
            log.warning("lost a worker: %s", error)
            raw = b""
        try:
            if not raw or not self._handle(worker, raw):
                self._hang_up(number)
        except DecodeError as error:
            log.warning("hung up on a worker: %s", error)
            self._hang_up(number)

    def _handle(self, worker: _Worker, raw: bytes) -> bool:
        """Handle one message; False when the worker should connect again."""
        if worker.replaced:
            return False  # it speaks of the metrics that it had before
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

    def _hang_up(self, number: int) -> None:
        worker = self._workers.pop(number)
        asyncio.get_running_loop().remove_reader(worker.connection)
        worker.connection.close()
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
