"""The protocol of host and worker over one stream socket; standard library only, both run it.

The host sends a head (its length, then JSON: the steps) with one descriptor per step, from which
the worker reads the code, then the bytes as they are, then shuts down its side: that is the end.
The worker sends frames of a kind and a length: data, and as the last one either the end, with what
the input and output of each step, or a fault.  A socket that closes without one of these verifies nothing.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from typing import Any, Final

HEAD: Final = struct.Struct("!I")
FRAME: Final = struct.Struct("!BI")

DATA: Final = 1
END: Final = 2
FAULT: Final = 3

#: Bytes read from a socket at once.
CHUNK: Final = 128 * 1024
MAX_HEAD: Final = 64 * 1024
MAX_STEPS: Final = 16
#: An end or a fault is short; a longer one is not from Sluice's worker.
MAX_WORD: Final = 4096

#: Faults that a worker can report, and their texts; ``{what}`` is the name of an exception.
FAULTS: Final = {
    "raised": "raised `{what}`",
    "shape": "gave back something else than bytes",
    "load": "has code that does not load: `{what}`",
    "main": "has no class of the name that was registered",
    "digest": "came with other code than was registered",
    "cpu": "took too much processor time",
}


class MalformedFrame(Exception):
    """Bytes that Sluice's worker does not send."""


def encode_head(steps: list[dict[str, Any]]) -> bytes:
    """Return the head of a stream."""
    body = json.dumps({"steps": steps}, separators=(",", ":")).encode()
    return HEAD.pack(len(body)) + body


def frame_header(kind: int, size: int) -> bytes:
    """Return the header of ``size`` bytes of that kind."""
    return FRAME.pack(kind, size)


def encode_message(kind: int, content: dict[str, Any]) -> bytes:
    """Return a whole frame other than data."""
    body = json.dumps(content, separators=(",", ":")).encode()
    return FRAME.pack(kind, len(body)) + body


class FrameParser:
    """Parses a worker's bytes as they arrive."""

    def __init__(self) -> None:
        self._kind = 0
        self._left = 0
        self._partial = b""

    def feed(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """Yield the frames in ``data``; a data frame may be yielded in pieces.

        :raises MalformedFrame: for bytes that are not a frame
        """
        place = 0
        if self._kind != DATA and self._partial:
            data, self._partial = self._partial + data, b""
        while place < len(data):
            if self._kind == 0:
                if len(data) - place < FRAME.size:
                    self._partial = data[place:]
                    return
                self._kind, self._left = FRAME.unpack_from(data, place)
                place += FRAME.size
                if self._kind not in (DATA, END, FAULT) or (self._kind != DATA and self._left > MAX_WORD):
                    raise MalformedFrame(f"frame of kind {self._kind} and {self._left} bytes")
            piece = data[place : place + self._left]
            if self._kind != DATA and len(piece) < self._left:
                self._partial = piece
                return
            place += len(piece)
            self._left -= len(piece)
            kind = self._kind
            if not self._left:
                self._kind = 0
            if piece:
                yield kind, piece
