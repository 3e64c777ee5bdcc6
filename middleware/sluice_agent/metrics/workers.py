"""The door for Swift's workers: a Unix socket that keeps messages apart (SEQPACKET).

A worker says hello, then sends its running totals each second; the end of its connection is its
death.  asyncio has no such transport, so the sockets are watched by hand; nothing is ever sent.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from sluice_agent.listening import Listener
from sluice_core.errors import DecodeError
from sluice_core.messages.policies import Counters, Hello
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


class Workers:
    """Listens at ``path``; feeds ``totals``; tells ``arrived`` and ``left``."""

    def __init__(
        self, path: str, totals: Totals, arrived: Callable[[Hello], None], left: Callable[[str], None]
    ) -> None:
        self._totals = totals
        self._arrived = arrived
        self._left = left
        self._listener = Listener(path, self._came)
        self._workers: dict[int, _Worker] = {}
        self._news = asyncio.Event()

    @property
    def count(self) -> int:
        """Workers that said hello."""
        return sum(one.hello is not None for one in self._workers.values())

    def open(self, mode: int = 0o660, group: str = "") -> None:
        """Begin to listen; a socket file that a killed agent left is replaced.

        :raises PeerError: when that cannot be
        """
        self._listener.open(mode, group)

    def close(self) -> None:
        """Hang up, and take the socket file away."""
        for number in list(self._workers):
            self._hang_up(number)
        self._listener.close()

    async def all_reading(self, snapshot: str, timeout: float) -> list[int]:
        """Wait until every worker reads ``snapshot``; the process ids of those that still do not."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                while self.others(snapshot):
                    self._news.clear()
                    await self._news.wait()
        return self.others(snapshot)

    def others(self, snapshot: str) -> list[int]:
        """Process ids of the workers that read something else; storage daemons read none."""
        return [
            one.hello.pid
            for one in self._workers.values()
            if one.hello is not None and not one.hello.disk_file and one.snapshot != snapshot
        ]

    def _came(self, connection: socket.socket) -> None:
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
            if not raw or not self._take(worker, raw):
                self._hang_up(number)
        except DecodeError as error:
            log.warning("hung up on a worker: %s", error)
            self._hang_up(number)

    def _take(self, worker: _Worker, raw: bytes) -> bool:
        """False when the worker should come again and say hello."""
        if worker.replaced:
            return False  # it speaks of the metrics that it had before
        if worker.hello is None:
            hello = Hello.decode(raw)
            for one in self._workers.values():
                one.replaced = one.replaced or (one.hello is not None and one.hello.worker == hello.worker)
            worker.hello = hello
            if not hello.disk_file:
                self._totals.worker(hello)
            log.info("%s worker %d is there", hello.role, hello.pid)
            self._arrived(hello)
            return True
        counters = Counters.decode(raw)
        if counters.worker != worker.hello.worker:
            raise DecodeError(f"counters of `{counters.worker}` from `{worker.hello.worker}`", raw)
        worker.snapshot = counters.snapshot
        self._news.set()
        return self._totals.update(counters)

    def _hang_up(self, number: int) -> None:
        worker = self._workers.pop(number)
        asyncio.get_running_loop().remove_reader(worker.connection)
        worker.connection.close()
        self._news.set()
        if worker.hello is None or self._has_returned(worker.hello.worker):
            return
        log.info("%s worker %d is gone", worker.hello.role, worker.hello.pid)
        if not worker.hello.disk_file:
            self._totals.lost(worker.hello.worker)
        self._left(worker.hello.worker)

    def _has_returned(self, worker: str) -> bool:
        """True when the worker has another connection already."""
        return any(one.hello is not None and one.hello.worker == worker for one in self._workers.values())
