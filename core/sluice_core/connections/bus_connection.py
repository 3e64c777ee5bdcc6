"""A connection to RabbitMQ on an asyncio loop, through pika's asyncio adapter.

It connects in the background, to the hosts of the URL in turn, and repeats with growing, jittered pauses.  It logs no
password.  Exchanges of Sluice are durable; an exchange of another service is declared as that service declares it.
Forms of URLs::

    amqp://[user:password@]host[:port][,host[:port]…][/vhost][?heartbeat=SECONDS]
    amqps://…?ssl_ca_certs=FILE                     over TLS, see ``sluice_core.connections.urls``

The hosts are those of one cluster and are tried in turn.  A host may have its own login (``user:password@`` before
each, as oslo.messaging writes it), else it uses that of the first.
"""

from __future__ import annotations

import asyncio
import logging
import random
import ssl
from itertools import cycle
from typing import Any, Final

import pika
from pika.adapters.asyncio_connection import AsyncioConnection

from sluice_core.connections.urls import Host, ServerUrl, parse_url
from sluice_core.options import OptionError

log = logging.getLogger(__name__)

FORMS: Final = "amqp://user:password@host:port,host:port/vhost or amqps://…"
_SCHEMES: Final = {"amqp": 5672, "amqps": 5671}
_HEARTBEAT: Final = 10
#: Seconds for each step of a connection: TCP, TLS, AMQP.
_PATIENCE: Final = 5


def parse_bus_url(url: str) -> ServerUrl:
    """Return the parts of ``url``.

    :raises OptionError: naming the forms, when ``url`` has none of them
    """
    link = parse_url(url, _SCHEMES, ("heartbeat",), FORMS)
    link.whole("heartbeat", _HEARTBEAT, 1, 3600)
    if link.scheme == "amqp" and any(name.startswith("ssl_") for name in link.options):
        raise OptionError("not a URL: options of TLS need `amqps://`")
    return link


def connection_parameters(link: ServerUrl) -> list[Any]:
    """Return pika's connection parameters for each host, in their order.

    :raises OptionError: when TLS is wanted and its files cannot be used
    """
    tls = link.tls() if link.scheme == "amqps" else None
    return [_parameters(link, host, tls) for host in link.hosts]


def _parameters(link: ServerUrl, host: Host, tls: ssl.SSLContext | None) -> Any:
    login = pika.PlainCredentials(host.user or "guest", host.password or "guest", erase_on_connect=False)
    return pika.ConnectionParameters(
        host=host.name,
        port=host.port,
        virtual_host=link.path or "/",
        credentials=login,
        heartbeat=link.whole("heartbeat", _HEARTBEAT, 1, 3600),
        connection_attempts=1,
        socket_timeout=_PATIENCE,
        stack_timeout=_PATIENCE,
        ssl_options=None if tls is None else pika.SSLOptions(tls, host.name),
    )


_FIRST_PAUSE: Final = 0.1
_LONGEST_PAUSE: Final = 2.0


class BusConnection:
    """One connection with one channel, which reconnects; the base of publisher and consumer.

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
        #: Set while messages can be sent and received.
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
        """The broker closes a channel after a fault of this client (an exchange of another type): connect again."""
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
        """A short pause between the hosts of one round; from round to round the pauses grow."""
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
        """Called when the connection was closed; does nothing by default."""

    async def close(self, timeout: float = 2.0) -> None:
        """Close the connection in order, or after ``timeout`` seconds without an answer from the broker."""
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
