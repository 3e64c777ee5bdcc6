"""The API's only access to Swift's proxy: the location of objects, storage policies, and new containers.

* The location of an object's replicas or fragments comes from Swift's own ``list_endpoints`` middleware, which uses
  the rings of the proxies; the controller needs no ring file and no Swift.
* With Keystone, containers are created with the token of the caller; with the static token of a development machine,
  by the user of ``swift_user``.  So the API holds no secret that gives access to every account.

Every error of a request is a :class:`PeerError`; no message contains a header, and so none contains a token.

python-swiftclient is not used: it does not support ``list_endpoints``, follows redirects with the token and reads
answers of any size.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from email.message import Message
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlsplit

from sluice_controller.config import KEYSTONE, Config
from sluice_core.connections.swift_account import SwiftResponse
from sluice_core.errors import CallerError, Conflict, Forbidden, PeerError

_TIMEOUT: Final = 10.0
_LARGEST_ANSWER: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class _Answer:
    """A complete answer of Swift."""

    status: int
    headers: Message
    body: bytes


@dataclass(frozen=True, slots=True)
class Location:
    """One location of an object; for an erasure-coded one ``number`` is that of the fragment."""

    number: int
    address: str
    port: int
    device: str
    url: str


@dataclass(frozen=True, slots=True)
class Locality:
    """The locations of an object in the rings."""

    policy_index: int
    partition: int
    locations: tuple[Location, ...]


class SwiftClient:
    """One Swift; does not connect when it is created."""

    def __init__(self, config: Config) -> None:
        self._config = config

    def locality(self, account: str, container: str, obj: str) -> Locality:
        """The devices for an object's replicas or fragments, whether the object exists or not.

        :raises CallerError: when the name is not valid in Swift
        """
        if not (account + container).isascii():
            # list_endpoints then looks up the container under another name: it fails, or returns a wrong policy.
            raise CallerError(f"`{account}/{container}` cannot be located, swift's `list_endpoints` needs ASCII names")
        path = "/endpoints/v2/" + "/".join((quote(account, safe=""), quote(container, safe=""), quote(obj)))
        answer = self._ask("GET", path)
        if answer.status == 400:
            raise CallerError(f"swift cannot have an object `{account}/{container}/{obj}`")
        if answer.status != 200:
            raise PeerError(f"swift answers {answer.status}, expected the middleware `list_endpoints` in its pipeline")
        return _locality(answer.body)

    def storage_policies(self) -> list[str]:
        """Names and aliases of the storage policies that containers can be created on."""
        answer = self._ask("GET", "/info")
        if answer.status != 200:
            raise PeerError(f"swift does not show its storage policies: {answer.status}")
        policies = _json(answer.body).get("swift", {}).get("policies", ())
        names = (name.strip() for one in policies for name in (one["name"], *one.get("aliases", "").split(",")))
        return list(dict.fromkeys(filter(None, names)))

    def create_container(self, account: str, container: str, policy: str, token: str) -> bool:
        """Create a container on a storage policy; return False if it existed already, on the same one.

        :param token: the caller's token, so that Swift decides
        :raises Conflict: when it exists on another one
        """
        storage, good = self._storage_of(account, token)
        headers = {"X-Auth-Token": good, "X-Storage-Policy": policy, "Content-Length": "0"}
        answer = self._ask("PUT", f"{storage}/{quote(container, safe='')}", headers)
        if answer.status in (201, 202):
            return answer.status == 201
        if answer.status == 409:
            raise Conflict(f"container `{account}/{container}` exists already, on another storage policy")
        if answer.status == 400:
            raise CallerError(f"swift refuses container `{account}/{container}` on storage policy `{policy}`")
        if answer.status in (401, 403):
            raise Forbidden(f"swift does not let you create containers in account `{account}`")
        raise PeerError(f"swift does not create container `{account}/{container}`: {answer.status}")

    def _storage_of(self, account: str, token: str) -> tuple[str, str]:
        """Path of an account, and a token for it."""
        path = f"/v1/{quote(account, safe='')}"
        if self._config.auth == KEYSTONE:
            return path, token
        if not self._config.swift_user:
            raise PeerError("this API has no user of Swift, set its option `swift_user` and the following ones")
        given = {"X-Auth-User": self._config.swift_user, "X-Auth-Key": self._key()}
        answer = self._ask("GET", "/auth/v1.0", given)
        if answer.status != 200 or "x-auth-token" not in answer.headers:
            raise PeerError(f"swift gives `{self._config.swift_user}` no token: {answer.status}")
        return path, answer.headers["x-auth-token"]

    def _key(self) -> str:
        try:
            return Path(self._config.swift_key_file).read_text(encoding="utf-8").strip()
        except OSError as error:
            raise PeerError(f"option `swift_key_file` cannot be read: {error.strerror}") from error

    def _ask(self, method: str, path: str, headers: Mapping[str, str] | None = None) -> _Answer:
        if not self._config.swift_url:
            raise PeerError("this API has no Swift, set its option `swift_url`")
        url = self._config.swift_url.rstrip("/") + path
        body = b""
        with SwiftResponse(method, url, dict(headers or {}), timeout=_TIMEOUT) as answer:
            for piece in answer:
                body += piece
                if len(body) > _LARGEST_ANSWER:
                    raise PeerError(f"swift at `{urlsplit(url).netloc}` answers more than {_LARGEST_ANSWER} bytes")
        return _Answer(answer.status, answer.headers, body)


def _json(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError as error:
        raise PeerError("the answer of swift is not JSON") from error


def _locality(body: bytes) -> Locality:
    document = _json(body)
    try:
        parts = [(url, urlsplit(url)) for url in document["endpoints"]]
        # the path is /device/partition/account/container/object
        words = [split.path.split("/", 3) for _, split in parts]
        locations = tuple(
            Location(number, split.hostname or "", split.port or 80, word[1], url)
            for number, ((url, split), word) in enumerate(zip(parts, words, strict=True))
        )
        index = int(document.get("headers", {}).get("X-Backend-Storage-Policy-Index", 0))
        return Locality(index, int(words[0][2]) if words else 0, locations)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise PeerError("the endpoints in the answer of swift have an unknown form") from error
