"""How long the history of a metric is stored in which resolution, and how a point is packed.

Theory of operation

* A series has a *ring* in each resolution: a Redis string with a slot for each step of the stored time.
  The slot of a time is ``time // step % slots``, so a ring never grows and old points are overwritten.
* Each resolution has a *clock* beside its rings, which all series share: for each slot the time that was written
  there.  A slot is valid if the clock has its time.  Otherwise its content is from an earlier round, and the slot is a
  gap.
* A point of the finest resolution is a float32.  One of the others is :data:`SUMMARY`: the lowest and the highest
  value as float32, mean and 95th percentile as 16-bit fractions of the way between these.  So a constant line is
  exact.
* All bits of a point are stored inverted.  A slot that was never written reads as zero bytes, which decode to NaN: a
  gap, as is the point of a step without a value.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

VALUE: Final = struct.Struct("<f")
SUMMARY: Final = struct.Struct("<ffHH")
#: Seconds since 1970 in a slot of a clock.
TIME: Final = struct.Struct("<I")
#: Represents the whole way from the lowest to the highest value.
FRACTIONS: Final = 0xFFFF
_INVERTED: Final = bytes(one ^ 0xFF for one in range(256))


class Point(NamedTuple):
    """The values of a series in one step; ``p95`` is None when it is not known."""

    mean: float
    low: float
    high: float
    p95: float | None


@dataclass(frozen=True, slots=True)
class Resolution:
    """Points of ``step`` seconds, of which the newest ``slots`` are kept."""

    step: int
    slots: int

    @property
    def seconds(self) -> int:
        """How long points are stored, in seconds."""
        return self.step * self.slots

    @property
    def point_size(self) -> int:
        """Bytes of a point."""
        return VALUE.size if self.step == 1 else SUMMARY.size

    def slot(self, at: int) -> int:
        """The slot of the step that begins at ``at``."""
        return at // self.step % self.slots

    def unpack(self, raw: bytes) -> Iterator[Point | None]:
        """Yield the points in a part of a ring; None for gaps."""
        plain = raw[: len(raw) // self.point_size * self.point_size].translate(_INVERTED)
        if self.step == 1:
            return (_of_value(value) for (value,) in VALUE.iter_unpack(plain))
        return (_of_summary(*fields) for fields in SUMMARY.iter_unpack(plain))


#: Finest first; each step is a multiple of the one before.
RESOLUTIONS: Final = (Resolution(1, 600), Resolution(10, 2160), Resolution(60, 10_080))
#: Bytes of a series in Redis, with its three keys and the allocator's overhead; measured by
#: ``benchmarks/control_plane/metric_history.py``.
SERIES_BYTES: Final = 170_000


def invert(raw: bytes) -> bytes:
    """Return the stored form of plain points, or plain points of the stored form."""
    return raw.translate(_INVERTED)


def times_of(raw: bytes) -> list[int]:
    """The times in a part of a clock."""
    return [one for (one,) in TIME.iter_unpack(raw[: len(raw) // TIME.size * TIME.size])]


def combine(points: Iterable[Point | None]) -> Point | None:
    """Return several steps as one: the mean of the means; None when all are gaps.

    The 95th percentile of several steps is not known.
    """
    known = [one for one in points if one is not None]
    if not known:
        return None
    mean = math.fsum(one.mean for one in known) / len(known)
    return Point(mean, min(one.low for one in known), max(one.high for one in known), None)


def _of_value(value: float) -> Point | None:
    return None if math.isnan(value) else Point(value, value, value, None)


def _of_summary(low: float, high: float, mean: int, p95: int) -> Point | None:
    if math.isnan(low):
        return None
    way = (high - low) / FRACTIONS
    return Point(low + mean * way, low, high, low + p95 * way)
