"""A Keystone client for the launcher and tests; other services are called with its tokens."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote, urlsplit

from sluice_aio.base.swift_http import SwiftHttp
from sluice_core.errors import PeerError

#: The default domain.
DOMAIN: Final = "default"
_TIMEOUT: Final = 30.0
#: Seconds for which a service may be unavailable, for example because it cannot validate a token with Keystone.
_PATIENCE: Final = 30.0
_UNAVAILABLE: Final = 503
_POLL_SECONDS: Final = 0.2


@dataclass(frozen=True, slots=True)
class Token:
    """A token that Keystone issued for a password; ``project_id`` is empty for the whole system."""

    id: str = field(repr=False)
    user_id: str
    project_id: str = ""


class KeystoneHttp:
    """Requests to the Keystone at ``url``, which ends in ``/v3``; one connection each.

    :param name: of another service with such calls, for error messages
    """

    def __init__(self, url: str, name: str = "keystone") -> None:
        parts = urlsplit(url)
        self._name = name
        self._address, self._path = parts.netloc, parts.path.rstrip("/")
        self.token = ""

    def login(self, user: str, password: str, project: str = "") -> Token:
        """A token of ``user`` in ``project``; without one, for the whole system.

        :raises PeerError: if it is refused
        """
        named = {"name": user, "domain": {"id": DOMAIN}, "password": password}
        scope: dict[str, Any] = {"system": {"all": True}}
        if project:
            scope = {"project": {"name": project, "domain": {"id": DOMAIN}}}
        identity = {"methods": ["password"], "password": {"user": named}}
        status, headers, data = self._send("POST", "/auth/tokens", {"auth": {"identity": identity, "scope": scope}})
        if status != 201:
            raise PeerError(f"keystone gives no token to `{user}` for `{project or 'the system'}`: status {status}")
        found = data["token"]
        return Token(headers["x-subject-token"], found["user"]["id"], found.get("project", {}).get("id", ""))

    def revoke(self, token: Token) -> None:
        """Revoke a token with that token."""
        status, _, _ = self._send(
            "DELETE", "/auth/tokens", None, {"X-Auth-Token": token.id, "X-Subject-Token": token.id}
        )
        if status != 204:
            raise PeerError(f"keystone does not revoke a token: status {status}")

    def s3_keys(self, token: Token) -> tuple[str, str]:
        """Create S3 keys for the user and the project of ``token``: access key and secret; :attr:`token` makes the
        call.

        :raises PeerError: if they are refused
        """
        path = f"/users/{token.user_id}/credentials/OS-EC2"
        status, _, data = self._send("POST", path, {"tenant_id": token.project_id}, {"X-Auth-Token": token.id})
        if status != 201:
            raise PeerError(f"keystone gives no keys of S3: status {status}")
        made = data["credential"]
        return str(made["access"]), str(made["secret"])

    def call(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """One call with :attr:`token`; repeated while the service is unavailable.

        :raises PeerError: if it is refused
        """
        deadline = time.monotonic() + _PATIENCE
        while True:
            status, _, data = self._send(method, path, body, {"X-Auth-Token": self.token})
            if status < 300:
                return data
            if status != _UNAVAILABLE or time.monotonic() > deadline:
                raise PeerError(f"{self._name}: {method} {path}: status {status}: {data}")
            time.sleep(_POLL_SECONDS)

    def ensure(self, kind: str, wanted: Mapping[str, Any]) -> str:
        """Return the id of the ``kind`` (``project``, ``user``, ``service``) of that name; create it if missing."""
        found = self.call("GET", f"/{kind}s?name={quote(wanted['name'])}")[f"{kind}s"]
        made = found[0] if found else self.call("POST", f"/{kind}s", {kind: wanted})[kind]
        return str(made["id"])

    def _send(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, headers: Mapping[str, str] | None = None
    ) -> tuple[int, dict[str, str], Any]:
        connection = http.client.HTTPConnection(self._address, timeout=_TIMEOUT)
        try:
            content = None if body is None else json.dumps(body).encode()
            connection.request(
                method, self._path + path, content, {"Content-Type": "application/json", **(headers or {})}
            )
            with connection.getresponse() as answer:
                raw = answer.read()
            found = {name.lower(): value for name, value in answer.getheaders()}
            return answer.status, found, _decoded(raw)
        except (OSError, http.client.HTTPException) as error:
            raise PeerError(f"{self._name}: {method} {path}: {error!r}") from error
        finally:
            connection.close()


def _decoded(raw: bytes) -> Any:
    """The decoded JSON; any other text, such as a middleware's answer, unchanged."""
    try:
        return json.loads(raw) if raw else None
    except ValueError:
        return raw.decode(errors="replace")


def swift_client(proxy_url: str, token: Token) -> SwiftHttp:
    """A client of Swift with ``token``, in the account of its project."""
    found = SwiftHttp(proxy_url)
    found.token, found.account = token.id, f"/v1/AUTH_{token.project_id}"
    return found
