"""GET_BW: what clients download."""

from __future__ import annotations

from typing import ClassVar

from sluice_core.describe import MetricInfo
from sluice_metrics.api import WITH_OBJECTS, Metric


class GetBw(Metric):
    """Counts the bytes of GET answers, while they run."""

    info: ClassVar[MetricInfo] = MetricInfo("GET_BW", "bytes_per_second", "bytes per second sent by GET", WITH_OBJECTS)

    def sent(self, method: str, size: int) -> float:
        return size if method == "GET" else 0
