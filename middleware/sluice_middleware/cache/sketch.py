"""How often objects were requested lately, including those that are not cached: a count-min sketch in a file.

Two windows of four rows of 65,536 bytes; a count is the least of four bytes, chosen by parts of the
digest, summed over this window and the one before.  All workers of the node share it; a lost update between
two workers does not matter.
"""

from __future__ import annotations

import mmap
import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from sluice_core.cache.mapped_file import map_file

_ROWS: Final = 4
_WIDTH: Final = 1 << 16
_WINDOW: Final = _ROWS * _WIDTH
_HEADER: Final = 4096
_MAGIC: Final = int.from_bytes(b"sluiSKT1", "little")
_PARTS: Final = struct.Struct("<4H")
_WORD: Final = struct.Struct("<Q")
_NOW_AT: Final = 8
_MOST: Final = 255
#: Seconds of a window; admission counts the requests of the present window and the one before.
SECONDS: Final = 60.0


class CountMinSketch:
    """Counts per window of :data:`SECONDS`."""

    def __init__(self, memory: mmap.mmap, clock: Callable[[], float] = time.time) -> None:
        self._memory = memory
        self._clock = clock

    def add(self, key: bytes) -> int:
        """Count a request for the object; return the count, this request included."""
        now = self._turn()
        here, before = self._places(key, now), self._places(key, now - 1)
        counts = [self._memory[place] for place in here]
        least = min(counts)
        for place, count in zip(here, counts, strict=True):
            if count == least < _MOST:
                self._memory[place] = count + 1
        return least + 1 + min(self._memory[place] for place in before)

    def count(self, key: bytes) -> int:
        """The number of requests."""
        now = self._turn()
        return sum(min(self._memory[place] for place in self._places(key, one)) for one in (now, now - 1))

    def close(self) -> None:
        """Close the file."""
        self._memory.close()

    def _turn(self) -> int:
        """Return the present window; the first caller in a new window clears its counts."""
        now = int(self._clock() / SECONDS)
        seen: int = _WORD.unpack_from(self._memory, _NOW_AT)[0]
        if seen != now:
            _WORD.pack_into(self._memory, _NOW_AT, now)
            self._clear(now)
            if seen != now - 1:
                self._clear(now - 1)
        return now

    def _clear(self, window: int) -> None:
        first = _HEADER + window % 2 * _WINDOW
        self._memory[first : first + _WINDOW] = bytes(_WINDOW)

    @staticmethod
    def _places(key: bytes, window: int) -> list[int]:
        first = _HEADER + window % 2 * _WINDOW
        return [first + row * _WIDTH + part for row, part in enumerate(_PARTS.unpack_from(key))]


def open_sketch(path: Path) -> CountMinSketch:
    """The sketch at ``path``.

    :raises OSError: when the disk has no room for it, or permission is missing
    """
    return CountMinSketch(map_file(path, _HEADER + 2 * _WINDOW, _MAGIC))
