"""The bus: the one door to RabbitMQ, on an asyncio loop, through pika's asyncio adapter.

* A :class:`Publisher` never blocks and never raises for a broker that is away: messages wait in a
  bounded buffer that forgets its oldest first and counts what it forgot.  A message leaves the buffer
  when the broker confirmed it; after a cut, unconfirmed ones are sent again, so a consumer may see
  one twice (metric batches carry a sequence number).
* A :class:`Consumer` has an exclusive queue of its own, so that every consumer sees every message
  that its bindings match.  The queue goes with the connection; what passes while a consumer is away
  is not kept for it: values of the past second are of no use to anybody.

What is declared is durable (the exchange) or bounded (a consumer's queue forgets its oldest), so neither a
restarted broker nor a slow consumer costs more than old values.  Who forgot tells: ``Publisher.dropped``
counts what never went out; what a full queue forgot shows as gaps in the numbers that our messages carry.

Both connect in the background, to the hosts of the URL in turn (``sluice_core.connections.bus_urls`` has its forms),
again and again with growing, jittered pauses, and log no password.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections import deque
from collections.abc import Callable, Iterable
from itertools import cycle
from typing import Any, Final

import pika
import pika.exceptions
from pika.adapters.asyncio_connection import AsyncioConnection

from sluice_core.connections.bus_urls import bus_link, parameters
from sluice_core.store.keys import METRICS_EXCHANGE

log = logging.getLogger(__name__)

Message = tuple[str, bytes]
Received = Callable[[str, bytes], None]

_FIRST_PAUSE: Final = 0.1
_LONGEST_PAUSE: Final = 2.0


def place(url: str) -> str:
    """``host:port`` of an AMQP URL, several between commas, for people: nothing of what stands before an ``@``.

    :raises OptionError: when it is none
    """
    return bus_link(url).place


class _Link:
    """One connection with one channel, kept up; the base of publisher and consumer.

    Subclasses override :meth:`_opened` (a channel with the exchange declared is there; set
    ``connected`` when all is prepared) and :meth:`_lost` (it is gone).
    """

    def __init__(self, url: str, exchange: str) -> None:
        self._link = bus_link(url)
        self._exchange = exchange
        self._connection: Any = None
        self._channel: Any = None
        self._pause = _FIRST_PAUSE
        self._failures = 0
        self._retry: asyncio.TimerHandle | None = None
        self._closing = False
        self._gone = asyncio.Event()
        #: The host of this connection, or of the attempt under way.
        self.host = self._link.place
        #: Set while messages can flow.
        self.connected = asyncio.Event()

    def start(self) -> None:
        """Begin to connect; call it on the running loop.

        :raises OptionError: when files that TLS needs cannot be used
        """
        self._closing = False
        self._turns = cycle(parameters(self._link))
        self._connect()

    def _connect(self) -> None:
        self._retry = None
        self._gone.clear()
        chosen = next(self._turns)
        self.host = f"{chosen.host}:{chosen.port}"
        self._connection = AsyncioConnection(
            chosen,
            on_open_callback=self._connection_open,
            on_open_error_callback=lambda _, error: self._connection_lost(error),
            on_close_callback=lambda _, error: self._connection_lost(error),
            custom_ioloop=asyncio.get_running_loop(),
        )

    def _connection_open(self, connection: Any) -> None:
        connection.channel(on_open_callback=self._channel_open)

    def _channel_open(self, channel: Any) -> None:
        self._channel = channel
        channel.add_on_close_callback(self._channel_closed)
        channel.exchange_declare(
            self._exchange, exchange_type="topic", durable=True, callback=lambda _: self._opened(channel)
        )

    def _channel_closed(self, channel: Any, reason: Exception) -> None:
        """The broker closes a channel for a fault of ours (an exchange of another type); begin anew."""
        if self._connection.is_open and not self._closing:
            log.error("bus at %s closed our channel: %s", self.host, reason)
            self._connection.close()

    def _connection_lost(self, error: BaseException) -> None:
        self.connected.clear()
        self._channel = None
        self._lost()
        self._gone.set()
        if self._closing:
            return
        pause = self._next_pause()
        log.warning("bus at %s is away, trying on in %.1f s: %s", self.host, pause, error or type(error).__name__)
        self._retry = asyncio.get_running_loop().call_later(pause, self._connect)

    def _next_pause(self) -> float:
        """A short one between the hosts of one round; from round to round they grow."""
        self._failures += 1
        pause = _FIRST_PAUSE
        if self._failures % len(self._link.hosts) == 0:
            pause = self._pause
            self._pause = min(self._pause * 2, _LONGEST_PAUSE)
        return pause * random.uniform(0.5, 1.0)  # noqa: S311 -- jitter

    def _ready(self) -> None:
        self._pause = _FIRST_PAUSE
        self._failures = 0
        self.connected.set()

    def _opened(self, channel: Any) -> None:
        self._ready()

    def _lost(self) -> None:
        """The connection is gone; nothing to do by default."""

    async def close(self, timeout: float = 2.0) -> None:
        """Leave the broker in order, or after ``timeout`` seconds without its consent."""
        self._closing = True
        if self._retry is not None:
            self._retry.cancel()
            return
        if self._connection is None:
            return
        if not (self._connection.is_closing or self._connection.is_closed):
            self._connection.close()
        try:
            async with asyncio.timeout(timeout):
                await self._gone.wait()
        except TimeoutError:
            log.warning("bus at %s did not say goodbye within %g s", self.host, timeout)


class Publisher(_Link):
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
        #: Messages that were forgotten, because the buffer was full or the broker refused them.
        self.dropped = 0

    @property
    def pending(self) -> int:
        """Messages that the broker has not confirmed yet."""
        return len(self._waiting) + len(self._sent)

    def publish(self, routing_key: str, body: bytes) -> None:
        """Send ``body`` as soon as may be."""
        self._waiting.append((routing_key, body))
        if self.pending > self._limit:
            self._forget_oldest()
        self._idle.clear()
        self._flush()

    async def drained(self) -> None:
        """Wait until the broker has confirmed everything."""
        await self._idle.wait()

    async def close(self, timeout: float = 2.0) -> None:
        """Wait at most ``timeout`` seconds for confirmations, then leave."""
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

    def _opened(self, channel: Any) -> None:
        self._number = 0
        channel.confirm_delivery(self._confirmed, callback=lambda _: self._confirming())

    def _confirming(self) -> None:
        self._ready()
        self._flush()

    def _lost(self) -> None:
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


class Consumer(_Link):
    """Calls ``received(routing_key, body)`` for each message that one of its bindings matches.

    Bindings are topic patterns (``metric.PUTS_SEC.*``).  At most ``max_length`` messages wait in the
    queue, none longer than ``ttl`` seconds; the oldest go first.  A callback that raises is logged and
    counted in ``failed``, and the next message comes.
    """

    def __init__(
        self,
        url: str,
        received: Received,
        bindings: Iterable[str] = (),
        exchange: str = METRICS_EXCHANGE,
        max_length: int = 10_000,
        ttl: float = 10.0,
    ) -> None:
        super().__init__(url, exchange)
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
        """The patterns wanted now."""
        return tuple(self._bindings)

    def bind(self, pattern: str) -> None:
        """Also receive what ``pattern`` matches, now and after each reconnection."""
        if pattern not in self._bindings:
            self._bindings[pattern] = None
            self._ask("queue_bind", pattern)

    def unbind(self, pattern: str) -> None:
        """No longer receive what only ``pattern`` matches."""
        if pattern in self._bindings:
            del self._bindings[pattern]
            self._ask("queue_unbind", pattern)

    async def settled(self) -> None:
        """Wait until the broker knows exactly the bindings wanted now."""
        await self._settled.wait()

    def _ask(self, what: str, pattern: str) -> None:
        if not self._queue or not self._channel.is_open:
            return  # the coming connection binds all that is wanted then
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

    def _opened(self, channel: Any) -> None:
        channel.queue_declare(
            "", exclusive=True, auto_delete=True, arguments=self._arguments, callback=self._queue_declared
        )

    def _queue_declared(self, frame: Any) -> None:
        self._queue = frame.method.queue
        self._unsettled = 1
        for pattern in self._bindings:
            self._ask("queue_bind", pattern)
        self._channel.basic_consume(
            self._queue, self._deliver, auto_ack=True, exclusive=True, callback=lambda _: self._answered()
        )

    def _deliver(self, channel: Any, method: Any, properties: Any, body: bytes) -> None:
        try:
            self._received(method.routing_key, body)
        except Exception:
            self.failed += 1
            log.exception("a message with routing key `%s` was not digested", method.routing_key)

    def _lost(self) -> None:
        self._queue = ""
        self._unsettled = 0
        self._settled.clear()
