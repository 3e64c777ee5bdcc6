"""What filters know of keys: a ring of root secrets by identifier.

No filter ever keeps a root secret in a record, a log or an error: records name the identifier.
"""

from __future__ import annotations

import re
from typing import Final, Protocol

from sluice_core.errors import SluiceError

_KEY_ID: Final = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)


def is_key_id(text: str) -> bool:
    """Whether ``text`` can name a key: it stands in policies, records, file names and logs."""
    return _KEY_ID.fullmatch(text) is not None


class MissingKey(SluiceError):
    """The key that an object or a policy names cannot be had; it is known that it exists nowhere here, or not now."""

    status = 503


class KeyRing(Protocol):
    """Root secrets by identifier; look-ups are in memory, whoever fills the ring does the I/O."""

    def active(self) -> str:
        """Identifier of the key that new objects get.

        :raises MissingKey: when there is none
        """

    def secret(self, key_id: str) -> bytes:
        """The root secret, 32 bytes.

        :raises MissingKey: naming the identifier, never the secret
        """


class NoKeys:
    """The ring of a process that was given no key manager."""

    def active(self) -> str:
        raise MissingKey("no key manager is configured here")

    def secret(self, key_id: str) -> bytes:
        raise MissingKey(f"no key manager is configured here, so no key `{key_id}`")
