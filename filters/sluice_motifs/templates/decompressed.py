"""An item whose compressed form is kept as another one."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator, Sequence
from typing import BinaryIO, Final, cast

import zstandard

from sluice_core.describe import MOTIF, ActionInfo, Parameter
from sluice_motifs.api import PRESERVING, ExpansionError, Source, Template, TemplateCall
from sluice_motifs.templates.compressed import ENGINES, GZIP, ZSTD

#: Bytes that are made at once, however well they were compressed.
_PIECE: Final = 256 << 10


class Decompressed(Template):
    """Decompresses its source."""

    info = ActionInfo(
        "decompressed",
        MOTIF,
        "what another item is the compressed form of; that one waits for this one before it is written",
        (
            Parameter("source", "str", "the other item", required=True),
            Parameter("engine", "str", "the format", ZSTD, choices=ENGINES),
        ),
    )
    relation = PRESERVING

    def sources(self, item: str) -> Sequence[Source]:
        return [Source(str(self.params["source"]))]

    def expand(self, call: TemplateCall) -> Iterator[bytes]:
        packed = cast(BinaryIO, io.BufferedReader(_Pieces(call.read(str(self.params["source"])))))
        try:
            with _opened(packed, str(self.params.get("engine", ZSTD))) as plain:
                while piece := plain.read(_PIECE):
                    yield piece
        except (zstandard.ZstdError, zlib.error, EOFError, gzip.BadGzipFile) as error:
            raise ExpansionError(f"`{self.params['source']}` is damaged, or no {self.params.get('engine')}") from error


def _opened(packed: BinaryIO, engine: str) -> BinaryIO:
    if engine == GZIP:
        return cast(BinaryIO, gzip.GzipFile(fileobj=packed, mode="rb"))
    return cast(BinaryIO, zstandard.ZstdDecompressor().stream_reader(packed, read_across_frames=True))


class _Pieces(io.RawIOBase):
    """Pieces of bytes as a file."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]  # any writable buffer
        while not self._rest:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._rest = piece
        size = min(len(buffer), len(self._rest))
        buffer[:size], self._rest = self._rest[:size], self._rest[size:]
        return size
