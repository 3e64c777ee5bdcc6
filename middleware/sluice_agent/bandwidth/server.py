"""The door for credit: a Unix socket beside that for counters, over which workers ask and are answered.

Theory of operation:

* asyncio has no transport for sockets that keep messages apart, so they are watched by hand, as in
  :mod:`sluice_agent.metrics.worker_server`.
* What was asked in one turn of the loop is answered in one message for each worker, at the end of that turn; a timer
  of 2 to 50 ms waits for the next credit while anybody waits.
* Nothing here ever blocks: what a worker's socket does not take is kept for a moment, and a worker that goes on not
  to read is hung up on.  It goes on alone, and comes again.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from sluice_agent.bandwidth.io_levels import IoLevels, encode_update
from sluice_agent.bandwidth.loads import LoadMeter
from sluice_agent.bandwidth.node_limiter import NodeLimiter
from sluice_agent.listener import Listener
from sluice_core.errors import DecodeError
from sluice_core.messages.bandwidth import SIDES, Shares
from sluice_core.messages.credit import (
    CREDIT_SUFFIX,
    MESSAGE_LIMIT,
    Ask,
    CreditGrant,
    CreditHello,
    CreditRequest,
    Grant,
    Renegotiate,
    TrafficReport,
    TrafficSample,
    pack,
    unpack,
)

log = logging.getLogger(__name__)

_RECEIVE: Final = 1 << 17
#: Messages taken from one worker before the others have their turn.
_AT_ONCE: Final = 16
#: Messages kept for a worker that does not read.
_MOST_UNREAD: Final = 200
#: Seconds of the timer.
MIN_PAUSE: Final = 0.002
MAX_PAUSE: Final = 0.05


@dataclass(slots=True)
class _Worker:
    connection: socket.socket
    name: str
    hello: CreditHello | None = None
    unread: deque[bytes] = field(default_factory=deque)


class CreditServer:
    """Serves credit beside ``path``: feeds ``limiter`` and ``loads``; sends the grants and priority updates."""

    def __init__(
        self,
        path: str,
        limiter: NodeLimiter,
        loads: LoadMeter,
        levels: IoLevels,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """
        :param path: the agent's socket; this one has a suffix
        :param clock: monotonic
        """
        self._limiter = limiter
        self._loads = loads
        self._levels = levels
        self._clock = clock
        self._listener = Listener(path + CREDIT_SUFFIX, self._add_connection)
        self._workers: dict[int, _Worker] = {}
        self._names: dict[str, _Worker] = {}
        self._count = 0
        self._is_serve_scheduled = False
        self._timer: asyncio.TimerHandle | None = None

    @property
    def count(self) -> int:
        """The workers that have sent their hello."""
        return len(self._names)

    def open(self, mode: int = 0o660, group: str = "") -> None:
        """Listen; a socket file that a killed agent left is replaced.

        :raises PeerError: when the socket cannot be opened
        """
        self._listener.open(mode, group)

    def close(self) -> None:
        """Close all connections, and remove the socket file."""
        if self._timer is not None:
            self._timer.cancel()
        for number in list(self._workers):
            self._hang_up(number)
        self._listener.close()

    def apply_shares(self, shares: Shares) -> None:
        """Put new shares in force, and send what follows from them."""
        self._serve()
        self._limiter.set_shares(shares, self._clock())
        for name in self._limiter.workers_to_renegotiate():
            self._send(self._names[name], pack(Renegotiate()))
        self._serve()

    def send_priorities(self, sides: Collection[str]) -> None:
        """Send the workers of ``sides`` their priority update, with the newcomers' fallback rates."""
        raw = {side: self._encoded_priorities(side) for side in sides}
        for worker in list(self._names.values()):
            if worker.hello is not None and worker.hello.side in raw:
                self._send(worker, raw[worker.hello.side])

    def send_rates(self) -> None:
        """Send the workers the fallback rates that have changed."""
        for name, rows in self._limiter.changed_fallback_rates(self._clock()).items():
            self._grant(self._names[name], rows)

    def _encoded_priorities(self, side: str) -> bytes:
        return encode_update(replace(self._levels.updates[side], alone=self._limiter.newcomer_fallback_rates(side)))

    def _add_connection(self, connection: socket.socket) -> None:
        self._count += 1
        self._workers[connection.fileno()] = _Worker(connection, str(self._count))
        asyncio.get_running_loop().add_reader(connection, self._receive, connection.fileno())

    def _receive(self, number: int) -> None:
        worker = self._workers[number]
        for _ in range(_AT_ONCE):
            try:
                raw = worker.connection.recv(_RECEIVE)
            except BlockingIOError:
                return
            except OSError as error:
                log.warning("lost a worker: %s", error)
                raw = b""
            if not raw:
                self._hang_up(number)
                return
            try:
                self._handle(worker, unpack(raw))
            except DecodeError as error:
                log.warning("hung up on a worker: %s", error)
                self._hang_up(number)
                return
            if number not in self._workers:
                return

    def _handle(self, worker: _Worker, message: object) -> None:
        """
        :raises DecodeError: for a message that no worker may send
        """
        if worker.hello is None:
            if not isinstance(message, CreditHello) or message.side not in SIDES:
                raise DecodeError(f"begins with `{message}`, expected a hello")
            worker.hello = message
            self._names[worker.name] = worker
            self._limiter.add_worker(worker.name, message.side)
            self._limiter.drain(message.side, self._clock())
            self._loads.add_worker(worker.name, message)
            log.info("%s worker %d asks for credit from now on", message.side, message.pid)
            self._send(worker, self._encoded_priorities(message.side))
        elif isinstance(message, Ask):
            if not all(map(_is_valid, message.rows)):
                raise DecodeError(f"asks for `{message.rows}`")
            now = self._clock()
            for row in message.rows:
                self._limiter.request(worker.name, row, now)
            self._serve_soon()
        elif isinstance(message, TrafficReport):
            if not all(map(_is_valid, message.rows)):
                raise DecodeError(f"used `{message.rows}`")
            self._loads.add_report(worker.name, message)
        else:
            raise DecodeError(f"says `{message}`, which only agents say")

    def _hang_up(self, number: int) -> None:
        worker = self._workers.pop(number)
        loop = asyncio.get_running_loop()
        loop.remove_reader(worker.connection)
        loop.remove_writer(worker.connection)
        worker.connection.close()
        if worker.hello is None:
            return
        log.info("%s worker %d asks for no more credit", worker.hello.side, worker.hello.pid)
        del self._names[worker.name]
        self._limiter.remove_worker(worker.name)
        self._loads.remove_worker(worker.name)

    def _serve_soon(self) -> None:
        """Serve once in this turn of the loop, after all messages that have arrived."""
        if not self._is_serve_scheduled:
            self._is_serve_scheduled = True
            asyncio.get_running_loop().call_soon(self._serve)

    def _serve(self) -> None:
        """Send the grants that are ready, and set the timer for the next ones."""
        self._is_serve_scheduled = False
        if not self._listener.is_open:
            return
        for name, rows in self._limiter.due_grants(self._clock()).items():
            self._grant(self._names[name], rows)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        due = self._limiter.seconds_until_due(self._clock())
        if due is not None:
            pause = min(max(due, MIN_PAUSE), MAX_PAUSE)
            self._timer = asyncio.get_running_loop().call_later(pause, self._serve)

    def _grant(self, worker: _Worker, rows: Sequence[CreditGrant]) -> None:
        raw = pack(Grant(tuple(rows)))
        if len(raw) > MESSAGE_LIMIT and len(rows) > 1:
            half = len(rows) // 2
            self._grant(worker, rows[:half])
            self._grant(worker, rows[half:])
        else:
            self._send(worker, raw)

    def _send(self, worker: _Worker, raw: bytes) -> None:
        number = worker.connection.fileno()
        if number not in self._workers:
            return  # the connection was just closed
        worker.unread.append(raw)
        self._flush(number)

    def _flush(self, number: int) -> None:
        worker = self._workers[number]
        loop: Any = asyncio.get_running_loop()
        try:
            while worker.unread:
                worker.connection.send(worker.unread[0])
                worker.unread.popleft()
        except BlockingIOError:
            if len(worker.unread) <= _MOST_UNREAD:
                loop.add_writer(worker.connection, self._flush, number)
                return
            log.warning("hung up on a worker that does not read its credit")
            loop.call_soon(self._drop, number, worker)
        except OSError:
            loop.call_soon(self._drop, number, worker)  # its earlier messages are still to be read
        loop.remove_writer(worker.connection)

    def _drop(self, number: int, worker: _Worker) -> None:
        if self._workers.get(number) is worker:
            self._hang_up(number)


def _is_valid(row: CreditRequest | TrafficSample) -> bool:
    """Whether the names have the right types; the decoder checked the numbers."""
    if not (isinstance(row.policy, int) and all(isinstance(name, str) for name in row[:3])):
        return False
    return isinstance(row.size, int) if isinstance(row, CreditRequest) else isinstance(row.device, str)
