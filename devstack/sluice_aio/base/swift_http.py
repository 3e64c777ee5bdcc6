"""A Swift client for the demo and the tests: one kept connection per thread."""

from __future__ import annotations

import http.client
import json
import select
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self
from urllib.parse import quote, urlsplit

from sluice_core.errors import PeerError


@dataclass(frozen=True, slots=True)
class SwiftResponse:
    """A whole response; header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class _Connection(http.client.HTTPConnection):
    """A connection that closes when it is garbage-collected: a thread that ends closes its connection."""

    def __del__(self) -> None:
        self.close()

    def ended(self) -> bool:
        """Whether the other side has closed the connection, or sent unexpected bytes."""
        if self.sock is None:
            return False
        poll = select.poll()
        poll.register(self.sock, select.POLLIN)
        return bool(poll.poll(0))


class SwiftHttp:
    """Requests below one account; threads may share it."""

    def __init__(self, proxy_url: str, timeout: float = 60.0) -> None:
        self.address = urlsplit(proxy_url).netloc
        self._timeout = timeout
        self._local = threading.local()
        self.token = ""
        self.account = ""

    def login(self, user: str, key: str) -> Self:
        """Get a token from tempauth.

        :raises PeerError: if it is refused
        """
        answer = self.raw("GET", "/auth/v1.0", {"X-Auth-User": user, "X-Auth-Key": key})
        if answer.status != 200:
            raise PeerError(f"no token for `{user}`: status {answer.status}")
        self.token = answer.headers["x-auth-token"]
        self.account = urlsplit(answer.headers["x-storage-url"]).path
        return self

    def request(self, method: str, path: str = "", body: bytes = b"", **headers: str) -> SwiftResponse:
        """One request; ``path`` is ``container/object``, ``if_match`` becomes ``If-Match``."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        target = f"{self.account}/{quote(path)}" if path else self.account
        return self.raw(method, target, {"X-Auth-Token": self.token, **named}, body)

    def listing(self, container: str) -> list[dict[str, Any]]:
        """Return all rows of a container's listing.

        :raises PeerError: if it is refused
        """
        all_rows: list[dict[str, Any]] = []
        while True:
            marker = quote(all_rows[-1]["name"], safe="") if all_rows else ""
            target = f"{self.account}/{quote(container)}?format=json&marker={marker}"
            answer = self.raw("GET", target, {"X-Auth-Token": self.token})
            if answer.status != 200:
                raise PeerError(f"no listing of `{container}`: status {answer.status}")
            rows = json.loads(answer.body)
            if not rows:
                return all_rows
            all_rows += rows

    def raw(self, method: str, target: str, headers: Mapping[str, str], body: bytes = b"") -> SwiftResponse:
        """Send one request to exactly ``target``.

        :raises PeerError: if the proxy is unreachable
        """
        connection = self._connection()
        try:
            connection.request(method, target, body=body or None, headers=self._with_length(method, headers, body))
            with connection.getresponse() as response:
                content = response.read()
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise PeerError(f"{method} {target}: {error!r}") from error
        return SwiftResponse(response.status, {name.lower(): value for name, value in response.getheaders()}, content)

    def close(self) -> None:
        """Close this thread's connection."""
        connection = getattr(self._local, "connection", None)
        if connection is not None:
            connection.close()
            self._local.connection = None

    def _connection(self) -> _Connection:
        connection: _Connection | None = getattr(self._local, "connection", None)
        if connection is not None and connection.ended():
            self.close()  # a proxy closes connections without traffic after a minute
            connection = None
        if connection is None:
            connection = _Connection(self.address, timeout=self._timeout)
            self._local.connection = connection
        return connection

    @staticmethod
    def _with_length(method: str, headers: Mapping[str, str], body: bytes) -> dict[str, str]:
        named = dict(headers)
        if method in ("PUT", "POST") and not body:
            named["Content-Length"] = "0"
        return named
