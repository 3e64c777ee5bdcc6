"""Passwords out of a key manager, through castellan."""

from __future__ import annotations

from typing import Any, ClassVar

from sluice_filters.encryption.keys.castellan import CastellanKeys
from sluice_filters.encryption.keys.ring import KeySourceError, check_key_id


class CastellanPasswords(CastellanKeys):
    """The passphrases that a castellan configuration names as keys."""

    expected: ClassVar[str] = "a passphrase"
    has_active: ClassVar[bool] = False

    def decode(self, key_id: str, found: Any) -> bytes:
        check_key_id(key_id)
        encoded = found.get_encoded() if found is not None else None
        if not isinstance(encoded, str | bytes) or not encoded:
            raise KeySourceError(f"secret `{key_id}` is no passphrase")
        return encoded.encode() if isinstance(encoded, str) else encoded
