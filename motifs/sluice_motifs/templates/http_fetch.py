"""Reads a URL that a user wrote, over HTTP, without reaching hosts outside the allow-list.

* The addresses of a host are looked up once, those that the allow-list refuses are removed, and the connection goes to
  one of the others: a name that has another address a moment later (DNS rebinding) has no effect.
* A redirect is another URL, checked as the first one; one from HTTPS to HTTP is refused.
* No cookies, no credentials, no proxy of the environment; bytes as they are sent, whatever their encoding.
* A request ends with an error after ``IDLE`` seconds without a byte, or after the caller's limit, headers
  included; meanwhile ``check`` is called, which renews a lease.

httpcore is used without httpx, which has no public way to choose the address of a connection.  It imports trio if that
is installed, which fails in a process whose sockets are eventlet's, as those of Swift are; so that import is prevented.
"""

from __future__ import annotations

import socket
import ssl
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, Final
from urllib.parse import urljoin, urlsplit

from sluice_core.connections.url_allowlist import BadUrl, UrlAllowlist, http_host
from sluice_motifs.api import ExpansionError

_trio = sys.modules.get("trio")
sys.modules["trio"] = None  # type: ignore[assignment]  # an import of it is an ImportError now
try:
    import httpcore
finally:
    del sys.modules["trio"]
    if _trio is not None:
        sys.modules["trio"] = _trio

#: Seconds between two bytes, and for a connection.
IDLE: Final = 30.0
CONNECT: Final = 10.0
MOST_REDIRECTS: Final = 5
#: Seconds between two calls of ``check`` while no byte arrives.
_CHECK_INTERVAL: Final = 1.0
_HEADERS: Final = (("User-Agent", "sluice"), ("Accept", "*/*"), ("Accept-Encoding", "identity"))
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Limits of a request in seconds.

    :param total: for the whole response
    :param idle: between two bytes
    """

    total: float
    idle: float = IDLE


@dataclass(frozen=True, slots=True)
class Answer:
    """A response of status 200; ``size`` is its Content-Length, None without one."""

    place: str
    size: int | None
    pieces: Iterator[bytes]


@contextmanager
def open_url(
    method: str, url: str, hosts: UrlAllowlist, timeouts: Timeouts, check: Callable[[], None] = lambda: None
) -> Iterator[Answer]:
    """Context with the response to a request for ``url``, or for the target of its redirects; closed at its end.

    :param check: called every few seconds during the request; its errors end the request
    :raises ExpansionError: when the URL is not allowed, does not answer, or not with 200; also while its pieces are
        read
    """
    place = _shown_url(url)
    try:
        backend = _AllowedAddresses(hosts, timeouts, check)
        with _follow_redirects(method, url, hosts, backend) as (place, response):
            if response.status != 200:
                raise ExpansionError(f"`{place}` answered {response.status}")
            yield Answer(place, _size(response), response.iter_stream())
    except BadUrl as error:
        raise ExpansionError(f"`{place}` is not read: {error}") from error
    except httpcore.TimeoutException as error:
        raise ExpansionError(f"`{place}` gave no byte for too long") from error
    except (httpcore.NetworkError, httpcore.ProtocolError, OSError, UnicodeError) as error:
        raise ExpansionError(f"`{place}` cannot be read: {str(error) or type(error).__name__}") from error


@contextmanager
def _follow_redirects(
    method: str, url: str, hosts: UrlAllowlist, backend: httpcore.NetworkBackend
) -> Iterator[tuple[str, httpcore.Response]]:
    """Return the first response that is no redirect, and its URL."""
    for _ in range(MOST_REDIRECTS + 1):
        hosts.check(http_host(url))
        headers = [("Host", urlsplit(url).netloc), *_HEADERS]
        pool = httpcore.ConnectionPool(_tls(), network_backend=backend, max_keepalive_connections=0)
        with pool, pool.stream(method, url, headers=headers) as response:
            location = _header(response, b"location")
            if response.status not in _REDIRECTS or not location:
                yield _shown_url(url), response
                return
        url = _redirected(url, location)
    raise BadUrl(f"it redirects more than {MOST_REDIRECTS} times")


class _AllowedAddresses(httpcore.NetworkBackend):
    """Connects to allowed addresses only."""

    def __init__(self, hosts: UrlAllowlist, timeouts: Timeouts, check: Callable[[], None]) -> None:
        self._hosts = hosts
        self._connects = httpcore.SyncBackend()
        self._idle = timeouts.idle
        self._end = time.monotonic() + timeouts.total
        self._check = check

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Any = None,
    ) -> httpcore.NetworkStream:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        failure: Exception = BadUrl(f"host `{host}` has no address")
        for address in self._hosts.choose(host, (str(one[4][0]) for one in found)):
            self._check()
            try:
                stream = self._connects.connect_tcp(address, port, self._limit(CONNECT), local_address, socket_options)
            except (httpcore.NetworkError, httpcore.TimeoutException) as error:  # the next address may work
                failure = error
            else:
                return _Watched(stream, self._limit, self._idle, self._check)
        raise failure

    def _limit(self, seconds: float) -> float:
        """The given seconds, or the remaining ones."""
        left = self._end - time.monotonic()
        if left <= 0:
            raise httpcore.ReadTimeout
        return min(seconds, left)


class _Watched(httpcore.NetworkStream):
    """A connection with a limit of time, however its bytes are spread."""

    def __init__(
        self,
        stream: httpcore.NetworkStream,
        limit: Callable[[float], float],
        idle: float,
        check: Callable[[], None],
    ) -> None:
        self._stream = stream
        self._limit = limit
        self._idle = idle
        self._check = check

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        end = time.monotonic() + self._idle
        while True:
            self._check()
            limit = self._limit(min(_CHECK_INTERVAL, max(end - time.monotonic(), 0.001)))
            try:
                return self._stream.read(max_bytes, limit)
            except httpcore.ReadTimeout:
                if time.monotonic() >= end:
                    raise

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, self._limit(self._idle))

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        stream = self._stream.start_tls(ssl_context, server_hostname, self._limit(CONNECT))
        return _Watched(stream, self._limit, self._idle, self._check)

    def close(self) -> None:
        self._stream.close()

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


def _redirected(url: str, location: str) -> str:
    """
    :raises BadUrl: for a redirect from HTTPS to HTTP
    """
    target = urljoin(url, location)
    if urlsplit(url).scheme == "https" and urlsplit(target).scheme != "https":
        raise BadUrl(f"it redirects to `{_shown_url(target)}` without encryption")
    return target


def _size(response: httpcore.Response) -> int | None:
    text = _header(response, b"content-length")
    return int(text) if text.isdecimal() else None


def _header(response: httpcore.Response, name: bytes) -> str:
    return next((value.decode("latin-1") for key, value in response.headers if key.lower() == name), "")


def _shown_url(url: str) -> str:
    """A URL as errors name it: without the part behind `?`, maybe a signature, and before `@`, maybe a password."""
    before, at, after = url.partition("?")[0].rpartition("@")
    return f"{before.partition('//')[0]}//{after}" if at else after


@cache
def _tls() -> ssl.SSLContext:
    return ssl.create_default_context()
