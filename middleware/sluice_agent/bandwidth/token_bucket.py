"""A token bucket: what may be moved at once grows at a rate, up to a depth; what does not fit any more overflows."""

from __future__ import annotations

import math
from typing import Final

#: Seconds of its rate that a bucket holds.
DEPTH: Final = 0.25


class Bucket:
    """Holds bytes; begins full.  Times are seconds on one monotonic clock, and never go back."""

    __slots__ = ("at", "level", "rate", "span")

    def __init__(self, rate: float, now: float, span: float = DEPTH) -> None:
        """
        :param rate: bytes per second, above 0
        :param span: seconds of that rate which fit in
        """
        self.rate = rate
        self.span = span
        self.level = rate * span
        self.at = now

    @property
    def depth(self) -> float:
        """Bytes that fit in."""
        return self.rate * self.span

    def settle(self, now: float) -> float:
        """Let in what came since the last time; what overflowed."""
        self.level += self.rate * max(now - self.at, 0.0)
        self.at = max(now, self.at)
        return self._overflow()

    def change(self, rate: float, now: float) -> float:
        """Go on at another rate; what overflowed, since a slower one holds less."""
        over = self.settle(now)
        self.rate = rate
        return over + self._overflow()

    def put(self, size: float) -> float:
        """Take ``size`` bytes back; what overflowed."""
        self.level += size
        return self._overflow()

    def ready(self, size: float) -> float:
        """When there will be ``size`` bytes, as much of them as fit in; a moment that may be over."""
        return self.at + max(min(size, self.depth) - self.level, 0.0) / self.rate

    def whole(self) -> int:
        """The whole bytes that there are."""
        return math.floor(self.level)

    def _overflow(self) -> float:
        over = self.level - self.depth
        if over <= 0:
            return 0.0
        self.level = self.depth
        return over
