"""An item whose compressed form is another one.

When it is contracted, a compressed form is kept as a hidden copy: the very bytes of the other item if these decompress
to the item; the other item is then contracted to that copy as well; else the compressed bytes of the item itself.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import zlib
from collections.abc import Iterator, Mapping
from typing import BinaryIO, Final, cast

import zstandard

from sluice_core.describe import MOTIF, ActionInfo, Parameter, Scalar
from sluice_motifs.api import COPY, ExpansionError, TemplateCall
from sluice_motifs.templates.compressed import ENGINES, GZIP, ZSTD, compress
from sluice_motifs.templates.kept_copy import KeptCopyTemplate

#: Bytes that are made at once, whatever the compression ratio.
_PIECE: Final = 256 << 10


class Decompressed(KeptCopyTemplate):
    """Decompresses its source."""

    info = ActionInfo(
        "decompressed",
        MOTIF,
        "the decompressed form of another item, of which a hidden copy is kept",
        (
            Parameter("source", "str", "the other item", required=True),
            Parameter("engine", "str", "the format", ZSTD, choices=ENGINES),
        ),
    )

    def keep_copy(self, call: TemplateCall) -> Mapping[str, Scalar]:
        source = str(self.params["source"])
        try:
            if self._makes(call, source):
                return {COPY: call.keep_copy(pieces=call.read(source))}
        except ExpansionError:
            pass  # the source does not exist, is damaged, or is not compressed
        return {COPY: call.keep_copy(pieces=compress(call.own_bytes(), self._engine))}

    def expand(self, call: TemplateCall) -> Iterator[bytes]:
        yield from self._plain(call, self.sources(call.item)[0].name)

    @property
    def _engine(self) -> str:
        return str(self.params.get("engine", ZSTD))

    def _makes(self, call: TemplateCall, source: str) -> bool:
        """Whether the source decompresses to the bytes of the item."""
        algorithm, _, digest = call.digest.partition(":")
        state, size = hashlib.new(algorithm, usedforsecurity=False), 0
        for piece in self._plain(call, source):
            state.update(piece)
            size += len(piece)
            if size > call.size:
                return False
        return (size, state.hexdigest()) == (call.size, digest)

    def _plain(self, call: TemplateCall, source: str) -> Iterator[bytes]:
        packed = cast(BinaryIO, io.BufferedReader(_Pieces(call.read(source))))
        try:
            with _opened(packed, self._engine) as plain:
                while piece := plain.read(_PIECE):
                    yield piece
        except (zstandard.ZstdError, zlib.error, EOFError, gzip.BadGzipFile) as error:
            raise ExpansionError(f"`{source}` is damaged, or no {self._engine}") from error


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
