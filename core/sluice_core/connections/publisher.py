"""Sends messages to the broker.

A publisher does not block, and does not raise when the broker is unreachable.  Messages wait in a bounded buffer; when
it is full its oldest message is dropped and counted.  A message leaves the buffer when the broker has confirmed it.
After a cut, unconfirmed messages are sent again, so a consumer may see one twice (metric batches carry a sequence
number).
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import Any

import pika
import pika.exceptions

from sluice_core.connections.bus_connection import BusConnection
from sluice_core.connections.exchanges import METRICS_EXCHANGE

log = logging.getLogger(__name__)

Message = tuple[str, bytes]


class Publisher(BusConnection):
    """Sends messages to a topic exchange.

    At most ``limit`` messages wait, ``window`` of them sent and not yet confirmed.
    """

    def __init__(self, url: str, exchange: str = METRICS_EXCHANGE, limit: int = 1000, window: int = 500) -> None:
        super().__init__(url, exchange)
        self._limit = limit
        self._window = window
        self._waiting: deque[Message] = deque()
        self._sent: dict[int, Message] = {}
        self._number = 0
        self._blocked = False
        self._idle = asyncio.Event()
        self._idle.set()
        #: Messages that were dropped, because the buffer was full or the broker refused them.
        self.dropped = 0

    @property
    def pending(self) -> int:
        """Messages that the broker has not confirmed yet."""
        return len(self._waiting) + len(self._sent)

    def publish(self, routing_key: str, body: bytes) -> None:
        """Send ``body`` as soon as possible."""
        self._waiting.append((routing_key, body))
        if self.pending > self._limit:
            self._forget_oldest()
        self._idle.clear()
        self._flush()

    async def drained(self) -> None:
        """Wait until the broker has confirmed everything."""
        await self._idle.wait()

    async def close(self, timeout: float = 2.0) -> None:
        """Wait at most ``timeout`` seconds for confirmations, then close the connection."""
        if self.connected.is_set():
            try:
                async with asyncio.timeout(timeout):
                    await self.drained()
            except TimeoutError:
                log.warning("bus at %s confirmed all but %d messages", self.host, self.pending)
        await super().close(timeout)

    def _forget_oldest(self) -> None:
        if self._sent:
            self._sent.pop(next(iter(self._sent)))
        else:
            self._waiting.popleft()
        self.dropped += 1

    def _connection_open(self, connection: Any) -> None:
        self._blocked = False
        connection.add_on_connection_blocked_callback(lambda *_: self._set_blocked(True))
        connection.add_on_connection_unblocked_callback(lambda *_: self._set_blocked(False))
        super()._connection_open(connection)

    def _set_blocked(self, blocked: bool) -> None:
        log.warning("bus at %s %s messages", self.host, "takes no" if blocked else "takes again")
        self._blocked = blocked
        self._flush()

    def _on_channel_open(self, channel: Any) -> None:
        self._number = 0
        channel.confirm_delivery(self._confirmed, callback=lambda _: self._confirming())

    def _confirming(self) -> None:
        self._ready()
        self._flush()

    def _on_closed(self) -> None:
        self._waiting.extendleft(reversed(self._sent.values()))
        self._sent.clear()

    def _flush(self) -> None:
        while self._waiting and len(self._sent) < self._window and self.connected.is_set() and not self._blocked:
            routing_key, body = message = self._waiting.popleft()
            try:
                self._channel.basic_publish(self._exchange, routing_key, body)
            except (pika.exceptions.AMQPError, pika.exceptions.AMQPChannelError) as error:
                self._waiting.appendleft(message)
                self.connected.clear()
                log.warning("bus at %s: cannot publish: %s", self.host, error)
                return
            self._number += 1
            self._sent[self._number] = message

    def _confirmed(self, frame: Any) -> None:
        method = frame.method
        numbers = [method.delivery_tag]
        if method.multiple:
            numbers = [number for number in self._sent if number <= method.delivery_tag]
        gone = sum(self._sent.pop(number, None) is not None for number in numbers)
        if isinstance(method, pika.spec.Basic.Nack):
            self.dropped += gone
            log.warning("bus at %s refused %d messages", self.host, gone)
        self._flush()
        if not self.pending:
            self._idle.set()
