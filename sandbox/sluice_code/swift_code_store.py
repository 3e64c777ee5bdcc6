"""Uploaded code in Swift: objects named by their SHA-256.

The API stores code and agents fetch it, both through an ordinary account.  So the code is stored as safely as other
data, without a separate store.  Calls block on the network: asyncio runs them in a thread.  A fault of the network, of
Swift or of Keystone raises a :class:`PeerError`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self
from urllib.parse import quote

from sluice_core.connections.swift_account import SwiftAccount, SwiftResponse
from sluice_core.errors import NotFound, PeerError
from sluice_core.options import Option, OptionError

#: Options of the processes that use the store; an empty ``code_auth_url`` disables it.
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
        """Return the settings in the values of :data:`OPTIONS`; None when none is configured.

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
        self._account = SwiftAccount(settings.auth_url, settings.user, lambda: settings.key)

    def put(self, sha256: str, code: Iterable[bytes], size: int) -> None:
        """Store ``size`` bytes of code under their digest, as a whole or not at all."""
        with self._account.request("PUT", f"/{self._settings.container}") as answer:
            if answer.status not in (201, 202):
                raise PeerError(f"swift does not make the container for code: {answer.status}")
        headers = {"Content-Length": str(size), "Content-Type": "application/octet-stream"}
        with self._account.request("PUT", self._path(sha256), code, headers) as answer:
            if answer.status != 201:
                raise PeerError(f"swift does not take the code: {answer.status}")

    def get(self, sha256: str) -> SwiftResponse:
        """Return the code with this digest, in pieces: the caller verifies them, and closes the response.

        :raises NotFound: when Swift does not have it
        """
        answer = self._account.request("GET", self._path(sha256))
        if answer.status == 200:
            return answer
        with answer:
            if answer.status == 404:
                raise NotFound(f"there is no code `{sha256}` in swift")
            raise PeerError(f"swift does not give the code `{sha256}`: {answer.status}")

    def _path(self, sha256: str) -> str:
        return f"/{quote(self._settings.container)}/{quote(sha256)}"
