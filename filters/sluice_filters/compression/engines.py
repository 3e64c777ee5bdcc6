"""The codecs of the compression filter: one class per library.

A *packer* compresses one frame, an *unpacker* restores one whose plain length is known and never returns more than
that.  Both keep their context for a whole stream, release the GIL while they work, and take any buffer.  Bytes behind
the end of a packed frame are padding and ignored
"""

from __future__ import annotations

import functools
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import lz4.block
import zstandard
from isal import igzip_lib, isal_zlib

from sluice_filters.api import CorruptData

Buffer = bytes | memoryview
Packer = Callable[[Buffer], bytes]
Unpacker = Callable[[Buffer, int], bytes]

#: Greatest number of plain bytes of one frame, whatever a record or header says: the limit of a decoder's memory.
LARGEST_FRAME: Final = 32 << 20
_RAW_DEFLATE: Final = -15
#: Levels of gzip up to this one are ISA-L's, which has no others; higher ones are zlib's.
_ISAL_HIGHEST: Final = 3
#: The limit of LZ4's library: levels below 0 are ``1 - level`` there, an acceleration of at most 65537.
_LZ4_LOWEST: Final = -65536
#: The library's stub declares the class as an instance.
_ISAL_ERROR: Final[type[Exception]] = igzip_lib.IsalError  # type: ignore[assignment]


@dataclass(frozen=True, slots=True)
class Engine:
    """One codec: its levels (both ends included), the default one and constructors of packer and unpacker."""

    name: str
    lowest: int
    highest: int
    default: int
    packer: Callable[[int], Packer]
    unpacker: Callable[[], Unpacker]


def _gzip_packer(level: int) -> Packer:
    compress = isal_zlib.compress if level <= _ISAL_HIGHEST else zlib.compress
    return functools.partial(compress, level=level, wbits=_RAW_DEFLATE)


def _gzip_unpacker() -> Unpacker:
    def unpack(data: Buffer, length: int) -> bytes:
        stream = isal_zlib.decompressobj(wbits=_RAW_DEFLATE)
        try:
            plain: bytes = stream.decompress(data, length)
            if not stream.eof:  # the end mark follows the last plain byte
                plain += stream.decompress(stream.unconsumed_tail, 1)
        except _ISAL_ERROR as error:
            raise CorruptData(f"gzip: {error}") from error
        if not stream.eof:
            raise CorruptData(f"gzip data do not end at their declared length of {length}")
        return plain

    return unpack


def _lz4_packer(level: int) -> Packer:
    high = {"mode": "high_compression", "compression": level}
    options = high if level > 0 else {"mode": "fast", "acceleration": 1 - level}
    return functools.partial(lz4.block.compress, store_size=False, **options)


def _lz4_unpacker() -> Unpacker:
    def unpack(data: Buffer, length: int) -> bytes:
        try:
            plain: bytes = lz4.block.decompress(data, uncompressed_size=length)
        except lz4.block.LZ4BlockError as error:
            raise CorruptData(f"lz4: {error}") from error
        return plain

    return unpack


def _zstd_packer(level: int) -> Packer:
    return zstandard.ZstdCompressor(level=level, write_checksum=False, write_content_size=True).compress


def _zstd_unpacker() -> Unpacker:
    context = zstandard.ZstdDecompressor(max_window_size=LARGEST_FRAME)

    def unpack(data: Buffer, length: int) -> bytes:
        try:
            # decompress() allocates the size in the frame's header: check it first.
            if zstandard.frame_content_size(data) != length:
                raise CorruptData(f"zstd data are not of their declared length of {length}")
            plain: bytes = context.decompress(data, allow_extra_data=True)
        except zstandard.ZstdError as error:
            raise CorruptData(f"zstd: {error}") from error
        return plain

    return unpack


#: Default levels are the fast ones, since a request waits for them.  Level 0 of zstd means 3 to its library.
ENGINES: Final = {
    engine.name: engine
    for engine in (
        Engine("gzip", 0, 9, 1, _gzip_packer, _gzip_unpacker),
        Engine("lz4", _LZ4_LOWEST, 12, 0, _lz4_packer, _lz4_unpacker),
        Engine("zstd", -7, 19, 1, _zstd_packer, _zstd_unpacker),
    )
}
