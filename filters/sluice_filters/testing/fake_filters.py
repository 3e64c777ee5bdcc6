"""A toy filter and a toy ring of keys for tests of chains and hosts; not in the registry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from sluice_core.describe import FILTER, ActionInfo
from sluice_filters.api import CorruptData, Filter, Hint, Record, Stream, Window
from sluice_filters.key_ring import MissingKey

_KEY = 0x5A
_TABLE = bytes(value ^ _KEY for value in range(256))


class HeadedXor(Filter):
    """One byte of header, then each byte XOR 0x5A: reversible, random access, no checksum.

    Unlike the shipped filter of this name its output is longer than the input, and every byte moves.
    """

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


class FakeKeyRing:
    """A ring under a test's control: ``secrets`` may be changed at any time, ``use`` names the active one."""

    def __init__(self, secrets: Mapping[str, bytes] | None = None, use: str = "k1") -> None:
        self.secrets = dict({"k1": b"1" * 32} if secrets is None else secrets)
        self.use = use

    def active(self) -> str:
        if not self.use:
            raise MissingKey("no active key in this test")
        return self.use

    def secret(self, key_id: str) -> bytes:
        if key_id not in self.secrets:
            raise MissingKey(f"no key `{key_id}` in this test")
        return self.secrets[key_id]
