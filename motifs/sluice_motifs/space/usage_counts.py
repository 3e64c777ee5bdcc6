"""What a space holds, and counts over a sliding time, in a ring of buckets."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from sluice_motifs.items import ItemState


@dataclass(slots=True)
class SpaceUsage:
    """Plain bytes and number of items by their state, kept by changes.

    Whoever counts an item out says what it was counted in as, so that sums cannot drift.
    """

    expanded_bytes: int = 0
    contracted_bytes: int = 0
    expanded_items: int = 0
    contracted_items: int = 0

    def count(self, item: ItemState, times: int) -> None:
        """Count an item in (1) or out (-1)."""
        if item.expanded:
            self.expanded_bytes += times * item.size
            self.expanded_items += times
        else:
            self.contracted_bytes += times * item.size
            self.contracted_items += times


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
