"""PUT_BW: what clients upload."""

from __future__ import annotations

from typing import ClassVar

from sluice_core.describe import MetricInfo
from sluice_metrics.api import WITH_OBJECTS, Metric


class PutBw(Metric):
    """Counts the bytes of PUT bodies, while they run."""

    info: ClassVar[MetricInfo] = MetricInfo(
        "PUT_BW", "bytes_per_second", "bytes per second received from clients by PUT", WITH_OBJECTS
    )

    def received(self, method: str, size: int) -> float:
        return size if method == "PUT" else 0
