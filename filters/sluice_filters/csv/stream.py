"""From a CSV object in pieces to the selected rows, with bounded memory.

Theory of operation.  Pieces are collected until they make a block of 1 MiB, or reach behind the last byte of the range;
its complete records are processed at once and the incomplete one at its end is kept for the next block.  ``_place`` is
the offset in the object of the first kept byte, where a record begins.  There are three ways to find the ends of
records, from fast to slow: by LF, if a line end always ends a record; else by the masked text; else by the dialect
itself.  With a range, reading may begin in the middle: the caller gives the offset, one before the first byte of the
range, and the bytes up to the first line end belong to another record.
"""

from __future__ import annotations

import functools
from dataclasses import replace
from types import ModuleType
from typing import Final

from sluice_filters.api import FilterError, Stream
from sluice_filters.csv import plain
from sluice_filters.csv.dialect import BYTE_ORDER_MARK
from sluice_filters.csv.mask import Masked, mask
from sluice_filters.csv.query import Plan, Query, make_plan

BLOCK: Final = 1 << 20
#: Greatest length of a record; a longer one has a quote that is never closed.
LONGEST: Final = 16 << 20


@functools.cache
def arrow_engine() -> ModuleType | None:
    """Return the vectorised engine, if pyarrow is installed; the worker that needs it imports it, after its fork."""
    try:
        from sluice_filters.csv import arrow
    except ImportError:
        return None
    return arrow


class CsvStream(Stream):
    """Takes an object in pieces, returns the rows that ``query`` selects."""

    def __init__(self, query: Query, start: int = 0, vectorised: bool = True, block: int = BLOCK) -> None:
        """
        :param start: offset in the object of the first byte; not 0 only without names and joined lines
        :param vectorised: whether pyarrow may be used if it is installed
        :param block: number of bytes processed at once
        """
        self._query = query
        self._dialect = query.dialect
        #: In masked text each line end ends a record.
        self._unquoted = replace(query.dialect, quote=b"")
        self._engine = arrow_engine() if vectorised else None
        self._block = self.gather = block
        self._kept = 0
        self._pieces: list[bytes] = []
        self._size = 0
        self._place = start
        self._begun = start > 0
        self._cut_in = start > 0
        self._header = query.has_header and start == 0
        #: The columns' names, once the header has been read.
        self.names: tuple[str, ...] | None = None
        self._plan: Plan | None = None if self._header else make_plan(query, None)

    def feed(self, data: bytes) -> bytes:
        if self.done:
            return b""
        self._pieces.append(data)
        self._size += len(data)
        if self._size < 2 * self._kept or (self._size < self._block and not self._reached(data)):
            return b""  # twice the kept size, so that a long record is not scanned at every piece
        return self._work(final=False)

    def finish(self) -> bytes:
        return b"" if self.done else self._work(final=True)

    def _reached(self, data: bytes) -> bool:
        """Whether the last record of the range may be complete."""
        last = self._query.last
        return last is not None and self._place + self._size > last and b"\n" in data

    def _work(self, final: bool) -> bytes:
        text = b"".join(self._pieces)
        if final and text and not text.endswith(b"\n"):
            text += b"\n"
        text, head, ready = self._begin(text)
        if not ready:
            self._keep(text, final)
            return head
        return head + self._rows(text, final)

    def _begin(self, text: bytes) -> tuple[bytes, bytes, bool]:
        """Return (rest, header to write, ready?) without the bytes before the first record."""
        if not self._begun and (len(text) >= len(BYTE_ORDER_MARK) or text.endswith(b"\n")):
            self._begun = True
            if text.startswith(BYTE_ORDER_MARK):
                text = self._passed(text, len(BYTE_ORDER_MARK))
        if self._cut_in and b"\n" in text:  # the end of a record that belongs to another range
            self._cut_in = False
            text = self._passed(text, text.index(b"\n") + 1)
        head = b""
        if self._header and self._begun:
            head, end = self._heading(text)
            text = self._passed(text, end)
        return text, head, self._begun and not self._cut_in and not self._header

    def _passed(self, text: bytes, size: int) -> bytes:
        self._place += size
        return text[size:]

    def _heading(self, text: bytes) -> tuple[bytes, int]:
        """Return the header as it is written, and its end; empty lines before it are skipped."""
        start = 0
        for end in self._dialect.ends(text):
            record = text[start:end].removesuffix(b"\n").removesuffix(b"\r")
            if record:
                break
            start = end
        else:
            return b"", start
        self._header = False
        if self._query.header in ("yes", "use"):
            values = map(self._dialect.value, self._dialect.fields(record))
            self.names = tuple(value.decode("utf-8", "replace") for value in values)
        self._plan = make_plan(self._query, self.names)
        if self._query.header != "yes" or not self._query.begins(self._place + start):
            return b"", end
        return plain.select(self._plan.heading(), record + b"\n"), end

    def _rows(self, text: bytes, final: bool) -> bytes:
        """Return the selection from the complete records in ``text``; the rest is kept."""
        assert self._plan is not None
        joins = self._dialect.joins_lines(text)
        if joins and self._engine is not None and self._query.last is None and self._place >= self._query.first:
            lines = text.rfind(b"\n") + 1
            kept: bytes | None = self._engine.select_lines(self._plan, text[:lines]) if lines else None
            if kept is not None:  # each line is a record
                self._place += lines
                self._keep(text[lines:], final)
                return kept
        masked = mask(self._dialect, text) if joins and self._engine is not None else None
        if final and masked is not None and not masked.text.endswith(b"\n"):
            masked = None  # a quoted field without its end
        begin, end, complete = self._find_range(text, masked, final)
        self._place += complete
        self._keep(text[complete:], final)
        if masked is not None:
            masked = replace(masked, text=masked.text[begin:end])
        return self._selected(text[begin:end], masked)

    def _find_range(self, text: bytes, masked: Masked | None, final: bool) -> tuple[int, int, int]:
        """Return begin and end of the complete records of ``text`` in the range, and the end of all complete ones."""
        dialect, ends = (self._dialect, text) if masked is None else (self._unquoted, masked.text)
        complete = len(text) if final else dialect.complete(ends)
        begin = dialect.first_from(ends, min(self._query.first - self._place, complete))
        end, last = complete, self._query.last
        if last is not None and self._place + complete > last:
            end = min(dialect.first_from(ends, max(last + 1 - self._place, 0)), complete)
            self.done = True
        return begin, max(begin, end), complete

    def _selected(self, text: bytes, masked: Masked | None) -> bytes:
        assert self._plan is not None
        kept: bytes | None = None
        if text and self._engine is not None:
            if masked is not None:
                kept = self._engine.select_masked(self._plan, masked)
            else:
                kept = self._engine.select(self._plan, text)
        return plain.select(self._plan, text) if kept is None else kept

    def _keep(self, rest: bytes, final: bool) -> None:
        if len(rest) > LONGEST:
            raise FilterError(f"a record of more than {LONGEST} bytes at byte {self._place}: is a quote never closed")
        self._pieces = [rest] if rest and not final else []
        self._size = self._kept = sum(map(len, self._pieces))
