"""Receives messages from the broker.

A consumer has an exclusive queue of its own, so every consumer receives every message that its bindings match.  The
broker deletes the queue with the connection: messages during a disconnection are not kept, because values of the past
second are then out of date.  The queue is bounded and drops its oldest message; a gap in the sequence numbers of the
messages shows that.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Any

from sluice_core.connections.bus_connection import BusConnection
from sluice_core.connections.exchanges import METRICS_EXCHANGE

log = logging.getLogger(__name__)

Received = Callable[[str, bytes], None]


class Consumer(BusConnection):
    """Calls ``received(routing_key, body)`` for each message that one of its bindings matches.

    Bindings are topic patterns (``metric.PUTS_SEC.*``).  At most ``max_length`` messages wait in the
    queue, none longer than ``ttl`` seconds; the oldest go first.  A callback that raises is logged and
    counted in ``failed``, and the next message comes.  ``durable`` says how the exchange is declared.
    """

    def __init__(
        self,
        url: str,
        received: Received,
        bindings: Iterable[str] = (),
        exchange: str = METRICS_EXCHANGE,
        max_length: int = 10_000,
        ttl: float = 10.0,
        durable: bool = True,
    ) -> None:
        super().__init__(url, exchange, durable)
        self._received = received
        self._bindings = dict.fromkeys(bindings)
        self._queue = ""
        self._arguments = {"x-max-length": max_length, "x-overflow": "drop-head", "x-message-ttl": int(ttl * 1000)}
        self._unsettled = 0
        self._settled = asyncio.Event()
        #: Messages whose callback raised.
        self.failed = 0

    @property
    def bindings(self) -> tuple[str, ...]:
        """The current patterns."""
        return tuple(self._bindings)

    def bind(self, pattern: str) -> None:
        """Also receive what ``pattern`` matches, now and after each reconnection."""
        if pattern not in self._bindings:
            self._bindings[pattern] = None
            self._change_bindings("queue_bind", pattern)

    def unbind(self, pattern: str) -> None:
        """Stop receiving messages that only ``pattern`` matches."""
        if pattern in self._bindings:
            del self._bindings[pattern]
            self._change_bindings("queue_unbind", pattern)

    async def settled(self) -> None:
        """Wait until the broker has exactly the current bindings."""
        await self._settled.wait()

    def _change_bindings(self, what: str, pattern: str) -> None:
        if not self._queue or not self._channel.is_open:
            return  # the next connection binds all current patterns
        self._unsettled += 1
        self._settled.clear()
        ask = getattr(self._channel, what)
        ask(self._queue, self._exchange, routing_key=pattern, callback=lambda _: self._answered())

    def _answered(self) -> None:
        self._unsettled -= 1
        if not self._unsettled:
            if not self.connected.is_set():
                self._ready()
            self._settled.set()

    def _on_channel_open(self, channel: Any) -> None:
        channel.queue_declare(
            "", exclusive=True, auto_delete=True, arguments=self._arguments, callback=self._queue_declared
        )

    def _queue_declared(self, frame: Any) -> None:
        self._queue = frame.method.queue
        self._unsettled = 1
        for pattern in self._bindings:
            self._change_bindings("queue_bind", pattern)
        self._channel.basic_consume(
            self._queue, self._deliver, auto_ack=True, exclusive=True, callback=lambda _: self._answered()
        )

    def _deliver(self, channel: Any, method: Any, properties: Any, body: bytes) -> None:
        try:
            self._received(method.routing_key, body)
        except Exception:
            self.failed += 1
            log.exception("a message with routing key `%s` was not digested", method.routing_key)

    def _on_closed(self) -> None:
        self._queue = ""
        self._unsettled = 0
        self._settled.clear()
