"""An agent that grants credit as a test wants, at the other end of a real socket, on the green threads of the test."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

from sluice_core.messages.bandwidth import Flow
from sluice_core.messages.base import Message
from sluice_core.messages.credit import (
    CREDIT_SUFFIX,
    FREE,
    Ask,
    CreditGrant,
    CreditHello,
    CreditRequest,
    Grant,
    TrafficReport,
    TrafficSample,
    pack,
    unpack,
)
from sluice_middleware.bandwidth.wait_queue import Transfer
from sluice_middleware.swift import green

M = TypeVar("M", bound=Message)

#: Seconds that a test waits, at most.
LIMIT: Final = 10.0
#: Seconds of its rate that a flow may accumulate.
_DEPTH: Final = 0.05


class Clock:
    """A clock that a test advances."""

    def __init__(self, now: float = 1000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def grant_free(asked: CreditRequest) -> CreditGrant | None:
    """Grant unlimited credit."""
    return _given(asked, FREE, 0.0)


def grant_nothing(asked: CreditRequest) -> CreditGrant | None:
    """Do not answer."""
    return None


def grant_all(asked: CreditRequest) -> CreditGrant | None:
    """Grant the requested bytes, at once."""
    return _given(asked, asked.size, 1e9)


def _given(asked: CreditRequest, size: int, rate: float) -> CreditGrant:
    return CreditGrant(asked.account, asked.container, asked.method, asked.policy, size, rate)


def acquire_in_background(transfer: Transfer, *sizes: int) -> tuple[green.Pending, list[int]]:
    """A green thread that acquires credit; its list has the bytes that passed so far."""
    passed: list[int] = []

    def go() -> None:
        for size in sizes:
            transfer.acquire(size)
            passed.append(size)

    return green.start_green(go), passed


class FakeAgent:
    """Listens where workers of the agent at ``path`` connect for credit; received messages are in ``heard``."""

    def __init__(self, path: str, answer: Callable[[CreditRequest], CreditGrant | None] = grant_free) -> None:
        """
        :param answer: returns the immediate answer to requests, unless their flow has a rate
        """
        self.answer = answer
        self.messages: list[Message] = []
        #: Granted bytes minus returned ones, by flow.
        self.given: dict[Flow, int] = {}
        self._paces: dict[Flow, float] = {}
        self._next: dict[Flow, float] = {}
        self._open: set[socket.socket] = set()
        self._sleep = green.InterruptibleSleep()
        self._closing = False
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._listener.setblocking(False)
        Path(path + CREDIT_SUFFIX).unlink(missing_ok=True)
        self._listener.bind(path + CREDIT_SUFFIX)
        self._listener.listen()
        self._open.add(self._listener)
        green.on_readable(self._listener, self._accept)

    def set_rate(self, flow: Flow, rate: float) -> None:
        """Grant ``flow`` this many bytes per second from now on, on request."""
        self._paces[flow] = rate
        self._next.setdefault(flow, 0.0)

    def send(self, message: Message) -> None:
        """Send a message to all workers."""
        for one in self._open - {self._listener}:
            one.send(pack(message))

    def received(self, kind: type[M]) -> list[M]:
        """All messages of one kind so far."""
        return [one for one in self.messages if isinstance(one, kind)]

    def requests(self) -> list[CreditRequest]:
        """All requests of workers so far."""
        return [row for ask in self.received(Ask) for row in ask.rows]

    def samples(self) -> list[TrafficSample]:
        """All reports of workers so far."""
        return [row for used in self.received(TrafficReport) for row in used.rows]

    @property
    def workers(self) -> int:
        """The number of connected workers."""
        return len(self._open - {self._listener})

    def wait_until(self, holds: Callable[[], Any]) -> None:
        """Run green threads until ``holds`` returns true; it is called after each message, and periodically.

        :raises AssertionError: when it stays false
        """
        end = time.monotonic() + LIMIT
        while not holds():
            assert time.monotonic() < end, f"it never came to be; heard {self.messages[-5:]}"
            self._sleep.wait(0.02)

    def join(self, *pending: green.Pending) -> None:
        """Run green threads until these have ended, and raise their errors.

        :raises AssertionError: when they do not
        """
        threads: tuple[Any, ...] = pending
        self.wait_until(lambda: all(one.dead for one in threads))
        for one in threads:
            one.wait()

    def wait_briefly(self) -> None:
        """Let the workers' messages arrive, and the answers to them."""
        self._sleep.wait(0.02)

    def disconnect(self) -> None:
        """Close all connections, as a killed agent does."""
        for one in self._open - {self._listener}:
            one.shutdown(socket.SHUT_RDWR)
        self.wait_until(lambda: not self.workers)

    def close(self) -> None:
        """Stop listening, and close all connections."""
        self._closing = True
        for one in self._open:
            one.shutdown(socket.SHUT_RDWR)
        self.wait_until(lambda: not self._open)

    # -- how -----------------------------------------------------------------------------------

    def _accept(self) -> bool:
        if self._closing:
            return self._gone(self._listener)
        try:
            connection, _ = self._listener.accept()
        except BlockingIOError:
            return True
        connection.setblocking(False)
        self._open.add(connection)
        green.on_readable(connection, lambda: self._read(connection))
        return True

    def _read(self, connection: socket.socket) -> bool:
        while True:
            try:
                raw = connection.recv(1 << 17)
            except BlockingIOError:
                return True
            except OSError:
                return self._gone(connection)
            if not raw:
                return self._gone(connection)
            message = unpack(raw)
            assert isinstance(message, CreditHello | Ask | TrafficReport), message
            self.messages.append(message)
            if isinstance(message, Ask):
                for one in message.rows:
                    self._asked(connection, one)
            self._sleep.wake()

    def _gone(self, connection: socket.socket) -> bool:
        self._open.discard(connection)
        connection.close()
        self._sleep.wake()
        return False

    def _asked(self, connection: socket.socket, asked: CreditRequest) -> None:
        flow = asked.flow
        rate = self._paces.get(flow)
        if asked.size < 0:
            self.given[flow] = self.given.get(flow, 0) + asked.size
            if rate:
                self._next[flow] += asked.size / rate
            return
        if rate is None:
            self._give(connection, self.answer(asked))
            return
        now = time.monotonic()
        due = max(self._next[flow], now - _DEPTH) + asked.size / rate
        self._next[flow] = due
        given = _given(asked, asked.size, rate)
        green.call_later(max(0.0, due - now), lambda: self._give(connection, given))

    def _give(self, connection: socket.socket, given: CreditGrant | None) -> None:
        if given is None or connection not in self._open:
            return
        if given.size != FREE:
            self.given[given.flow] = self.given.get(given.flow, 0) + given.size
        with contextlib.suppress(BrokenPipeError):  # it has disconnected, which its reader detects
            connection.send(pack(Grant((given,))))
