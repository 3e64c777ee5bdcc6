"""A token bucket: tokens (bytes) accumulate at a rate up to a size; what exceeds the size overflows."""

from __future__ import annotations

import math
from typing import Final

#: The size of a bucket, in seconds of its rate.
BURST_SECONDS: Final = 0.25


class TokenBucket:
    """Starts full.  Times are seconds of one monotonic clock and never decrease; sizes are bytes."""

    __slots__ = ("rate", "tokens", "updated_at")

    def __init__(self, rate: float, now: float) -> None:
        """
        :param rate: bytes per second, above 0
        """
        self.rate = rate
        self.tokens = self.size
        self.updated_at = now

    @property
    def size(self) -> float:
        """The most tokens that the bucket holds."""
        return self.rate * BURST_SECONDS

    def refill(self, now: float) -> float:
        """Add the tokens since the last refill.

        :return: the overflow, in bytes
        """
        self.tokens += self.rate * max(now - self.updated_at, 0.0)
        self.updated_at = max(now, self.updated_at)
        return self._overflow()

    def set_rate(self, rate: float, now: float) -> float:
        """Refill at the old rate, then use another one.

        :return: the overflow, in bytes: a slower bucket is smaller
        """
        overflow = self.refill(now)
        self.rate = rate
        return overflow + self._overflow()

    def put_back(self, count: float) -> float:
        """Return ``count`` tokens to the bucket.

        :return: the overflow, in bytes
        """
        self.tokens += count
        return self._overflow()

    def ready_at(self, count: float) -> float:
        """The moment at which the bucket holds ``count`` tokens, or is full; it may have passed."""
        return self.updated_at + max(min(count, self.size) - self.tokens, 0.0) / self.rate

    def whole_tokens(self) -> int:
        """The tokens, rounded down; negative while the bucket is in debt."""
        return math.floor(self.tokens)

    def _overflow(self) -> float:
        overflow = self.tokens - self.size
        if overflow <= 0:
            return 0.0
        self.tokens = self.size
        return overflow
