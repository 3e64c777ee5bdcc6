"""A Swift account, as clients use it: login at Swift's own v1 or Keystone's v3, requests, answers in pieces.

Calls block on the network.  A fault of the network, of Swift or of Keystone raises :class:`PeerError`, and no error
holds a key or a token.
"""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, Self
from urllib.parse import urlsplit

from sluice_core.errors import PeerError

_CHUNK: Final = 1 << 16


class SwiftAccount:
    """One account and its user; threads may share it.  The constructor does not connect.

    :param auth_url: where tokens are issued: Swift's v1, or Keystone's ``/v3``
    :param user: Swift's user; for Keystone ``project:user``, or ``domain id/project:user``
    :param key: returns the user's key or password at each login; raises ``SluiceError`` when it cannot
    """

    def __init__(self, auth_url: str, user: str, key: Callable[[], str]) -> None:
        self._auth_url = auth_url
        self._user = user
        self._key = key
        self._lock = threading.Lock()
        self._token = ""
        self._storage = ""

    def request(
        self, method: str, path: str, body: Iterable[bytes] | None = None, headers: dict[str, str] | None = None
    ) -> SwiftResponse:
        """Send one request; an expired token is renewed before the body is sent.

        :param path: below the account, quoted
        """
        with self._lock:
            token, storage = (self._token, self._storage) if self._token and body is None else self._log_in()
        answer = SwiftResponse(method, storage + path, {"X-Auth-Token": token, **(headers or {})}, body)
        if answer.status != 401 or body is not None:
            return answer
        answer.close()
        with self._lock:
            token, storage = self._log_in()
        return SwiftResponse(method, storage + path, {"X-Auth-Token": token, **(headers or {})})

    def _log_in(self) -> tuple[str, str]:
        keystone = self._auth_url.rstrip("/").endswith("/v3")
        self._token, self._storage = self._of_keystone() if keystone else self._of_swift()
        return self._token, self._storage

    def _of_keystone(self) -> tuple[str, str]:
        body = json.dumps(password_login(self._user, self._key())).encode()
        headers = {"Content-Type": "application/json", "Content-Length": str(len(body))}
        with SwiftResponse("POST", f"{self._auth_url.rstrip('/')}/auth/tokens", headers, (body,)) as answer:
            token, raw = answer.headers.get("X-Subject-Token"), b"".join(answer)
            if answer.status != 201 or not token:
                raise PeerError(f"keystone gives `{self._user}` no token: {answer.status}")
        return token, storage_url(raw)

    def _of_swift(self) -> tuple[str, str]:
        given = {"X-Auth-User": self._user, "X-Auth-Key": self._key()}
        with SwiftResponse("GET", self._auth_url, given) as answer:
            token, storage = answer.headers.get("X-Auth-Token"), answer.headers.get("X-Storage-Url")
            if answer.status != 200 or not token or not storage:
                raise PeerError(f"swift gives `{self._user}` no token: {answer.status}")
        return token, storage


def password_login(user: str, key: str) -> dict[str, Any]:
    """The request body of a Keystone login for ``[domain id/]project:user`` and a password."""
    scope, _, name = user.rpartition(":")
    domain, _, project = scope.rpartition("/")
    of = {"domain": {"id": domain or "default"}}
    identity = {"methods": ["password"], "password": {"user": {"name": name, "password": key, **of}}}
    return {"auth": {"identity": identity, "scope": {"project": {"name": project, **of}}}}


def storage_url(raw: bytes) -> str:
    """The URL of Swift in the catalogue of a token; the internal endpoint is preferred.

    :raises PeerError: when the catalogue has no Swift
    """
    try:
        services = json.loads(raw)["token"]["catalog"]
        urls = {
            str(endpoint["interface"]): str(endpoint["url"])
            for service in services
            if service["type"] == "object-store"
            for endpoint in service["endpoints"]
        }
        return urls["internal"] if "internal" in urls else urls["public"]
    except (ValueError, KeyError, TypeError) as error:
        raise PeerError("keystone's catalogue names no `object-store` to our user") from error


class SwiftResponse:
    """One request on its own connection, and its answer; the caller closes it."""

    def __init__(
        self, method: str, url: str, headers: dict[str, str], body: Iterable[bytes] | None = None, timeout: float = 20.0
    ) -> None:
        parts = urlsplit(url)
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        self._place = parts.netloc
        self._connection = kind(parts.netloc, timeout=timeout)
        try:
            self._connection.request(method, parts.path, body=body, headers=headers)
            self._answer = self._connection.getresponse()
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()
            raise PeerError(f"swift at `{self._place}`: {error!r}") from error
        except BaseException:  # an error of the body's iterator: a partial body must not look complete
            self._connection.close()
            raise
        self.status = self._answer.status
        self.headers = self._answer.headers

    def __iter__(self) -> Iterator[bytes]:
        """The body, in pieces.

        :raises PeerError: when the body ends early
        """
        try:
            while piece := self._answer.read(_CHUNK):
                yield piece
        except (OSError, http.client.HTTPException) as error:
            raise PeerError(f"swift at `{self._place}` broke off: {error!r}") from error

    def close(self) -> None:
        """Close the connection."""
        self._answer.close()
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
