"""Streams in a row, slices of a stream, whole streams at once, and streams that need a whole object."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import ClassVar, Final, Self

from sluice_core.describe import Parameter
from sluice_filters.stream import CorruptData, FilterError, Stream

_MIB: Final = 1 << 20
#: The parameter of filters that use a :class:`Collected` object.
MAX_SIZE: Final = Parameter(
    "max_size",
    "size",
    "larger objects are refused: one is held in memory",
    64 * _MIB,
    minimum=1,
    maximum=256 * _MIB,
)


def run(stream: Stream, pieces: Iterable[bytes]) -> bytes:
    """Return all output of ``stream`` for ``pieces``, ``finish`` included; empty pieces are not fed."""
    out = [stream.feed(piece) for piece in pieces if piece]
    out.append(stream.finish())
    return b"".join(out)


def cut(data: bytes, size: int) -> Iterator[bytes]:
    """Yield ``data`` in pieces of ``size`` bytes."""
    return (data[begin : begin + size] for begin in range(0, len(data), size))


class Pipe(Stream):
    """Several streams in a row, as one stream."""

    def __init__(self, stages: Sequence[Stream]) -> None:
        self._stages = tuple(stages)
        self.gather = self._stages[0].gather if self._stages else 0

    def feed(self, data: bytes) -> bytes:
        for stage in self._stages:
            data = stage.feed(data)
            if stage.done:
                self.done = True
            if not data:
                return b""
        return data

    def finish(self) -> bytes:
        data = b""
        for stage in self._stages:
            out = stage.feed(data) if data else b""
            data = out + stage.finish()
        return data


class DecoderPipe(Pipe):
    """Decoders in a row, each of which receives at most ``STEP`` bytes of another's output at once.

    This bounds the memory for an object that was compressed several times: ``feed`` returns the output of a part of its
    input, and ``behind`` is True while there is more, also of a stage that is behind itself.
    """

    STEP: ClassVar[int] = 64 << 10

    def __init__(self, stages: Sequence[Stream]) -> None:
        super().__init__(stages)
        self._waiting: list[bytes | memoryview] = [b""] * len(self._stages)

    @classmethod
    def flattened(cls, *streams: Stream) -> Self:
        """Join all ``streams`` to one pipe; a stream that is such a pipe is replaced by its stages."""
        return cls([part for stream in streams for part in (stream._stages if isinstance(stream, cls) else (stream,))])

    def feed(self, data: bytes) -> bytes:
        if not self._stages:
            return data
        self._waiting[0] = bytes(self._waiting[0]) + data if self._waiting[0] else data
        return self.more()

    def more(self) -> bytes:
        data = b""
        self.behind = True
        while not data and self.behind:
            data = self._advance(max(filter(self._has_work, range(len(self._stages)))))
            self.behind = any(map(self._has_work, range(len(self._stages))))
        return data

    def finish(self) -> bytes:
        rest = []
        while self.behind:
            rest.append(self.more())
        return b"".join([*rest, super().finish()])

    def _has_work(self, number: int) -> bool:
        return bool(self._waiting[number]) or self._stages[number].behind

    def _advance(self, begin: int) -> bytes:
        """Return the next output of stage ``begin``, the last one with work, through the stages behind it."""
        data = b""
        for number in range(begin, len(self._stages)):
            stage = self._stages[number]
            if number > begin:
                self._waiting[number] = data
            data = stage.more() if stage.behind else stage.feed(self._next_piece(number))
            if stage.done:
                self.done = True
            if not data:
                break
        return data

    def _next_piece(self, number: int) -> bytes:
        waiting, self._waiting[number] = self._waiting[number], b""
        if number and len(waiting) > self.STEP:
            view = memoryview(waiting)
            waiting, self._waiting[number] = view[: self.STEP], view[self.STEP :]
        return bytes(waiting)


class Slice(Stream):
    """Drops the first ``skip`` bytes, passes ``length`` on, drops the rest."""

    def __init__(self, skip: int, length: int) -> None:
        self._skip = skip
        self._length = length

    def feed(self, data: bytes) -> bytes:
        begin = min(self._skip, len(data))
        self._skip -= begin
        out = data[begin : begin + self._length]
        self._length -= len(out)
        return out

    def finish(self) -> bytes:
        if self._length:
            raise CorruptData(f"range ends `{self._length}` bytes early")
        return b""


class Collected(Stream):
    """Holds one object, and returns at its end the result of ``convert``; an empty object stays empty."""

    gather: int = _MIB

    def __init__(self, keyword: str, limit: int, convert: Callable[[bytes], bytes]) -> None:
        """
        :param limit: bytes of the largest object
        """
        self._keyword = keyword
        self._limit = limit
        self._convert = convert
        self._held = bytearray()

    def feed(self, data: bytes) -> bytes:
        if len(self._held) + len(data) > self._limit:
            raise FilterError(f"`{self._keyword}` takes objects of at most {self._limit} bytes (`max_size`)")
        self._held += data
        return b""

    def finish(self) -> bytes:
        held, self._held = bytes(self._held), bytearray()
        return self._convert(held) if held else b""
