"""Counts over a sliding time, in a ring of buckets."""

from __future__ import annotations

from collections import deque


class RecentCounts:
    """Sums of values of the last ``buckets`` times ``width`` seconds."""

    def __init__(self, width: float, buckets: int, values: int) -> None:
        self._width = width
        self._buckets = buckets
        self._values = values
        self._ring: deque[tuple[int, list[float]]] = deque()

    @property
    def seconds(self) -> float:
        """The time that sums are of."""
        return self._width * self._buckets

    def add(self, now: float, *values: float) -> None:
        """Add to the present bucket."""
        number = int(now // self._width)
        if not self._ring or self._ring[-1][0] != number:
            self._ring.append((number, [0.0] * self._values))
            self._forget(number)
        present = self._ring[-1][1]
        for place, value in enumerate(values):
            present[place] += value

    def sums(self, now: float) -> list[float]:
        """The sum of each value."""
        self._forget(int(now // self._width))
        return [sum(bucket[place] for _, bucket in self._ring) for place in range(self._values)]

    def _forget(self, number: int) -> None:
        while self._ring and self._ring[0][0] <= number - self._buckets:
            self._ring.popleft()
