"""Encoder and decoder of independent compressed frames (docs/reference/format-compression.md).

A frame is a header of four little-endian 32-bit numbers and a payload::

    number   of the frame, from 0          detects swapped, dropped and doubled frames
    plain    length of the plain bytes     the full frame size for all but the last
    stored   length of the payload; the highest bit says that the payload is the plain bytes
    crc      CRC-32 of the plain bytes     checked before any of them is passed on

Rules:

* Every number of a header is compared with the record before memory is allocated for it, so damaged data cannot make
  the decoder hold more than one frame.
* A payload is never shorter than 1/256 of its plain bytes (zeros are appended), so that n stored bytes are at most
  256 n plain ones and one frame more.  (lz4 cannot do better than 1/255, so it is never padded.)
* The decoder returns at most :data:`LARGEST_PIECE` bytes at once, for every input, and the rest by ``more``.
* The first ``PROBE`` bytes decide, or the first frame if that is smaller: when they shrink too little the whole stream
  is passed on unchanged, without waiting for a large frame.
* How the input was split never changes the output: decisions depend on a fixed number of bytes only.
"""

from __future__ import annotations

import struct
from typing import Final

from isal import isal_zlib

from sluice_filters.api import CorruptData, Record, Stream, Window
from sluice_filters.compression.engines import ENGINES, Engine
from sluice_filters.compression.layout import HEADER_SIZE, FrameLayout, open_index, unpack_lengths, write_record
from sluice_filters.stream import window_parts

_HEADER: Final = struct.Struct("<IIII")
_RAW: Final = 0x8000_0000
#: Plain bytes from which the encoder decides whether to compress.
PROBE: Final = 256 << 10
#: Plain bytes after which the decoder returns its output; a frame may be larger …
ENOUGH: Final = 1 << 20
#: … and is returned in pieces of this number of bytes.
LARGEST_PIECE: Final = 4 << 20
#: Two to the power of this is the largest ratio of plain to stored bytes in one frame.
_RATIO_BITS: Final = 8


class FrameEncoder(Stream):
    """Compresses one object, or passes it on when it shrinks too little.

    Shorter streams than ``min_size`` and those whose first ``PROBE`` bytes (or first frame, where
    that is smaller) shrink by less than the fraction ``min_gain`` are passed on; ``frame`` is the
    number of plain bytes per frame.
    """

    def __init__(self, engine: Engine, level: int, frame: int, min_size: int, min_gain: float) -> None:
        self._engine = engine.name
        self._pack = engine.packer(level)
        self._frame = frame
        self._probe = min(PROBE, frame)
        self._min_size = min_size
        self._keep = 1.0 - min_gain
        self._want = max(frame, min_size)  # no byte is compressed before this number has arrived
        self._pieces: list[bytes] = []
        self._held = 0
        self._size = 0
        self._lengths: list[int] = []
        self._decided = False
        self._first: bytes | None = None  # the first frame, packed for the decision
        self._record: Record | None = None

    def feed(self, data: bytes) -> bytes:
        if self.transparent:
            return data
        self._pieces.append(data)
        self._held += len(data)
        if not self._decided and self._held >= self._probe and not self._pays():
            return self._pass_on()
        return self._drain(last=False) if self._held >= self._want else b""

    def finish(self) -> bytes:
        if self.transparent:
            return b""
        if not self._lengths and self._held < max(self._min_size, 1):
            return self._joined()
        if not self._decided and not self._pays():
            return self._pass_on()
        out = self._drain(last=True)
        self._record, tail = write_record(self._engine, self._size, self._frame, self._lengths)
        return out + tail

    def record(self) -> Record | None:
        return self._record

    def _joined(self) -> bytes:
        """All held bytes, in one piece."""
        if len(self._pieces) != 1:
            self._pieces = [b"".join(self._pieces)]
        return self._pieces[0]

    def _pays(self) -> bool:
        """Whether the first bytes shrink enough."""
        with memoryview(self._joined()) as view, view[: self._probe] as plain:
            payload = self._pack(plain)
            self._decided = True
            if self._probe == self._frame or self._held < self._probe:
                self._first = payload
            return len(payload) + HEADER_SIZE <= len(plain) * self._keep

    def _pass_on(self) -> bytes:
        """Return the held bytes, and pass all further bytes on."""
        self.transparent = True
        data, self._pieces = self._joined(), []
        return data

    def _drain(self, last: bool) -> bytes:
        """Compress the complete frames that are held; with ``last`` also the short one at the end."""
        data = self._joined()
        whole = self._held if last else self._held - self._held % self._frame
        out: list[bytes | memoryview] = []
        with memoryview(data) as view:
            for begin in range(0, whole, self._frame):
                plain = view[begin : min(begin + self._frame, whole)]
                payload, self._first = self._first or self._pack(plain), None
                out += self._framed(plain, payload)
            joined = b"".join(out)
        self._size += whole
        self._pieces = [data[whole:]] if whole < len(data) else []
        self._held -= whole
        self._want = self._frame
        return joined

    def _framed(self, plain: memoryview, payload: bytes) -> tuple[bytes, bytes | memoryview]:
        body: bytes | memoryview = payload
        flag = 0
        if len(payload) >= len(plain):
            body, flag = plain, _RAW
        elif len(payload) < len(plain) >> _RATIO_BITS:
            body = payload.ljust(len(plain) >> _RATIO_BITS, b"\0")
        header = _HEADER.pack(len(self._lengths), len(plain), len(body) | flag, isal_zlib.crc32(plain))
        self._lengths.append(HEADER_SIZE + len(body))
        return header, body


class FrameDecoder(Stream):
    """Restores an object, or the frames of a window."""

    def __init__(self, layout: FrameLayout, window: Window | None = None) -> None:
        """
        :raises CorruptData: when the window is not one of this layout
        """
        self._layout = layout
        self._unpack = ENGINES[layout.engine].unpacker()
        self._next, self._stop = window_parts(window, layout.count, "frames")
        self._lengths = layout.lengths
        self._whole = window is None
        self._seen: list[int] = []
        self._tail = layout.stored - layout.frames_end if self._whole else 0
        self._buffer = bytearray()
        # The rest of the last frame, if that is large.
        self._rest = memoryview(b"")

    def feed(self, data: bytes) -> bytes:
        self._buffer += data
        return self.more()

    def more(self) -> bytes:
        """Return the plain bytes of complete frames, or a part of a large one."""
        if self._rest:
            plain = self._cut(self._rest)
        else:
            out = []
            size = 0
            while size < ENOUGH and self._is_frame_here():
                out.append(self._frame())
                size += len(out[-1])
            plain = out[0] if len(out) == 1 else b"".join(out)
            if size > LARGEST_PIECE:
                plain = self._cut(memoryview(plain))
        self.behind = bool(self._rest) or self._is_frame_here()
        if not self.behind and self._next == self._stop and len(self._buffer) > self._tail:
            raise CorruptData(f"`{len(self._buffer) - self._tail}` bytes behind the last frame")
        return plain

    def finish(self) -> bytes:
        rest = []
        while self.behind:
            rest.append(self.more())
        self._check_end()
        return b"".join(rest)

    def _cut(self, plain: memoryview) -> bytes:
        """Return the first bytes of ``plain``, and keep the others."""
        self._rest = plain[LARGEST_PIECE:]
        return bytes(plain[:LARGEST_PIECE])

    def _check_end(self) -> None:
        if self._next < self._stop:
            raise CorruptData(f"stream ends inside of frame {self._next}, expected {self._stop} frames")
        if len(self._buffer) != self._tail:
            raise CorruptData(f"stream ends inside of its index of {self._tail} bytes")
        if self._whole:
            if sum(self._seen) != self._layout.frames_end:
                raise CorruptData("frames are not as long as the record says")
            if self._tail and unpack_lengths(open_index(bytes(self._buffer))) != tuple(self._seen):
                raise CorruptData("index does not fit the frames")

    def _is_frame_here(self) -> bool:
        """Whether the next frame has arrived completely."""
        if self._next == self._stop or len(self._buffer) < HEADER_SIZE:
            return False
        return len(self._buffer) >= HEADER_SIZE + self._header()[0]

    def _header(self) -> tuple[int, bool, int, int]:
        """Return payload length, whether it is raw, plain length and CRC of the next frame, all checked."""
        number, plain, stored, crc = _HEADER.unpack_from(self._buffer)
        raw = bool(stored & _RAW)
        stored &= ~_RAW
        if number != self._next:
            raise CorruptData(f"frame `{number}`, expected {self._next}")
        if plain != self._layout.plain_length(number):
            raise CorruptData(f"frame {number} of `{plain}` bytes, expected {self._layout.plain_length(number)}")
        if not (stored == plain if raw else max(plain >> _RATIO_BITS, 1) <= stored < plain):
            raise CorruptData(f"frame {number} stores `{stored}` bytes for {plain}")
        if self._lengths is not None and stored + HEADER_SIZE != self._lengths[number]:
            raise CorruptData(f"frame {number} is not as long as its index says")
        return stored, raw, plain, crc

    def _frame(self) -> bytes:
        """Return the plain bytes of the next frame, which has arrived."""
        stored, raw, length, crc = self._header()
        end = HEADER_SIZE + stored
        try:
            with memoryview(self._buffer) as view, view[HEADER_SIZE:end] as payload:
                plain = bytes(payload) if raw else self._unpack(payload, length)
        except CorruptData as error:
            raise CorruptData(f"frame {self._next}: {error}") from error
        if len(plain) != length or isal_zlib.crc32(plain) != crc:
            raise CorruptData(f"frame {self._next} with a wrong checksum")
        del self._buffer[:end]
        self._seen.append(end)
        self._next += 1
        return plain
