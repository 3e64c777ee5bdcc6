"""An item that is the compressed form of another one, as everybody's tools read it.

With ``decompressed`` it makes a circular pair: whichever is read less gives up its bytes.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from typing import Final, Protocol

import zstandard

from sluice_core.describe import MOTIF, ActionInfo, Parameter
from sluice_motifs.api import Source, Template, TemplateCall

GZIP: Final = "gzip"
ZSTD: Final = "zstd"
ENGINES: Final = (GZIP, ZSTD)
#: zlib writes the head and the tail of gzip.
GZIP_FORMAT: Final = 31
LEVEL: Final = 3


class Compressed(Template):
    """Compresses its source; another version of a codec may make other bytes, which the digest shows."""

    info = ActionInfo(
        "compressed",
        MOTIF,
        "the compressed form of another item",
        (
            Parameter("source", "str", "the other item", required=True),
            Parameter("engine", "str", "the format", ZSTD, choices=ENGINES),
            Parameter("level", "int", "how hard it tries", LEVEL, minimum=1, maximum=9),
        ),
    )

    def sources(self, item: str) -> Sequence[Source]:
        return [Source(str(self.params["source"]))]

    def expand(self, call: TemplateCall) -> Iterator[bytes]:
        codec = compressor(str(self.params.get("engine", ZSTD)), int(self.params.get("level", LEVEL)))
        for piece in call.read(str(self.params["source"])):
            yield codec.compress(piece)
        yield codec.flush()


class _Codec(Protocol):
    def compress(self, data: bytes, /) -> bytes: ...

    def flush(self) -> bytes: ...


def compressor(engine: str, level: int) -> _Codec:
    """What compresses pieces to one of :data:`ENGINES`."""
    if engine == GZIP:
        return zlib.compressobj(level, zlib.DEFLATED, GZIP_FORMAT)
    codec: _Codec = zstandard.ZstdCompressor(level=level).compressobj()
    return codec
