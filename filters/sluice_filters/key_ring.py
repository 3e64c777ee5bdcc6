"""The filters' interface to keys: a ring of root secrets by identifier.

Filters never put a root secret into a record, a log or an error: records name the identifier.
"""

from __future__ import annotations

import re
from typing import Final, Protocol

from sluice_core.errors import SluiceError

_KEY_ID: Final = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)


def is_key_id(text: str) -> bool:
    """Whether ``text`` can name a key: it is used in policies, records, file names and logs."""
    return _KEY_ID.fullmatch(text) is not None


class MissingKey(SluiceError):
    """The key that an object or a policy names is not available here, permanently or at present."""

    status = 503


class KeyRing(Protocol):
    """Root secrets by identifier; look-ups are in memory, the source of the ring does the I/O."""

    def active(self) -> str:
        """Return the identifier of the key for new objects.

        :raises MissingKey: when there is no active key
        """

    def secret(self, key_id: str) -> bytes:
        """Return the root secret, 32 bytes.

        :raises MissingKey: naming the identifier, never the secret
        """


class NoKeys:
    """The ring of a process without a key manager."""

    def active(self) -> str:
        raise MissingKey("no key manager is configured here")

    def secret(self, key_id: str) -> bytes:
        raise MissingKey(f"no key manager is configured here, so no key `{key_id}`")
