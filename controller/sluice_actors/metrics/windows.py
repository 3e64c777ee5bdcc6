"""Closed windows of one metric: the value of all nodes per path, and the last few of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

CLOSE_DELAY: Final = 0.25
#: The longest wait for a node's batch, as a part of the period: batches of slow metrics are large.
_CLOSE_SHARE: Final = 1 / 50
#: The number of the last window before the first one.
NO_WINDOW: Final = -1
#: Policies over several metrics wait for the slowest of them.
_REMEMBERED: Final = 3

#: Granularity → path → value.
WindowValues = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True, slots=True)
class ClosedWindow:
    """A closed window of one metric; ``values`` has all its values."""

    metric: str
    window: int
    period: float
    values: WindowValues

    def at(self, granularity: str) -> Mapping[str, float]:
        """Path → value at ``granularity``."""
        return self.values.get(granularity, {})


class WindowHistory:
    """The last closed windows of one metric."""

    def __init__(self, metric: str) -> None:
        self.metric = metric
        self.period = 1.0
        #: The window closed last.
        self.through: int | None = None
        self._closed: dict[int, ClosedWindow] = {}

    def remember(self, closed: ClosedWindow) -> None:
        """Make ``closed`` the newest window."""
        self.through = closed.window
        self._closed[closed.window] = closed
        while len(self._closed) > _REMEMBERED:
            del self._closed[next(iter(self._closed))]

    def unreported(self, window: int) -> bool:
        """True when no node reports this metric, so that its value is silence and not unknown."""
        return False

    def closed(self, window: int, period: float) -> ClosedWindow | None:
        """The closed window for ``window`` of ``period``; of a slower metric the last valid one; None without any."""
        if self.period <= period:
            return self._closed.get(window)
        newest = self.last()
        if newest is None or newest.window + 2 * newest.period + self.close_delay(newest.period) < window:
            return None
        return newest

    def last(self) -> ClosedWindow | None:
        """The window closed last; None without any."""
        return next(reversed(self._closed.values()), None)

    def close_delay(self, period: float) -> float:
        """Seconds after the end of a window at which it is closed, whichever nodes are missing."""
        return max(CLOSE_DELAY, period * _CLOSE_SHARE)
