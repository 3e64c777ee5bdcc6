"""Filters that replace each byte by another, by a table that is its own inverse."""

from __future__ import annotations

from typing import Any, ClassVar

from sluice_filters.api import CorruptData, Filter, FilterError, Hint, Record, Stream, Window


class ByteMap(Filter):
    """Base of such filters.  Lengths and offsets do not change, so a range keeps its place.

    No checksum: a flipped bit on the disk is a flipped bit for the reader.
    """

    #: A table is looked up at some 300 MB/s.
    heavy: ClassVar[bool] = True

    def table(self) -> bytes:
        """256 bytes: the replacements of 0, of 1, of 2, …"""
        raise FilterError(f"filter `{self.info.keyword}` has no table")

    def table_of(self, record: Record) -> bytes:
        """Return the table by which an object was encoded.

        :raises CorruptData: when the record does not have it
        """
        return self.table()

    def said(self) -> dict[str, Any]:
        """The fields of a record that ``table_of`` needs."""
        return {}

    def encoder(self, hint: Hint) -> Stream:
        return _Map(self.table(), self.said())

    def decoder(self, record: Record, window: Window | None = None) -> Stream:
        size = self.plain_size(record)
        return _Unmap(self.table_of(record), size if window is None else window.length)

    def locate(self, record: Record, start: int, stop: int) -> Window:
        return Window(start, stop, 0, stop - start)


class _Map(Stream):
    def __init__(self, table: bytes, said: dict[str, Any]) -> None:
        self._table = table
        self._said = said
        self._size = 0

    def feed(self, data: bytes) -> bytes:
        self._size += len(data)
        return data.translate(self._table)

    def record(self) -> Record | None:
        return {"size": self._size, **self._said} if self._size else None


class _Unmap(Stream):
    def __init__(self, table: bytes, length: int) -> None:
        self._table = table
        self._left = length

    def feed(self, data: bytes) -> bytes:
        self._left -= len(data)
        if self._left < 0:
            raise CorruptData(f"stored object is `{-self._left}` bytes too long")
        return data.translate(self._table)

    def finish(self) -> bytes:
        if self._left:
            raise CorruptData(f"stored object is `{self._left}` bytes too short")
        return b""
