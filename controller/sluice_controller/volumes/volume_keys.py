"""Passphrases of encrypted volumes, made from root secrets: those of a key file, or of a key manager (castellan).

A passphrase is the HMAC of a volume's id with a root secret, so that none is stored: a record names the root secret
(``VolumeRecord.secret``), so one that is no longer active still opens its volumes.  Where secrets come from is said as
it is for objects, by options of our own: the API must not be able to read objects.
"""

from __future__ import annotations

import hashlib
import hmac
from functools import lru_cache
from typing import Final

from sluice_controller.config import Config
from sluice_core.errors import CallerError, Conflict, PeerError
from sluice_filters.encryption.keys.options import open_keys
from sluice_filters.key_ring import KeyRing, MissingKey

_PREFIX: Final = "volume_"
_PURPOSE: Final = b"sluice volume passphrase: "


def active_key(config: Config) -> str:
    """The key that new volumes are encrypted with.

    :raises Conflict: when the options name no keys
    :raises PeerError: when there is none now
    """
    try:
        return _ring(config).active()
    except MissingKey as error:
        raise PeerError(f"volumes cannot be encrypted now: {error}") from error


def passphrase(config: Config, key: str, volume_id: str) -> str:
    """The passphrase of a volume.

    :param key: what its record names
    :raises Conflict: when the options name no keys
    :raises PeerError: when that key is not there now
    """
    try:
        root = _ring(config).secret(key)
    except MissingKey as error:
        raise PeerError(f"the passphrase of volume `{volume_id}` cannot be made now: {error}") from error
    return hmac.new(root, _PURPOSE + volume_id.encode(), hashlib.sha256).hexdigest()


def _ring(config: Config) -> KeyRing:
    if not config.volume_key_file and not config.volume_key_manager_conf:
        raise Conflict(
            "no volume can be encrypted here, neither option `volume_key_file` nor `volume_key_manager_conf` names keys"
        )
    return _open(config.volume_key_file, config.volume_key_manager_conf)


@lru_cache(maxsize=8)
def _open(key_file: str, key_manager_conf: str) -> KeyRing:
    try:
        return open_keys({f"{_PREFIX}key_file": key_file, f"{_PREFIX}key_manager_conf": key_manager_conf}, _PREFIX)
    except CallerError as error:  # the caller of the API can do nothing about its options
        raise PeerError(str(error)) from error
