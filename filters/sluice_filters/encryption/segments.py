"""An object split into segments of equal size, each stored with bytes that authenticate it.

A :class:`Seal` authenticates: an AEAD cipher, or a digest.  Every segment but the last has the same length, plain and
stored, so the position of a range is arithmetic.  A seal receives the number of the segment and whether it is the last,
and must not open it as another: this detects segments that are swapped, dropped or doubled, and a stream that ends too
early.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from sluice_filters.api import CorruptData, FilterError, Record, Stream, Window
from sluice_filters.stream import window_parts

#: Greatest number of plain bytes of one segment in a decoder: the limit of its memory.
SMALLEST_SEGMENT: Final = 16
LARGEST_SEGMENT: Final = 1 << 20

Buffer = bytes | bytearray | memoryview


class Seal(Protocol):
    """Seals and opens one object's segments."""

    def seal(self, number: int, last: bool, plain: Buffer) -> bytes:
        """Return the stored form of segment ``number``: as long as ``plain`` and a fixed number of bytes."""

    def open(self, number: int, last: bool, stored: Buffer) -> bytes:
        """Return the plain bytes of segment ``number``.

        :raises CorruptData: when they are not exactly the bytes that were sealed as this segment
        """


@dataclass(frozen=True, slots=True)
class SegmentLayout:
    """``size`` plain bytes (at least one) in segments of ``segment``, each stored with ``extra`` more."""

    size: int
    segment: int
    extra: int

    @property
    def count(self) -> int:
        """Number of segments."""
        return -(-self.size // self.segment)

    def stored_length(self, number: int) -> int:
        """Stored bytes of one segment: all are full except the last."""
        return min(self.segment, self.size - number * self.segment) + self.extra

    def offset(self, number: int) -> int:
        """The offset of segment ``number`` among the stored bytes; that of ``count`` is their end."""
        return min(number * (self.segment + self.extra), self.size + self.count * self.extra)

    def locate(self, start: int, stop: int) -> Window:
        """Return the window of the segments with the plain bytes ``[start, stop)``."""
        if not 0 <= start < stop <= self.size:
            raise FilterError(f"bytes `{start}` to `{stop}` of {self.size}")
        first, last = start // self.segment, -(-stop // self.segment)
        skip = start - first * self.segment
        return Window(self.offset(first), self.offset(last), skip, stop - start, [first, last])


class SegmentEncoder(Stream):
    """Seals one object; an empty one stays empty and without a record.

    ``describe`` makes the record of an object with a number of plain bytes.
    """

    def __init__(self, seal: Seal, segment: int, describe: Callable[[int], Record]) -> None:
        self._sealer = seal
        self._segment = segment
        self._describe = describe
        self._held = bytearray()  # up to a full segment: only the next byte shows that it is not the last
        self._number = 0
        self._size = 0

    def feed(self, data: bytes) -> bytes:
        self._size += len(data)
        out = []
        with memoryview(data) as view:
            begin = 0
            if self._held:
                begin = min(self._segment - len(self._held), len(data))
                self._held += view[:begin]
                if begin == len(data):
                    return b""
                out.append(self._seal(self._held))
                self._held = bytearray()
            while len(data) - begin > self._segment:
                out.append(self._seal(view[begin : begin + self._segment]))
                begin += self._segment
            self._held += view[begin:]
        return out[0] if len(out) == 1 else b"".join(out)

    def finish(self) -> bytes:
        return self._seal(self._held, last=True) if self._size else b""

    def record(self) -> Record | None:
        return self._describe(self._size) if self._size else None

    def _seal(self, plain: Buffer, last: bool = False) -> bytes:
        sealed = self._sealer.seal(self._number, last, plain)
        self._number += 1
        return sealed


class SegmentDecoder(Stream):
    """Restores an object, or the segments of a window; each is verified before a byte of it is returned."""

    def __init__(self, layout: SegmentLayout, seal: Seal, window: Window | None = None) -> None:
        """
        :raises CorruptData: when the window is not one of this layout
        """
        self._layout = layout
        self._sealer = seal
        self._next, self._stop = window_parts(window, layout.count, "segments")
        self._held = bytearray()

    def feed(self, data: bytes) -> bytes:
        out = []
        with memoryview(data) as view:
            begin = 0
            while self._next < self._stop:
                wanted = self._layout.stored_length(self._next)
                end = begin + wanted - len(self._held)
                if end > len(data):
                    break
                if self._held:
                    self._held += view[begin:end]
                    out.append(self._open(self._held))
                    self._held = bytearray()
                else:
                    out.append(self._open(view[begin:end]))
                begin = end
            self._held += view[begin:]
        if self._next == self._stop and self._held:
            raise CorruptData(f"`{len(self._held)}` bytes behind the last segment")
        return out[0] if len(out) == 1 else b"".join(out)

    def finish(self) -> bytes:
        if self._next < self._stop:
            raise CorruptData(f"stream ends inside of segment {self._next}, expected {self._stop} segments")
        return b""

    def _open(self, stored: Buffer) -> bytes:
        plain = self._sealer.open(self._next, self._next == self._layout.count - 1, stored)
        self._next += 1
        return plain
