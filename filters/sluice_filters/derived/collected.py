"""A stream that needs its whole object before it gives a byte."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from sluice_core.describe import Parameter
from sluice_filters.api import FilterError, Stream

_MIB: Final = 1 << 20
MAX_SIZE: Final = Parameter(
    "max_size",
    "size",
    "larger objects are refused: one is held in memory",
    64 * _MIB,
    minimum=1,
    maximum=256 * _MIB,
)


class Collected(Stream):
    """Holds one object, and gives at its end what ``convert`` makes of it; of no bytes, none."""

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
