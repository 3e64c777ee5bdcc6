"""Passphrases of encrypted volumes, made from the keys in a key file of their own.

A passphrase is the HMAC of a volume's id with a key of the file, so that none is stored: a record names the key
(``VolumeRecord.secret``).  The file is not that of objects: the API must not be able to read those.
"""

from __future__ import annotations

import hashlib
import hmac
from functools import lru_cache
from typing import Final

from sluice_core.errors import Conflict, PeerError
from sluice_filters.encryption.keys.key_file import KeyFile
from sluice_filters.key_ring import KeyRing, MissingKey

_PURPOSE: Final = b"sluice volume passphrase: "


@lru_cache(maxsize=8)
def open_keys(path: str) -> KeyRing:
    """The keys in the file at ``path``, which is read when the first one is wanted.

    :raises Conflict: when there is no such file
    """
    if not path:
        raise Conflict("no volume can be encrypted here, the option `volume_key_file` names no keys")
    return KeyFile(path)


def active_key(path: str) -> str:
    """The key that new volumes are encrypted with.

    :raises PeerError: when there is none now
    """
    try:
        return open_keys(path).active()
    except MissingKey as error:
        raise PeerError(f"volumes cannot be encrypted now: {error}") from error


def passphrase(path: str, key: str, volume_id: str) -> str:
    """The passphrase of a volume.

    :param key: what its record names
    :raises PeerError: when that key is not there now
    """
    try:
        root = open_keys(path).secret(key)
    except MissingKey as error:
        raise PeerError(f"the passphrase of volume `{volume_id}` cannot be made now: {error}") from error
    return hmac.new(root, _PURPOSE + volume_id.encode(), hashlib.sha256).hexdigest()
