"""Quantiles of any number of values, from counts in logarithmic buckets.

The sketch is DDSketch's (Masson, Rim and Lee, "DDSketch: a fast and fully-mergeable quantile sketch with relative-error
guarantees", VLDB 2019), without its collapsing: bucket ``i`` counts the values in ``(g^(i-1), g^i]``, and a quantile is
computed within :data:`ERROR` of the exact one, in four digits.  Sketches of several sources are merged by adding up
their buckets, and the growth since a moment is the difference of two: a bucket is a running total like any other.

On the wire a sketch is a flat list ``[bucket, count, bucket, count, …]``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import chain
from math import ceil, log
from typing import Final

#: Relative error of a quantile.
ERROR: Final = 0.05
#: Values beyond these bounds are counted at the bound: 0.1 ms and about a day, for seconds.
SMALLEST: Final = 1e-4
LARGEST: Final = 1e5
_GROWTH: Final = (1 + ERROR) / (1 - ERROR)
_SCALE: Final = 1 / log(_GROWTH)
#: In units of its upper end, the value of a bucket from which both ends differ by :data:`ERROR`.
_MIDDLE: Final = 2 / (_GROWTH + 1)

#: Bucket → count.
Sketch = dict[int, float]
_NOTHING: Final[Mapping[int, float]] = {}
#: Granularity → path → sketch.
Sketches = dict[str, dict[str, Sketch]]


def find_bucket(value: float) -> int:
    """Return the bucket that counts ``value``."""
    if not SMALLEST < value < LARGEST:
        value = SMALLEST if value <= SMALLEST else LARGEST
    return ceil(log(value) * _SCALE)


def estimate_quantile(sketch: Mapping[int, float], quantile: float) -> float:
    """The smallest value that ``quantile`` (0 to 1) of all values do not exceed; ``sketch`` is not empty."""
    left = quantile * sum(sketch.values())
    bucket = 0
    for bucket, count in sorted(sketch.items()):  # noqa: B007  the last one when the sum was rounded down
        left -= count
        if left <= 1e-9:
            break
    return _value(bucket)


@cache
def _value(bucket: int) -> float:
    """Return the representative value of a bucket, in its significant digits."""
    return float(f"{_MIDDLE * _GROWTH**bucket:.4g}")


def estimate_quantiles(sketches: Sketches, quantile: float) -> dict[str, dict[str, float]]:
    """Granularity → path → that quantile of each sketch."""
    return {
        level: {path: estimate_quantile(sketch, quantile) for path, sketch in found.items()}
        for level, found in sketches.items()
    }


def pack(sketch: Mapping[int, float]) -> list[float]:
    """``sketch`` for the wire."""
    return list(chain.from_iterable(sketch.items()))


def unpack(packed: Sequence[float]) -> Sketch:
    """Return the sketch in ``packed``, which a message has checked."""
    return dict(zip(map(int, packed[::2]), packed[1::2], strict=True))


def merge(into: Sketch, counts: Iterable[tuple[int, float]]) -> None:
    """Add ``counts`` to a sketch."""
    for bucket, count in counts:
        into[bucket] = into.get(bucket, 0) + count


class SketchGrowth:
    """The growth of the sketches of a node's workers since the last window."""

    def __init__(self) -> None:
        self._grown: dict[str, dict[str, Sketch]] = {}

    def add(self, path: str, before: Mapping[str, Sketch], after: Mapping[str, Sketch]) -> None:
        """Add the growth of one row's sketches, by name; ``after`` has the buckets that changed."""
        for name, sketch in after.items():
            old = before.get(name, _NOTHING)
            grown = [(bucket, count - old.get(bucket, 0)) for bucket, count in sketch.items()]
            grown = [one for one in grown if one[1] > 0]
            if grown:
                merge(self._grown.setdefault(name, {}).setdefault(path, {}), grown)

    def close(self, period: float) -> dict[str, dict[str, Sketch]]:
        """Return name → path → counts divided by ``period`` seconds, and start the next window."""
        grown, self._grown = self._grown, {}
        if period == 1:
            return grown  # whole numbers, which are short on the wire
        return {
            name: {path: {bucket: count / period for bucket, count in one.items()} for path, one in found.items()}
            for name, found in grown.items()
        }
