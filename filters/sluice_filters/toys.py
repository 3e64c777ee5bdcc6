"""A toy filter with which chains and hosts are tested; never in the registry."""

from __future__ import annotations

from typing import Any, ClassVar

from sluice_core.describe import FILTER, ActionInfo
from sluice_filters.api import CorruptData, Filter, Hint, Record, Stream, Window

_KEY = 0x5A
_TABLE = bytes(value ^ _KEY for value in range(256))


class Xor(Filter):
    """One byte of head, then each byte XOR 0x5A: reversible, random access, no checksum."""

    info: ClassVar[ActionInfo] = ActionInfo(
        keyword="xor",
        kind=FILTER,
        help="a toy for tests: flip some bits behind one byte of head",
        stage=800,
        changes_content=True,
        changes_length=True,
        reversible=True,
        random_access=True,
    )

    def encoder(self, hint: Hint) -> Stream:
        return _Encoder()

    def decoder(self, record: Record, window: Window | None = None) -> Stream:
        size = self.plain_size(record)
        if window is None:
            return _Decoder(size, head=True)
        return _Decoder(window.length, head=False)

    def locate(self, record: Record, start: int, stop: int) -> Window:
        return Window(start + 1, stop + 1, 0, stop - start)


class _Encoder(Stream):
    def __init__(self) -> None:
        self._size = 0

    def feed(self, data: bytes) -> bytes:
        head = b"" if self._size else b"X"
        self._size += len(data)
        return head + data.translate(_TABLE)

    def finish(self) -> bytes:
        return b"" if self._size else b"X"

    def record(self) -> dict[str, Any]:
        return {"size": self._size}


class _Decoder(Stream):
    def __init__(self, size: int, head: bool) -> None:
        self._left = size
        self._head = head

    def feed(self, data: bytes) -> bytes:
        if self._head:
            if data[:1] != b"X":
                raise CorruptData("toy without its head")
            self._head = False
            data = data[1:]
        self._left -= len(data)
        if self._left < 0:
            raise CorruptData("toy is too long")
        return data.translate(_TABLE)

    def finish(self) -> bytes:
        if self._head or self._left:
            raise CorruptData("toy is too short")
        return b""
