"""Sluice's compression as a storlet: the stored format of ``docs/reference/format-compression.md``, engine gzip.

The native filter reads its output, and it reads that of the native filter.  It needs only Python's standard library.
Parameters: ``level`` (1 to 9) and ``frame_size`` in bytes; ``sluice_direction`` is the direction.
"""

import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_HEADER = struct.Struct("<IIII")
_RAW = 0x8000_0000
_RAW_DEFLATE = -15
_FRAME = 512 << 10
_LARGEST_FRAME = 32 << 20
_PIECE = 64 << 10
#: A longer index in base64 is stored behind the frames, and not in the record.
_INLINE_INDEX = 1500
_RATIO_BITS = 8


class Compression:
    """Compresses, and decompresses with ``sluice_direction=undo``."""

    def __init__(self, logger: Any) -> None:
        self.logger = logger

    def __call__(self, in_files: Sequence[Any], out_files: Sequence[Any], params: Mapping[str, str]) -> None:
        """From the first input to the first output."""
        source, target = in_files[0], out_files[0]
        target.set_metadata(source.get_metadata())
        undo = params.get("sluice_direction") == "undo"
        for piece in restored(source) if undo else compressed(source, params):
            target.write(piece)
        target.close()


def compressed(source: Any, params: Mapping[str, str]) -> Iterator[bytes]:
    """Yield the frames of the bytes in ``source``, and the index when it is long."""
    size, level = int(params.get("frame_size", _FRAME)), int(params.get("level", "1"))
    lengths = []
    while plain := source.read(size):
        packer = zlib.compressobj(level, zlib.DEFLATED, _RAW_DEFLATE)
        body, flag = packer.compress(plain) + packer.flush(), 0
        if len(body) >= len(plain):
            body, flag = plain, _RAW
        body = body.ljust(len(plain) >> _RATIO_BITS, b"\0")
        yield _HEADER.pack(len(lengths), len(plain), len(body) | flag, zlib.crc32(plain)) + body
        lengths.append(_HEADER.size + len(body))
    yield index_behind(lengths)


def restored(source: Any) -> Iterator[bytes]:
    """Yield the plain bytes of the frames in ``source``.

    :raises ValueError: as soon as the data differs from what was written
    """
    lengths: list[int] = []
    while len(header := source.read(_HEADER.size)) == _HEADER.size:
        number, plain_length, stored, crc = _HEADER.unpack(header)
        if number != len(lengths):
            break  # the index: no byte of its numbers is zero, so it cannot be mistaken for the next frame
        raw, stored = stored & _RAW, stored & ~_RAW
        if max(plain_length, stored) > _LARGEST_FRAME:
            raise ValueError(f"frame {number} is too long")
        body = source.read(stored)
        plain = body if raw else zlib.decompressobj(_RAW_DEFLATE).decompress(body, plain_length)
        if len(body) != stored or len(plain) != plain_length or zlib.crc32(plain) != crc:
            raise ValueError(f"frame {number} is damaged")
        lengths.append(_HEADER.size + stored)
        yield plain
    if header + source.read() != index_behind(lengths):
        raise ValueError("the frames do not end where they should")


def index_behind(lengths: Sequence[int]) -> bytes:
    """Return the bytes behind the frames: none, or their lengths as varints with a CRC-32."""
    packed = bytearray()
    for length in lengths:
        while length > 0x7F:
            packed.append(length & 0x7F | 0x80)
            length >>= 7
        packed.append(length)
    if -(-len(packed) // 3) * 4 <= _INLINE_INDEX:
        return b""
    return bytes(packed) + zlib.crc32(packed).to_bytes(4, "little")
