"""A connection to RabbitMQ on an asyncio loop, through pika's asyncio adapter.

It connects in the background, to the hosts of the URL in turn (``sluice_core.connections.bus_urls`` has its forms),
again and again with growing, jittered pauses, and logs no password.  Exchanges of ours are durable; one of
somebody else's is declared as they declare it.
"""

from __future__ import annotations

import asyncio
import logging
import random
from itertools import cycle
from typing import Any, Final

from pika.adapters.asyncio_connection import AsyncioConnection

from sluice_core.connections.bus_urls import connection_parameters, parse_bus_url

log = logging.getLogger(__name__)

_FIRST_PAUSE: Final = 0.1
_LONGEST_PAUSE: Final = 2.0


class BusConnection:
    """One connection with one channel, kept up; the base of publisher and consumer.

    Subclasses override :meth:`_on_channel_open`, which gets a channel on which the exchange is declared and calls
    :meth:`_ready` when messages can flow, and :meth:`_on_closed`.
    """

    def __init__(self, url: str, exchange: str, durable: bool = True) -> None:
        self._link = parse_bus_url(url)
        self._exchange = exchange
        self._durable = durable
        self._connection: Any = None
        self._channel: Any = None
        self._pause = _FIRST_PAUSE
        self._failures = 0
        self._retry: asyncio.TimerHandle | None = None
        self._closing = False
        self._closed = asyncio.Event()
        #: The host of this connection, or of the attempt under way.
        self.host = self._link.place
        #: Set while messages can flow.
        self.connected = asyncio.Event()

    def start(self) -> None:
        """Begin to connect; call it on the running loop.

        :raises OptionError: when files that TLS needs cannot be used
        """
        self._closing = False
        self._turns = cycle(connection_parameters(self._link))
        self._connect()

    def _connect(self) -> None:
        self._retry = None
        self._closed.clear()
        chosen = next(self._turns)
        self.host = f"{chosen.host}:{chosen.port}"
        self._connection = AsyncioConnection(
            chosen,
            on_open_callback=self._connection_open,
            on_open_error_callback=lambda _, error: self._connection_closed(error),
            on_close_callback=lambda _, error: self._connection_closed(error),
            custom_ioloop=asyncio.get_running_loop(),
        )

    def _connection_open(self, connection: Any) -> None:
        connection.channel(on_open_callback=self._channel_open)

    def _channel_open(self, channel: Any) -> None:
        self._channel = channel
        channel.add_on_close_callback(self._channel_closed)
        channel.exchange_declare(
            self._exchange,
            exchange_type="topic",
            durable=self._durable,
            callback=lambda _: self._on_channel_open(channel),
        )

    def _channel_closed(self, channel: Any, reason: Exception) -> None:
        """The broker closes a channel for a fault of ours (an exchange of another type); begin anew."""
        if self._connection.is_open and not self._closing:
            log.error("bus at %s closed our channel: %s", self.host, reason)
            self._connection.close()

    def _connection_closed(self, error: BaseException) -> None:
        self.connected.clear()
        self._channel = None
        self._on_closed()
        self._closed.set()
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

    def _on_channel_open(self, channel: Any) -> None:
        self._ready()

    def _on_closed(self) -> None:
        """Called when the connection was closed; nothing to do by default."""

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
                await self._closed.wait()
        except TimeoutError:
            log.warning("bus at %s did not say goodbye within %g s", self.host, timeout)
