"""The positions of the frames of one compressed object: the record, the index, the arithmetic.

docs/reference/format-compression.md describes the stored format.  This module handles offsets, ``frames`` handles
bytes.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from isal import isal_zlib

from sluice_filters.api import CorruptData, FilterError, Record
from sluice_filters.compression.engines import ENGINES, LARGEST_FRAME
from sluice_filters.stream import record_number

#: Version of the stored format; a decoder reads all versions up to its own.
FORMAT: Final = 1
_NAME: Final = "compression"
HEADER_SIZE: Final = 16
#: Longest base64 index in the record; ext4 has about 4 KB for all attributes of a file.
INLINE_INDEX: Final = 1500
INDEX_CRC_SIZE: Final = 4
#: Greatest number of bytes in the varint of a frame's length.
_VARINT_SIZE: Final = 4


def choose_frame_size(size: int | None) -> int:
    """Return plain bytes per frame for an object of ``size``: 256 KiB to 8 MiB, at most 256 frames if possible.

    256 frames keep the index inline (four bytes of varint at most, base64 of 1 KiB).
    """
    if size is None:
        return 512 << 10
    frame = 256 << 10
    while frame * 256 < size and frame < 8 << 20:
        frame <<= 1
    return frame


def pack_lengths(lengths: Iterable[int]) -> bytes:
    """Return stored lengths as little-endian base-128 varints."""
    out = bytearray()
    for length in lengths:
        while length > 0x7F:
            out.append(length & 0x7F | 0x80)
            length >>= 7
        out.append(length)
    return bytes(out)


def unpack_lengths(data: bytes) -> tuple[int, ...]:
    """Return the lengths in ``data``.

    :raises CorruptData: when the last varint is cut off or one is too long
    """
    lengths = []
    value = shift = 0
    for byte in data:
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte & 0x80:
            if shift >= 7 * _VARINT_SIZE:
                raise CorruptData("index with a length that no frame has")
            continue
        lengths.append(value)
        value = shift = 0
    if shift:
        raise CorruptData("index is cut off")
    return tuple(lengths)


def seal_index(lengths: Iterable[int]) -> bytes:
    """Return the index in the form at the tail: varints and their CRC-32."""
    packed = pack_lengths(lengths)
    return packed + isal_zlib.crc32(packed).to_bytes(INDEX_CRC_SIZE, "little")


def open_index(data: bytes) -> bytes:
    """Return the varints of a sealed index.

    :raises CorruptData: when the CRC-32 differs
    """
    packed, seal = data[:-INDEX_CRC_SIZE], data[-INDEX_CRC_SIZE:]
    if len(seal) != INDEX_CRC_SIZE or int.from_bytes(seal, "little") != isal_zlib.crc32(packed):
        raise CorruptData("index with a wrong checksum")
    return packed


@dataclass(frozen=True, slots=True)
class FrameLayout:
    """One compressed object: ``size`` plain bytes in ``stored`` ones.

    ``tail`` is the offset of the index when that is stored behind the frames; ``lengths`` are the
    stored lengths of the frames, headers included, None while they are in the tail only.
    """

    engine: str
    size: int
    stored: int
    frame: int
    tail: int | None
    lengths: tuple[int, ...] | None

    @property
    def count(self) -> int:
        """Number of frames."""
        return -(-self.size // self.frame)

    @property
    def frames_end(self) -> int:
        """Stored bytes of all frames together."""
        return self.stored if self.tail is None else self.tail

    def plain_length(self, number: int) -> int:
        """Plain bytes of one frame: all are full but the last."""
        return min(self.frame, self.size - number * self.frame)

    def span(self, first: int, stop: int) -> tuple[int, int]:
        """The stored bytes of frames ``first`` to ``stop - 1``; only with ``lengths``."""
        assert self.lengths is not None
        begin = sum(self.lengths[:first])
        return begin, begin + sum(self.lengths[first:stop])


def write_record(engine: str, size: int, frame: int, lengths: Sequence[int]) -> tuple[dict[str, Any], bytes]:
    """Return the record of a finished stream and the bytes to store behind its frames (maybe none)."""
    stored = sum(lengths)
    record: dict[str, Any] = {"v": FORMAT, "engine": engine, "size": size, "stored": stored, "frame": frame}
    index = base64.urlsafe_b64encode(pack_lengths(lengths)).decode()
    if len(index) <= INLINE_INDEX:
        record["index"] = index
        return record, b""
    tail = seal_index(lengths)
    record["tail"] = stored
    record["stored"] = stored + len(tail)
    return record, tail


def complete_record(record: Record, index: bytes) -> dict[str, Any]:
    """Return ``record`` with the index that was stored at the tail.

    :raises CorruptData: when the bytes are not an index
    """
    return {**record, "index": base64.urlsafe_b64encode(open_index(index)).decode()}


def _lengths(record: Record, count: int, end: int) -> tuple[int, ...]:
    try:
        lengths = unpack_lengths(base64.b64decode(record["index"], altchars=b"-_", validate=True))
    except (binascii.Error, TypeError, ValueError) as error:
        raise CorruptData(f"compression record: index is not base64: {error}") from error
    if len(lengths) != count or sum(lengths) != end or min(lengths) <= HEADER_SIZE:
        raise CorruptData("compression record: index does not fit the sizes")
    return lengths


def read_record(record: Record) -> FrameLayout:
    """Return the layout that ``record`` describes.

    :raises CorruptData: when it contradicts itself
    :raises FilterError: when it is of a newer format or an unknown engine
    """
    if record_number(record, "v", 1, 1 << 16, _NAME) > FORMAT:
        raise FilterError(f"compressed in format `{record['v']}`, expected at most {FORMAT}")
    engine = record.get("engine")
    if not isinstance(engine, str) or engine not in ENGINES:
        raise FilterError(f"compressed with engine `{engine}`, expected one of {', '.join(ENGINES)}")
    size = record_number(record, "size", 1, 1 << 62, _NAME)
    stored = record_number(record, "stored", HEADER_SIZE + 1, 1 << 62, _NAME)
    frame = record_number(record, "frame", 1, LARGEST_FRAME, _NAME)
    tail = record_number(record, "tail", HEADER_SIZE + 1, stored, _NAME) if "tail" in record else None
    layout = FrameLayout(engine, size, stored, frame, tail, None)
    if tail is not None and not layout.count + INDEX_CRC_SIZE <= stored - tail <= layout.count * _VARINT_SIZE + 4:
        raise CorruptData(f"compression record: `{stored - tail}` bytes of index for {layout.count} frames")
    if "index" in record:
        return replace(layout, lengths=_lengths(record, layout.count, layout.frames_end))
    if tail is None:
        raise CorruptData("compression record: neither `index` nor `tail`")
    return layout
