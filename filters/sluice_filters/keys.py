"""What filters know of keys: a ring of root secrets by identifier.

No filter ever keeps a root secret in a record, a log or an error: records name the identifier.
"""

from __future__ import annotations

from typing import Protocol

from sluice_core.errors import SluiceError


class MissingKey(SluiceError):
    """The key that an object or a policy names cannot be had; it is known that it exists nowhere here, or not now."""


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
