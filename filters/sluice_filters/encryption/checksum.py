"""The checksum filter: a digest behind every 64 KiB, verified on every read.

Swift's own ETag covers a whole object and is checked by a reader of the whole object; here a range is verified too,
before a byte of it is returned.  So the digests are stored between the bytes, available to a reader of any part of an
object of any size, and not in the record, which has space for only a few.
Besides, the plain bytes are stored: segments of 64 KiB, each followed by its digest (32 bytes of SHA-256, or 4 of
CRC-32, little-endian) over the segment's number (64 bits, little-endian), one byte that is set for the last one, and
its bytes.  The record is ``{"v": 1, "digest": "crc32",
"size": n, "seg": 65536}``.

A digest detects damage, not malice: an attacker who can write to the disks can write a digest.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable
from typing import ClassVar, Final

from isal import isal_zlib

from sluice_core.describe import FILTER, PROXY, STORAGE_NODE, ActionInfo, Parameter
from sluice_filters.api import CorruptData, Filter, FilterError, Hint, Record, Stream, Window
from sluice_filters.encryption.segments import (
    LARGEST_SEGMENT,
    SMALLEST_SEGMENT,
    Buffer,
    SegmentDecoder,
    SegmentEncoder,
    SegmentLayout,
)
from sluice_filters.stream import record_number

_HEAD: Final = struct.Struct("<QB")
_FORMAT: Final = 1
Digest = Callable[[bytes, Buffer], bytes]


def _crc32(head: bytes, data: Buffer) -> bytes:
    value: int = isal_zlib.crc32(data, isal_zlib.crc32(head))
    return value.to_bytes(4, "little")


def _sha256(head: bytes, data: Buffer) -> bytes:
    state = hashlib.sha256(head)
    state.update(data)
    return state.digest()


#: Digest and its length by name.
_DIGESTS: Final[dict[str, tuple[Digest, int]]] = {"crc32": (_crc32, 4), "sha256": (_sha256, 32)}


class _DigestSeal:
    """Appends a digest to each segment."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._digest, self.size = _DIGESTS[name]

    def seal(self, number: int, last: bool, plain: Buffer) -> bytes:
        return b"".join((plain, self._digest(_HEAD.pack(number, last), plain)))

    def open(self, number: int, last: bool, stored: Buffer) -> bytes:
        plain = bytes(stored[: -self.size])
        if self._digest(_HEAD.pack(number, last), plain) != stored[-self.size :]:
            raise CorruptData(f"segment {number} with another {self._name}")
        return plain


class Checksum(Filter):
    """Stores objects with digests in between, and returns no byte before its digest is verified."""

    info: ClassVar[ActionInfo] = ActionInfo(
        keyword="checksum",
        kind=FILTER,
        help="store a digest behind every 64 KiB and verify it on every read, ranges included",
        parameters=(Parameter("digest", "str", "what is computed", default="crc32", choices=tuple(_DIGESTS)),),
        places=(PROXY, STORAGE_NODE),
        stage=900,
        changes_content=True,
        changes_length=True,
        reversible=True,
        random_access=True,
    )
    #: Plain bytes per segment.
    segment: ClassVar[int] = 64 << 10

    def applies(self, hint: Hint) -> bool:
        return hint.size != 0

    def encoder(self, hint: Hint) -> Stream:
        name = str(self.params["digest"])
        fields = {"v": _FORMAT, "digest": name, "seg": self.segment}
        return SegmentEncoder(_DigestSeal(name), self.segment, lambda size: {**fields, "size": size})

    def decoder(self, record: Record, window: Window | None = None) -> Stream:
        return SegmentDecoder(*_read_record(record), window)

    def locate(self, record: Record, start: int, stop: int) -> Window:
        layout, _ = _read_record(record)
        return layout.locate(start, stop)


def _read_record(record: Record) -> tuple[SegmentLayout, _DigestSeal]:
    """
    :raises CorruptData: when it is not a record of this filter
    :raises FilterError: when it is of a newer format or an unknown digest
    """
    for name, low, high in (("v", 1, 1 << 16), ("size", 1, 1 << 62), ("seg", SMALLEST_SEGMENT, LARGEST_SEGMENT)):
        record_number(record, name, low, high, "checksum")
    digest = record.get("digest")
    if record["v"] > _FORMAT or not isinstance(digest, str) or digest not in _DIGESTS:
        raise FilterError(f"stored with digest `{digest}` in format `{record['v']}`, which is unknown here")
    seal = _DigestSeal(digest)
    return SegmentLayout(record["size"], record["seg"], seal.size), seal
