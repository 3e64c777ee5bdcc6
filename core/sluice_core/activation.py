"""Activation URLs: the HTTP calls that a policy makes when it sets or removes a filter.

Every filter has such a URL.  The default is the deploy call of Sluice's API.  It is never called, since agents follow
the change stream.  A registered one (``registry.Activation``) belongs to a federated service; :func:`activate` sends it
PUT with the parameters as JSON, and expects a status below 300.

* Only hosts that the operator has listed are called (``sluice_core.connections.url_allowlist``); the connection goes to
  the address that the list admits.
* Its request carries the id of the present request (``X-Openstack-Request-Id``).
* A redirect is a failure.  Only the status of an answer is read.
* An attempt ends at its time-out, which includes name resolution and TLS; after a few attempts the call fails.
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
from sluice_core.process.logs import REQUEST_ID, current_request

#: The place of the filter's keyword in a URL.
FILTER_HOLE: Final = "{filter}"
ATTEMPTS: Final = 3
#: Seconds before the second attempt; the pause doubles before each further attempt.
PAUSE: Final = 0.2
LONGEST_URL: Final = 2048
LONGEST_TIMEOUT: Final = 60.0
_LONGEST_LINE: Final = 8192
_INTERIM: Final = 5
_AGAIN: Final = frozenset({408, 425, 429})
_status_line = re.compile(rb"HTTP/1\.[01] ([1-5][0-9]{2})(?: [^\r\n]*)?\r?\n")


@dataclass(frozen=True, slots=True)
class ActivationCall:
    """One call: PUT ``body`` (JSON) to ``url``, with ``timeout`` seconds for an attempt."""

    url: str
    body: bytes = b"{}"
    timeout: float = 5.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a call: its last status (0: no answer), the attempts made, and the failure (empty: none)."""

    status: int
    attempts: int
    reason: str = ""

    @property
    def done(self) -> bool:
        """Whether the service accepted the call."""
        return not self.reason


def fill_url(template: str, target: str, keyword: str) -> str:
    """Return ``template`` with the quoted target and keyword in its holes."""
    return template.replace(HOLE, quote(target, safe="/")).replace(FILTER_HOLE, quote(keyword, safe=""))


def call_body(params: Mapping[str, Scalar], place: str = PROXY) -> bytes:
    """The body of a call, in the form of Sluice's own deploy call."""
    return json.dumps({"params": dict(params), "place": place}, separators=(",", ":"), sort_keys=True).encode()


def activation_call(
    activation: Activation, target: str, params: Mapping[str, Scalar], place: str = PROXY, undo: bool = False
) -> ActivationCall | None:
    """Return the call that sets the filter for ``target`` or removes it; None when no such call is registered."""
    template = activation.undo if undo else activation.url
    if not template:
        return None
    return ActivationCall(fill_url(template, target, activation.name), call_body(params, place), activation.timeout)


def check_url(template: str, longest: int = LONGEST_URL) -> str:
    """Return the host of ``template``; raise if it cannot be an activation URL.  Connects to nothing.

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
    """Make ``call``; failures of the service or the network and refusals by the allowlist do not raise.

    Attempts are repeated after: no connection, a time-out, an invalid answer, 5xx, 408, 425 and 429.
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
            f"Content-Type: application/json\r\nContent-Length: {len(call.body)}\r\nConnection: close\r\n"
        )
        named = f"{REQUEST_ID}: {current_request()}\r\n" if current_request() else ""
        writer.write(f"{head}{named}\r\n".encode("ascii") + call.body)
        await writer.drain()
        return await _status(reader)
    finally:
        # not awaited: the result of closing is not used, and the peer may close slowly
        writer.transport.abort()


async def _connected(
    addresses: list[str], port: int, tls: dict[str, Any]
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Return a connection to the first of ``addresses`` that accepts one."""
    for address in addresses[:-1]:
        try:
            return await asyncio.open_connection(address, port, limit=_LONGEST_LINE, **tls)
        except OSError:  # try the next address
            continue
    return await asyncio.open_connection(addresses[-1], port, limit=_LONGEST_LINE, **tls)


async def _allowed_addresses(host: str, port: int, allowlist: UrlAllowlist) -> list[str]:
    """Return the addresses of ``host`` that may be called, at least one.

    :raises BadUrl: when no address may be called
    """
    allowlist.check(host)
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return allowlist.choose(host, (str(one[4][0]) for one in found))


async def _status(reader: asyncio.StreamReader) -> int:
    """Return the status of the answer, after interim answers."""
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
