"""Requests to object servers and homes, with time-outs: one connection each, as Swift's own backend requests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from sluice_core.errors import PeerError
from sluice_middleware.swift import internal_api as swift


class Timeouts(NamedTuple):
    """Seconds until a server that does not accept the connection, or does not answer, is given up."""

    connect: float
    answer: float


class NotSent(PeerError):
    """The server did not accept the connection: the request had no effect."""


class NotAnswered(PeerError):
    """The request was sent and not answered: it may have had its effect."""


class Reply(NamedTuple):
    """
    :param headers: names in lower case
    """

    status: int
    reason: str
    headers: Mapping[str, str]
    body: bytes


def send(
    address: str, method: str, path: str, headers: Mapping[str, str], body: bytes, timeouts: Timeouts, query: str = ""
) -> Reply:
    """The response of the server at ``address``, ``host:port``.

    :param path: quoted
    :raises NotSent: when it does not accept the connection
    :raises NotAnswered: when it does not answer
    """
    host, _, port = address.rpartition(":")
    sent = {**headers, "Content-Length": str(len(body))}
    try:
        with swift.Timeout(timeouts.connect):
            connection = swift.http_connect_raw(host, int(port), method, path, sent, query)
    except (OSError, ValueError, swift.HTTPException, swift.Timeout) as error:
        raise NotSent(f"{address} does not accept a connection: {error}") from error
    try:
        with swift.Timeout(timeouts.answer):
            if body:
                connection.send(body)
            response = connection.getresponse()
            content = response.read()
            given = {name.lower(): value for name, value in response.getheaders()}
    except (OSError, swift.HTTPException, swift.Timeout) as error:
        raise NotAnswered(f"{address} does not answer {method}: {error}") from error
    finally:
        connection.close()
    return Reply(response.status, response.reason, given, content)
