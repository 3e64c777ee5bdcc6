"""Activation URLs: HTTP calls that a policy makes when it sets a filter, and when it takes the filter back.

Every filter has such a URL.  The default is the deploy call of Sluice's API.  It is never called, since agents follow
the change stream.  A registered one (``registry.Activation``) belongs to a federated service; :func:`activate` sends it
PUT with the parameters as JSON, and expects a status below 300.

* Only hosts that the operator has listed are called (``sluice_core.connections.url_allowlist``); the connection goes to
  the very address that the list allows.
* A redirect is a failure.  Nothing but the status of an answer is read.
* An attempt ends at its time-out, name resolution and TLS included; after a few attempts the call has failed.
"""

from __future__ import annotations

import asyncio
import json
import re
import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, urlsplit

from sluice_core.connections.url_allowlist import BadUrl, UrlAllowlist, http_host
from sluice_core.describe import PROXY, Scalar
from sluice_core.messages.registry import HOLE, Activation

#: In a URL: where the keyword of the filter goes.
FILTER_HOLE: Final = "{filter}"
ATTEMPTS: Final = 3
#: Seconds before the second attempt; twice as long before each further one.
PAUSE: Final = 0.2
LONGEST_URL: Final = 2048
LONGEST_TIMEOUT: Final = 60.0
_LONGEST_LINE: Final = 8192
_INTERIM: Final = 5
_AGAIN: Final = frozenset({408, 425, 429})
_status_line = re.compile(rb"HTTP/1\.[01] ([1-5][0-9]{2})(?: [^\r\n]*)?\r?\n")


@dataclass(frozen=True, slots=True)
class ActivationCall:
    """One call to be made: PUT ``body`` (JSON) to ``url``, with ``timeout`` seconds for an attempt."""

    url: str
    body: bytes = b"{}"
    timeout: float = 5.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a call ended: its last status (0: no answer), attempts made, and why it failed (empty: it did not)."""

    status: int
    attempts: int
    reason: str = ""

    @property
    def done(self) -> bool:
        """Whether the service accepted it."""
        return not self.reason


def fill_url(template: str, target: str, keyword: str) -> str:
    """``template`` with target and keyword in their places, quoted."""
    return template.replace(HOLE, quote(target, safe="/")).replace(FILTER_HOLE, quote(keyword, safe=""))


def call_body(params: Mapping[str, Scalar], place: str = PROXY) -> bytes:
    """The body of a call, as our own deploy call takes it."""
    return json.dumps({"params": dict(params), "place": place}, separators=(",", ":"), sort_keys=True).encode()


def activation_call(
    activation: Activation, target: str, params: Mapping[str, Scalar], place: str = PROXY, undo: bool = False
) -> ActivationCall | None:
    """The call that sets the filter for ``target`` or takes it back; None when nothing is registered for that."""
    template = activation.undo if undo else activation.url
    if not template:
        return None
    return ActivationCall(fill_url(template, target, activation.name), call_body(params, place), activation.timeout)


def check_url(template: str, longest: int = LONGEST_URL) -> str:
    """The host of ``template`` when it can be an activation URL; connects to nothing.

    :raises BadUrl: with the reason
    """
    if len(template) > longest:
        raise BadUrl(f"the URL has {len(template)} characters, expected at most {longest}")
    bare = template.replace(HOLE, "t").replace(FILTER_HOLE, "f")
    if "{" in bare or "}" in bare:
        raise BadUrl(f"`{template!a}` holds an unknown hole, expected `{HOLE}` or `{FILTER_HOLE}`")
    host = http_host(bare)
    if "{" in urlsplit(template).netloc:
        raise BadUrl(f"`{template}` has a hole in its host, expected none")
    return host


async def activate(
    call: ActivationCall,
    allowlist: UrlAllowlist,
    attempts: int = ATTEMPTS,
    pause: float = PAUSE,
    context: ssl.SSLContext | None = None,
) -> Outcome:
    """Make ``call``; never raises for what the service or the network does, nor for what the allowlist refuses.

    Tried again: no connection, no answer in time, nonsense, 5xx, 408, 425 and 429.
    """
    status, reason = 0, ""
    for attempt in range(1, attempts + 1):
        try:
            async with asyncio.timeout(call.timeout):
                status = await _attempt(call, allowlist, context)
        except BadUrl as error:
            return Outcome(0, attempt, str(error))
        except TimeoutError:
            status, reason = 0, f"no answer within {call.timeout:g} s"
        except (OSError, ValueError, EOFError) as error:
            status, reason = 0, f"no answer: {str(error) or type(error).__name__}"
        else:
            if 200 <= status < 300:
                return Outcome(status, attempt)
            reason = f"the service answered {status}"
            if status < 500 and status not in _AGAIN:
                return Outcome(status, attempt, reason)
        if attempt < attempts:
            await asyncio.sleep(pause * 2 ** (attempt - 1))
    return Outcome(status, attempts, reason)


async def _attempt(call: ActivationCall, allowlist: UrlAllowlist, context: ssl.SSLContext | None) -> int:
    host = check_url(call.url, _LONGEST_LINE)
    parts = urlsplit(call.url)
    secure = parts.scheme == "https"
    port = parts.port or (443 if secure else 80)
    addresses = await _allowed_addresses(host, port, allowlist)
    tls: dict[str, Any] = {"ssl": context or ssl.create_default_context(), "server_hostname": host} if secure else {}
    reader, writer = await _connected(addresses, port, tls)
    try:
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        head = (
            f"PUT {path} HTTP/1.1\r\nHost: {parts.netloc}\r\nUser-Agent: sluice\r\nAccept: */*\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(call.body)}\r\nConnection: close\r\n\r\n"
        )
        writer.write(head.encode("ascii") + call.body)
        await writer.drain()
        return await _status(reader)
    finally:
        # not awaited: what becomes of the connection is of no interest, and the other side may be slow to say goodbye
        writer.transport.abort()


async def _connected(
    addresses: list[str], port: int, tls: dict[str, Any]
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection to the first of ``addresses`` that takes one."""
    for address in addresses[:-1]:
        try:
            return await asyncio.open_connection(address, port, limit=_LONGEST_LINE, **tls)
        except OSError:  # the next one may
            continue
    return await asyncio.open_connection(addresses[-1], port, limit=_LONGEST_LINE, **tls)


async def _allowed_addresses(host: str, port: int, allowlist: UrlAllowlist) -> list[str]:
    """The addresses of ``host`` that may be called, of which there is one at least.

    :raises BadUrl: when there is none
    """
    allowlist.check(host)
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return allowlist.choose(host, (str(one[4][0]) for one in found))


async def _status(reader: asyncio.StreamReader) -> int:
    """The status of the answer, after interim ones."""
    for _ in range(_INTERIM):
        line = await reader.readline()
        if not line:
            raise EOFError("the connection ended before the status")
        match = _status_line.fullmatch(line)
        if match is None:
            raise ValueError("that is no HTTP")
        if match[1][:1] != b"1":
            return int(match[1])
        while (await reader.readline()).strip():
            pass
    raise ValueError("nothing but interim answers")
