"""URLs of RabbitMQ, and the connection parameters of each host.

::

    amqp://[user:password@]host[:port][,host[:port]…][/vhost][?heartbeat=SECONDS]
    amqps://…?ssl_ca_certs=FILE                     over TLS, see ``sluice_core.connections.urls``

The hosts are those of one cluster and are tried in turn.  A host may have a login of its own (``user:password@`` before
each, as oslo.messaging writes it), else it has that of the first.
"""

from __future__ import annotations

import ssl
from typing import Any, Final

import pika

from sluice_core.connections.urls import Host, ServerUrl, parse_url
from sluice_core.options import OptionError

FORMS: Final = "amqp://user:password@host:port,host:port/vhost or amqps://…"
_SCHEMES: Final = {"amqp": 5672, "amqps": 5671}
_HEARTBEAT: Final = 10
#: Seconds for each step of a connection: TCP, TLS, AMQP.
_PATIENCE: Final = 5


def parse_bus_url(url: str) -> ServerUrl:
    """The parts of ``url``.

    :raises OptionError: naming the forms, when it is none
    """
    link = parse_url(url, _SCHEMES, ("heartbeat",), FORMS)
    link.whole("heartbeat", _HEARTBEAT, 1, 3600)
    if link.scheme == "amqp" and any(name.startswith("ssl_") for name in link.options):
        raise OptionError("not a URL: options of TLS need `amqps://`")
    return link


def connection_parameters(link: ServerUrl) -> list[Any]:
    """Pika's connection parameters for each host, in their order.

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
