"""The page of shared memory of a volume: its limits, its log switch and its counters.

``native/page.h`` is the layout; the filters *nop*, *throttle* and *pending* of an nbdkit process map the same file.
Every field is a 64-bit number that is read and written atomically, through a memoryview of 64-bit items.  Fields are
independent, so two of them may be from different moments.
"""

from __future__ import annotations

import mmap
import os
import sys
import time
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Final, Self

from sluice_core.errors import CallerError

SIZE: Final = 4096
MAGIC: Final = 0x31454741504C5653
VERSION: Final = 1
#: Buckets of a histogram: four to each power of two from 2**10 to 2**36 ns, one below and one above.
FIRST_POWER: Final = 10
LAST_POWER: Final = 36
BUCKETS: Final = (LAST_POWER - FIRST_POWER) * 4 + 2

#: Offsets in bytes.
MAGIC_AT: Final = 0
VERSION_AT: Final = 8
LIMITS_AT: Final = 64
LOG_AT: Final = 112
WAITED_AT: Final = 128
COUNTERS_AT: Final = 192
READ_HISTOGRAM_AT: Final = 288
WRITE_HISTOGRAM_AT: Final = READ_HISTOGRAM_AT + 8 * BUCKETS
#: Begins of the unanswered requests that *pending* passed on, in a cache line of its own.
PENDING_AT: Final = (WRITE_HISTOGRAM_AT + 8 * BUCKETS + 63) // 64 * 64
PENDING: Final = 64

_LARGEST: Final = 2**64 - 1


class BadPage(CallerError):
    """A file that is not a page of a volume, or of another version."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Bytes and operations per second of reads, of writes, and of both together; 0 is no limit.

    The order is the page's.
    """

    read_bytes: int = 0
    read_ops: int = 0
    write_bytes: int = 0
    write_ops: int = 0
    both_bytes: int = 0
    both_ops: int = 0


@dataclass(frozen=True, slots=True)
class Histogram:
    """Number of requests per duration, by bucket; two readings can be subtracted."""

    buckets: tuple[int, ...] = (0,) * BUCKETS

    def __sub__(self, earlier: Self) -> Self:
        """Return the growth since ``earlier``."""
        return type(self)(tuple(new - old for new, old in zip(self.buckets, earlier.buckets, strict=True)))

    def quantile(self, fraction: float) -> float | None:
        """Return the seconds that ``fraction`` of the requests did not exceed, within an eighth; None without requests.

        :param fraction: 0 to 1
        """
        total = sum(self.buckets)
        if total == 0:
            return None
        seen = 0
        for number, count in enumerate(self.buckets):
            seen += count
            if count and seen >= fraction * total:
                return bucket_seconds(number)
        raise ValueError(f"fraction is `{fraction}`, expected 0 to 1")


def bucket_seconds(number: int) -> float:
    """Return the middle of a bucket; for the last one, which has no end, its beginning."""
    if number == 0:
        return float(2**FIRST_POWER) / 2e9
    power, quarter = divmod(number - 1, 4)
    width = 2 ** (FIRST_POWER + power) / 4
    middle = 0.0 if number == BUCKETS - 1 else 0.5
    return float(width * (4 + quarter + middle)) / 1e9


@dataclass(frozen=True, slots=True)
class Counters:
    """The counts of *nop* since the page was made, and ``waited``, which *throttle* counts.  The order is the page's.

    ``under_way`` is the number of unanswered requests, ``busy`` the total seconds of the answered ones, ``waited`` the
    part of these in which they waited for a limit.  Bytes are those of requests that succeeded.
    """

    under_way: int
    busy: float
    reads: int
    read_bytes: int
    writes: int
    written_bytes: int
    flushes: int
    trims: int
    zeroes: int
    errors_eio: int
    errors_enospc: int
    errors_other: int
    waited: float
    read_latency: Histogram
    write_latency: Histogram


#: The fields of :class:`Counters` between ``busy`` and ``waited``.
_COUNTS: Final = Counters.__slots__[2:12]


class Page:
    """A mapped page; :meth:`close` it."""

    def __init__(self, memory: mmap.mmap) -> None:
        self._memory = memory
        self._words = memoryview(memory).cast("Q")

    @classmethod
    def create(cls, file: Path) -> Self:
        """Make a page without limits, complete when it appears under its name.

        :raises FileExistsError: when the file exists
        """
        temporary = file.with_name(f"{file.name}.{os.getpid()}.new")
        temporary.unlink(missing_ok=True)
        try:
            with open(temporary, "xb", opener=lambda name, flags: os.open(name, flags, 0o600)) as target:
                words = MAGIC.to_bytes(8, "little") + VERSION.to_bytes(8, "little")
                target.write(words.ljust(SIZE, b"\0"))
            os.link(temporary, file)
        finally:
            temporary.unlink(missing_ok=True)
        return cls.open(file)

    @classmethod
    def open(cls, file: Path) -> Self:
        """Map an existing page.

        :raises FileNotFoundError: when it is missing
        :raises BadPage: when the file is not a page
        """
        if sys.byteorder != "little":
            raise BadPage("the page is little-endian, and this machine is not")
        with open(file, "r+b") as source:
            size = os.fstat(source.fileno()).st_size
            if size != SIZE:
                raise BadPage(f"`{file}` has {size} bytes, expected {SIZE}")
            page = cls(mmap.mmap(source.fileno(), SIZE))
        magic, version = page._word(MAGIC_AT), page._word(VERSION_AT)
        if magic == MAGIC and version == VERSION:
            return page
        page.close()
        if magic != MAGIC:
            raise BadPage(f"`{file}` is no page of a volume: its magic number is {magic:#x}, expected {MAGIC:#x}")
        raise BadPage(f"`{file}` is a page of version {version}, expected {VERSION}")

    def close(self) -> None:
        """Unmap the memory; the file stays."""
        self._words.release()
        self._memory.close()

    def set_limits(self, limits: Limits) -> None:
        """Apply limits at once, also to waiting requests.

        :raises CallerError: when one is negative or has more than 64 bits; nothing is changed then
        """
        values = astuple(limits)
        for name, value in zip(Limits.__slots__, values, strict=True):
            if not 0 <= value <= _LARGEST:
                raise CallerError(f"the limit {name} is `{value}`, expected 0 (none) to {_LARGEST}")
        for number, value in enumerate(values):
            self._words[LIMITS_AT // 8 + number] = value

    def limits(self) -> Limits:
        """Return the limits in force."""
        return Limits(*self._range(LIMITS_AT, len(Limits.__slots__)))

    def reset_under_way(self) -> None:
        """Reset the number of requests in progress; for a caller that has ended every nbdkit with the page."""
        self._words[COUNTERS_AT // 8] = 0
        for number in range(PENDING):
            self._words[PENDING_AT // 8 + number] = 0

    def oldest_pending(self) -> float:
        """Return for how many seconds the oldest request that *pending* passed on waits; 0 without one."""
        began = [one for one in self._range(PENDING_AT, PENDING) if one]
        return max(0.0, time.monotonic() - min(began) / 1e9) if began else 0.0

    def set_log(self, on: bool) -> None:
        """Switch the log of requests on or off; *nop* has one if it was started with ``nop-log``."""
        self._words[LOG_AT // 8] = int(on)

    def counters(self) -> Counters:
        """Return the present counts."""
        under_way, busy_ns, *counts = self._range(COUNTERS_AT, 12)
        return Counters(
            under_way=under_way,
            busy=busy_ns / 1e9,
            **dict(zip(_COUNTS, counts, strict=True)),
            waited=self._word(WAITED_AT) / 1e9,
            read_latency=Histogram(self._range(READ_HISTOGRAM_AT, BUCKETS)),
            write_latency=Histogram(self._range(WRITE_HISTOGRAM_AT, BUCKETS)),
        )

    def _word(self, offset: int) -> int:
        return self._words[offset // 8]

    def _range(self, offset: int, count: int) -> tuple[int, ...]:
        # item by item: a slice's copy might be made of smaller pieces
        return tuple(self._words[offset // 8 + number] for number in range(count))
