"""Encrypted volumes: their passphrases, and the space for their headers.

Passphrases are made from root secrets: those of a key file, or of a key manager (castellan).

A passphrase is the HMAC of a volume's id with a root secret, so passphrases are not stored: a record names the root
secret (``VolumeRecord.secret``), so a secret that is no longer active still opens its volumes.  The source of secrets
is set as for objects, by separate options: the API must not be able to read objects.

The consumer of an encrypted volume gets the whole requested size, and Cinder's volume has a GiB more for its header.
The record has the requested size before Cinder is asked for more.  So a repetition after a crash knows the size of
Cinder's volume and the size for its consumer, whatever the result of the first attempt was.  Sluice's service user
sends the request, because a policy encrypts and not the caller.  Cinder charges the quota of the volume's project
nevertheless.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import replace
from functools import lru_cache
from typing import Final

from sluice_controller.catalog.backend import Backend
from sluice_controller.catalog.nodes import wait_until
from sluice_controller.config import Config
from sluice_controller.volumes.cinder_access import service_cinder
from sluice_core.errors import CallerError, Conflict, PeerError
from sluice_filters.encryption.keys.options import open_keys
from sluice_filters.key_ring import KeyRing, MissingKey
from sluice_volumes.messages import HEADER_GIB, VolumeRecord
from sluice_volumes.outcomes import Claim

#: Seconds that Cinder may take; with the following steps of an attachment, less than the lease of an operation.
PATIENCE: Final = 20.0
_STEP: Final = 0.3
_PREFIX: Final = "volume_"
_PURPOSE: Final = b"sluice volume passphrase: "


def active_key(config: Config) -> str:
    """The key for the encryption of new volumes.

    :raises Conflict: when no keys are configured
    :raises PeerError: when the key cannot be read now
    """
    try:
        return _ring(config).active()
    except MissingKey as error:
        raise PeerError(f"volumes cannot be encrypted now: {error}") from error


def passphrase(config: Config, key: str, volume_id: str) -> str:
    """The passphrase of a volume.

    :param key: the name of the key in its record
    :raises Conflict: when no keys are configured
    :raises PeerError: when that key cannot be read now
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
    except CallerError as error:  # the caller of the API cannot change its options
        raise PeerError(str(error)) from error


def add_header_space(backend: Backend, claim: Claim) -> VolumeRecord:
    """Extend Cinder's volume by :data:`HEADER_GIB`, once.

    :param claim: of a volume that was never attached
    :returns: its record, with the requested size
    :raises Conflict: when Cinder refuses, since a quota is exceeded or the pool is full; then nothing is changed
    :raises PeerError: when Cinder is unreachable, or not done after :data:`PATIENCE`; the next attempt continues
    """
    record = claim.record
    assert record is not None
    volume = service_cinder(backend).volume(record.id)
    if not record.size:
        record = replace(record, size=volume.size)
    if not claim.replace_record(record):
        raise Conflict("another request attaches the volume now")
    if volume.size < record.size + record.header_gib:
        try:
            _extend(backend, record)
        except CallerError as error:
            claim.replace_record(replace(record, size=0))
            raise Conflict(
                f"the volume is to be encrypted, which takes {HEADER_GIB} GiB more in cinder: {error}"
            ) from error
    return record


def _extend(backend: Backend, record: VolumeRecord) -> None:
    cinder, wanted = service_cinder(backend), record.size + record.header_gib
    cinder.extend(record.id, wanted)
    volume = cinder.volume(record.id)

    def is_settled() -> bool:
        nonlocal volume
        volume = cinder.volume(record.id)
        return volume.is_settled

    if not volume.is_settled and not wait_until(backend, is_settled, PATIENCE, _STEP):
        raise PeerError(f"cinder still extends the volume to {wanted} GiB for its header, attach it again afterwards")
    if volume.has_failed or volume.size < wanted:
        raise Conflict(
            f"cinder did not extend it to {wanted} GiB, its status is `{volume.status}`; most likely its pool is full"
        )
