"""How one object is sealed: its keys, its segments, its record (docs/reference/format-encryption.md).

Theory of operation.  One object has keys of its own: HKDF-SHA256 of the root secret, salted with 32
bytes that are drawn for each encoder, gives the AES-256-GCM key, a key for the record's MAC and the
head of the nonces.  So no nonce is used twice under one key, whatever is rewritten or replicated.  Each segment is
sealed separately with the nonce *head ‖ number of the segment ‖ whether it
is the last* (the STREAM construction): a segment that is changed, swapped, dropped, doubled or taken
from another object does not open, nor does a stream that ends too early.  The MAC binds the sizes in the record to the
key, so a manipulated record is refused before a byte is read, and a range of an object needs its own segments only.

Errors name only the identifier of a key.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import os
import struct
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from sluice_filters.api import CorruptData, FilterError, Record
from sluice_filters.encryption.segments import LARGEST_SEGMENT, SMALLEST_SEGMENT, Buffer, SegmentEncoder, SegmentLayout
from sluice_filters.key_ring import KeyRing, MissingKey, is_key_id
from sluice_filters.stream import record_number

#: Version of the stored format; a decoder reads all versions up to its own.
FORMAT: Final = 1
TAG_SIZE: Final = 16
SALT_SIZE: Final = 32

_NAME: Final = "encryption"
_CHECK_SIZE: Final = 8
_MAC_SIZE: Final = 16
_HEAD_SIZE: Final = 7
_NONCE: Final = struct.Struct(f">{_HEAD_SIZE}sIB")
_LAST_NUMBER: Final = (1 << 32) - 1
_INFO: Final = b"sluice encryption 1 AES-256-GCM HKDF-SHA256 STREAM"
_CHECK_INFO: Final = b"sluice encryption 1 key check"


def _expand(secret: bytes, salt: bytes | None, info: bytes, length: int) -> bytes:
    return HKDF(algorithm=SHA256(), length=length, salt=salt, info=info).derive(secret)


def derive_key_check(secret: bytes) -> bytes:
    """Return eight bytes that distinguish two root secrets of the same name and reveal neither."""
    return _expand(secret, None, _CHECK_INFO, _CHECK_SIZE)


class ObjectKeys:
    """The keys of one object."""

    __slots__ = ("_cipher", "_head", "_mac")

    def __init__(self, secret: bytes, salt: bytes) -> None:
        material = _expand(secret, salt, _INFO, 32 + 32 + _HEAD_SIZE)
        self._cipher = AESGCM(material[:32])
        self._mac = material[32:64]
        self._head = material[64:]

    def seal(self, number: int, last: bool, plain: Buffer) -> bytes:
        """Return the stored form of segment ``number``.

        :raises FilterError: above the range of a 32-bit counter (256 TiB)
        """
        if number > _LAST_NUMBER:
            raise FilterError("object of more segments than a key may seal")
        return self._cipher.encrypt(_NONCE.pack(self._head, number, last), plain, None)

    def open(self, number: int, last: bool, stored: Buffer) -> bytes:
        """Return the plain bytes of segment ``number``.

        :raises CorruptData: when they are not exactly the bytes that were sealed as this segment
        """
        try:
            return self._cipher.decrypt(_NONCE.pack(self._head, number, last), stored, None)
        except InvalidTag:
            raise CorruptData(f"segment {number} is not what was encrypted") from None

    def mac(self, key_id: str, size: int, segment: int) -> bytes:
        """Return the MAC that authenticates a record's numbers like the segments."""
        message = struct.pack(">QI", size, segment) + key_id.encode()
        return hmac.digest(self._mac, message, "sha256")[:_MAC_SIZE]


def seal_object(key_id: str, secret: bytes, segment: int) -> SegmentEncoder:
    """Return an encoder of one object, with segments of ``segment`` plain bytes, under keys with a new salt."""
    salt = os.urandom(SALT_SIZE)
    keys = ObjectKeys(secret, salt)
    fields = {"v": FORMAT, "key": key_id, "check": _text(derive_key_check(secret)), "salt": _text(salt)}

    def describe(size: int) -> Record:
        return {**fields, "size": size, "seg": segment, "mac": _text(keys.mac(key_id, size, segment))}

    return SegmentEncoder(keys, segment, describe)


def _text(value: bytes) -> str:
    return base64.b64encode(value).decode()


def _bytes(record: Record, name: str, length: int) -> bytes:
    try:
        value = base64.b64decode(record[name], validate=True)
    except (KeyError, TypeError, binascii.Error, ValueError) as error:
        raise CorruptData(f"encryption record: `{name}` is not base64") from error
    if len(value) != length:
        raise CorruptData(f"encryption record: `{name}` has `{len(value)}` bytes, expected {length}")
    return value


def open_record(record: Record, ring: KeyRing) -> tuple[SegmentLayout, ObjectKeys]:
    """Return layout and keys of the object that ``record`` describes.

    :raises CorruptData: when it is not a record of this format, or its numbers were changed
    :raises FilterError: when it is of a newer format
    :raises MissingKey: when its key is not in ``ring``, or another key has that name
    """
    if record_number(record, "v", 1, 1 << 16, _NAME) > FORMAT:
        raise FilterError(f"encrypted in format `{record['v']}`, expected at most {FORMAT}")
    size = record_number(record, "size", 1, 1 << 48, _NAME)
    segment = record_number(record, "seg", SMALLEST_SEGMENT, LARGEST_SEGMENT, _NAME)
    key_id = record.get("key")
    if not isinstance(key_id, str) or not is_key_id(key_id):
        raise CorruptData("encryption record: `key` is no identifier")
    salt, mac, check = _bytes(record, "salt", SALT_SIZE), _bytes(record, "mac", _MAC_SIZE), record.get("check")
    secret = ring.secret(key_id)
    keys = ObjectKeys(secret, salt)
    if not hmac.compare_digest(keys.mac(key_id, size, segment), mac):
        # a wrong key must not be reported as damage, since a damaged file is quarantined
        if check != _text(derive_key_check(secret)):
            raise MissingKey(f"key `{key_id}` is not the one of this name that the object was encrypted with")
        raise CorruptData("encryption record: not as it was written")
    return SegmentLayout(size, segment, TAG_SIZE), keys
