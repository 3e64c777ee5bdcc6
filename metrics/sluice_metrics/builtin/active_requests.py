"""ACTIVE_REQUESTS: requests at work now, of every method."""

from __future__ import annotations

from typing import ClassVar

from sluice_core.describe import MetricInfo
from sluice_metrics.api import Metric


class ActiveRequests(Metric):
    """One up when a request is let in, one down when it is over, cut off or not."""

    info: ClassVar[MetricInfo] = MetricInfo("ACTIVE_REQUESTS", "count", "requests at work now, of every method")
    gauge: ClassVar[bool] = True

    def admitted(self, method: str) -> float:
        return 1

    def ended(self, method: str) -> float:
        return -1
