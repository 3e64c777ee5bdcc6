"""GET_BW, PUT_BW and THROUGHPUT: bytes of clients, counted during the transfer."""

from __future__ import annotations

from typing import ClassVar

from sluice_core.describe import MetricInfo
from sluice_metrics.api import WITH_OBJECTS, Metric


class GetBw(Metric):
    """Counts the bytes of GET answers, during the transfer."""

    info: ClassVar[MetricInfo] = MetricInfo("GET_BW", "bytes_per_second", "bytes per second sent by GET", WITH_OBJECTS)

    def sent(self, method: str, size: int) -> float:
        return size if method == "GET" else 0


class PutBw(Metric):
    """Counts the bytes of PUT bodies, during the transfer."""

    info: ClassVar[MetricInfo] = MetricInfo(
        "PUT_BW", "bytes_per_second", "bytes per second received from clients by PUT", WITH_OBJECTS
    )

    def received(self, method: str, size: int) -> float:
        return size if method == "PUT" else 0


class Throughput(Metric):
    """Counts the bytes of PUT bodies and of GET answers, during the transfer."""

    info: ClassVar[MetricInfo] = MetricInfo(
        "THROUGHPUT", "bytes_per_second", "bytes per second of GET and PUT, both directions together", WITH_OBJECTS
    )

    def received(self, method: str, size: int) -> float:
        return size if method == "PUT" else 0

    def sent(self, method: str, size: int) -> float:
        return size if method == "GET" else 0
