"""THROUGHPUT: uploads and downloads together."""

from __future__ import annotations

from typing import ClassVar

from sluice_core.describe import MetricInfo
from sluice_metrics.api import WITH_OBJECTS, Metric


class Throughput(Metric):
    """Counts the bytes of PUT bodies and of GET answers, while they run."""

    info: ClassVar[MetricInfo] = MetricInfo(
        "THROUGHPUT", "bytes_per_second", "bytes per second of GET and PUT, both directions together", WITH_OBJECTS
    )

    def received(self, method: str, size: int) -> float:
        return size if method == "PUT" else 0

    def sent(self, method: str, size: int) -> float:
        return size if method == "GET" else 0
