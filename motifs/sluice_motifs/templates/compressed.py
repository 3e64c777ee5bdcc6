"""An item that is the compressed form of another one, in standard formats.

With ``decompressed`` it forms a circular pair: the item that is read less is contracted.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from typing import Any, Final

import zstandard

from sluice_core.describe import MOTIF, ActionInfo, Parameter
from sluice_motifs.api import Source, Template, TemplateCall

GZIP: Final = "gzip"
ZSTD: Final = "zstd"
ENGINES: Final = (GZIP, ZSTD)
#: zlib writes the header and the trailer of gzip.
GZIP_FORMAT: Final = 31
LEVEL: Final = 3


class Compressed(Template):
    """Compresses its source; another version of a codec may make other bytes, which the digest detects."""

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
        pieces = call.read(str(self.params["source"]))
        yield from compress(pieces, str(self.params.get("engine", ZSTD)), int(self.params.get("level", LEVEL)))


def compress(pieces: Iterator[bytes], engine: str, level: int = LEVEL) -> Iterator[bytes]:
    """``pieces`` in the format of one of :data:`ENGINES`."""
    if engine == GZIP:
        codec: Any = zlib.compressobj(level, zlib.DEFLATED, GZIP_FORMAT)
    else:
        codec = zstandard.ZstdCompressor(level=level).compressobj()
    yield from map(codec.compress, pieces)
    yield codec.flush()
