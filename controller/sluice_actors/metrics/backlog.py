"""The batches of the last seconds as they came, not decoded.

Whoever takes over from a host that is gone finds here what that one saw last.  Keeping bytes costs next to nothing;
only batches of metrics that are used here are decoded.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Final

from sluice_core.errors import DecodeError
from sluice_core.messages.nodes import MetricBatch

#: Longer than it takes until a host is missed and its work is taken over.
KEPT: Final = 12.0
#: Of one metric; with more, fewer seconds are kept.
BYTES: Final = 64 * 1024 * 1024


class Backlog:
    """Raw batches by metric, in the order in which they came."""

    def __init__(self) -> None:
        self._raw: dict[str, deque[tuple[float, bytes]]] = {}
        self._sizes: dict[str, int] = {}

    def add(self, metric: str, body: bytes, now: float, kept: float = KEPT) -> None:
        """Keep one; what is older than ``kept`` seconds, or too much, goes."""
        raw = self._raw.setdefault(metric, deque())
        raw.append((now, body))
        size = self._sizes.get(metric, 0) + len(body)
        while raw and (size > BYTES or not now - kept <= raw[0][0] <= now):
            size -= len(raw.popleft()[1])
        self._sizes[metric] = size

    def since(self, metric: str, moment: float) -> list[tuple[float, bytes]]:
        """When they came, and the bytes, of all that came after ``moment``."""
        return [one for one in self._raw.get(metric, ()) if one[0] > moment]

    def decoded(self, metric: str, moment: float) -> Iterator[tuple[float, MetricBatch]]:
        """The same, decoded one by one; others are left out (the hub has complained of them)."""
        for came, body in self.since(metric, moment):
            try:
                batch = MetricBatch.decode(body)
            except DecodeError:
                continue
            yield came, batch
