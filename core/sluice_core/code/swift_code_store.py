"""Uploaded code in Swift: objects named by their SHA-256.

The API stores code and agents fetch it, both through an ordinary account.  So the code is as safe as any other data and
needs no store of its own.  Calls block on the network: asyncio hands them to a thread.  Every fault of the network, of
Swift or of Keystone is a :class:`PeerError`.
"""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self
from urllib.parse import quote, urlsplit

from sluice_core.errors import NotFound, PeerError
from sluice_core.options import Option, OptionError

_CHUNK: Final = 1 << 16

#: Options of the processes that use the store; an empty ``code_auth_url`` means none.
OPTIONS: Final = (
    Option(
        "code_auth_url",
        "",
        "where tokens are given for the code of uploaded filters: Swift's v1, or Keystone's /v3; empty: none",
    ),
    Option("code_user", "", "Swift user that owns the code; of Keystone's: project:user, or domain id/project:user"),
    Option("code_key_file", "", "file with that user's key; mode 0600"),
    Option("code_container", "sluice-code", "container of the code"),
)


@dataclass(frozen=True, slots=True)
class SwiftCodeStoreSettings:
    """Account, login and container of the code."""

    auth_url: str
    user: str
    key: str
    container: str

    @classmethod
    def from_options(cls, values: Mapping[str, Any]) -> Self | None:
        """The settings in the values of :data:`OPTIONS`; None when none is configured.

        :raises OptionError: when the key cannot be read
        """
        if not values["code_auth_url"]:
            return None
        try:
            key = Path(values["code_key_file"]).read_text(encoding="utf-8").strip()
        except OSError as error:
            raise OptionError(
                f"option `code_key_file`: cannot read `{values['code_key_file']}`: {error.strerror}"
            ) from error
        return cls(values["code_auth_url"], values["code_user"], key, values["code_container"])


class SwiftCodeStore:
    """The store of code in Swift; threads may share it.  The constructor does not connect."""

    def __init__(self, settings: SwiftCodeStoreSettings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._token = ""
        self._storage = ""

    def put(self, sha256: str, code: Iterable[bytes], size: int) -> None:
        """Keep ``size`` bytes of code under their digest; Swift has all of it, or nothing."""
        with self._ask("PUT", f"/{self._settings.container}") as answer:
            if answer.status not in (201, 202):
                raise PeerError(f"swift does not make the container for code: {answer.status}")
        headers = {"Content-Length": str(size), "Content-Type": "application/octet-stream"}
        with self._ask("PUT", self._path(sha256), code, headers) as answer:
            if answer.status != 201:
                raise PeerError(f"swift does not take the code: {answer.status}")

    def get(self, sha256: str) -> SwiftResponse:
        """The code with this digest, in pieces: whoever takes them verifies them, and closes what is returned.

        :raises NotFound: when there is none
        """
        answer = self._ask("GET", self._path(sha256))
        if answer.status == 200:
            return answer
        with answer:
            if answer.status == 404:
                raise NotFound(f"there is no code `{sha256}` in swift")
            raise PeerError(f"swift does not give the code `{sha256}`: {answer.status}")

    def _path(self, sha256: str) -> str:
        return f"/{quote(self._settings.container)}/{quote(sha256)}"

    def _ask(
        self, method: str, path: str, body: Iterable[bytes] | None = None, headers: dict[str, str] | None = None
    ) -> SwiftResponse:
        """One request; a token that is no longer good is renewed, before a body is sent in vain."""
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
        keystone = self._settings.auth_url.rstrip("/").endswith("/v3")
        self._token, self._storage = self._of_keystone() if keystone else self._of_swift()
        return self._token, self._storage

    def _of_keystone(self) -> tuple[str, str]:
        body = json.dumps(_password_login(self._settings.user, self._settings.key)).encode()
        headers = {"Content-Type": "application/json", "Content-Length": str(len(body))}
        with SwiftResponse("POST", f"{self._settings.auth_url.rstrip('/')}/auth/tokens", headers, (body,)) as answer:
            token, raw = answer.headers.get("X-Subject-Token"), b"".join(answer)
            if answer.status != 201 or not token:
                raise PeerError(f"keystone gives `{self._settings.user}` no token: {answer.status}")
        return token, _storage_url(raw)

    def _of_swift(self) -> tuple[str, str]:
        given = {"X-Auth-User": self._settings.user, "X-Auth-Key": self._settings.key}
        with SwiftResponse("GET", self._settings.auth_url, given) as answer:
            token, storage = answer.headers.get("X-Auth-Token"), answer.headers.get("X-Storage-Url")
            if answer.status != 200 or not token or not storage:
                raise PeerError(f"swift gives `{self._settings.user}` no token: {answer.status}")
        return token, storage


def _password_login(user: str, key: str) -> dict[str, Any]:
    """What Keystone takes for ``[domain id/]project:user`` and a password."""
    scope, _, name = user.rpartition(":")
    domain, _, project = scope.rpartition("/")
    of = {"domain": {"id": domain or "default"}}
    identity = {"methods": ["password"], "password": {"user": {"name": name, "password": key, **of}}}
    return {"auth": {"identity": identity, "scope": {"project": {"name": project, **of}}}}


def _storage_url(raw: bytes) -> str:
    """Where Swift is, by the catalogue that comes with a token; rather on the inside.

    :raises PeerError: when it names no Swift
    """
    try:
        services = json.loads(raw)["token"]["catalog"]
        found = {
            str(one["interface"]): str(one["url"])
            for service in services
            if service["type"] == "object-store"
            for one in service["endpoints"]
        }
        return found["internal"] if "internal" in found else found["public"]
    except (ValueError, KeyError, TypeError) as error:
        raise PeerError("keystone's catalogue names no `object-store` to our user") from error


class SwiftResponse:
    """One request on a connection of its own, and its answer; to be closed."""

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
        self.status = self._answer.status
        self.headers = self._answer.headers

    def __iter__(self) -> Iterator[bytes]:
        """The body, in pieces.

        :raises PeerError: when it breaks off
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
