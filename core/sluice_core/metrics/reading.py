"""Where a metric is read for a condition."""

from __future__ import annotations

from typing import NamedTuple


class Reading(NamedTuple):
    """A metric, and where it is read: ``path`` at ``level``; both are empty where that follows from the target."""

    metric: str
    level: str = ""
    path: str = ""

    @property
    def label(self) -> str:
        """The metric as a sentence names it."""
        return f"{self.metric} AT {self.path}" if self.path else self.metric
