"""The server for credit: a Unix socket beside that for counters, over which workers request bytes and get grants.

Theory of operation:

* The requests of one turn of the loop are answered at the end of that turn, in one message for each worker; a timer of
  2 to 50 ms waits for the next grants while any request is pending.
* The server never blocks: messages that a worker's socket does not take are queued, and a worker that does not read
  is disconnected.  It continues at its fallback rates, and connects again.
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
from sluice_agent.message_server import MessageServer
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

#: Messages queued for a worker that does not read.
_MAX_UNREAD: Final = 200
#: Seconds of the timer, at least and at most.
MIN_PAUSE: Final = 0.002
MAX_PAUSE: Final = 0.05


@dataclass(slots=True)
class _CreditConnection:
    connection: socket.socket
    name: str
    hello: CreditHello | None = None
    unread: deque[bytes] = field(default_factory=deque)


class CreditServer(MessageServer[_CreditConnection]):
    """Serves credit beside ``path``: feeds ``limiter`` and ``loads``; sends the grants and priority updates."""

    messages_per_turn = 16

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
        super().__init__(path + CREDIT_SUFFIX)
        self._limiter = limiter
        self._loads = loads
        self._levels = levels
        self._clock = clock
        self._names: dict[str, _CreditConnection] = {}
        self._count = 0
        self._is_serve_scheduled = False
        self._timer: asyncio.TimerHandle | None = None

    @property
    def count(self) -> int:
        """The workers that have sent their hello."""
        return len(self._names)

    def close(self) -> None:
        """Stop serving: as :meth:`MessageServer.close`."""
        if self._timer is not None:
            self._timer.cancel()
        super().close()

    def apply_shares(self, shares: Shares) -> None:
        """Apply new shares, and send what follows from them."""
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

    def _make_worker(self, connection: socket.socket) -> _CreditConnection:
        self._count += 1
        return _CreditConnection(connection, str(self._count))

    def _handle(self, worker: _CreditConnection, raw: bytes) -> bool:
        message = unpack(raw)
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
        return True

    def _forget(self, worker: _CreditConnection) -> None:
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
        if not self.is_open:
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

    def _grant(self, worker: _CreditConnection, rows: Sequence[CreditGrant]) -> None:
        raw = pack(Grant(tuple(rows)))
        if len(raw) > MESSAGE_LIMIT and len(rows) > 1:
            half = len(rows) // 2
            self._grant(worker, rows[:half])
            self._grant(worker, rows[half:])
        else:
            self._send(worker, raw)

    def _send(self, worker: _CreditConnection, raw: bytes) -> None:
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
            if len(worker.unread) <= _MAX_UNREAD:
                loop.add_writer(worker.connection, self._flush, number)
                return
            log.warning("hung up on a worker that does not read its credit")
            loop.call_soon(self._drop, number, worker)
        except OSError:
            loop.call_soon(self._drop, number, worker)  # its earlier messages are still to be read
        loop.remove_writer(worker.connection)

    def _drop(self, number: int, worker: _CreditConnection) -> None:
        if self._workers.get(number) is worker:
            self._hang_up(number)


def _is_valid(row: CreditRequest | TrafficSample) -> bool:
    """Whether the names have the right types; the decoder checked the numbers."""
    if not (isinstance(row.policy, int) and all(isinstance(name, str) for name in row[:3])):
        return False
    return isinstance(row.size, int) if isinstance(row, CreditRequest) else isinstance(row.device, str)
