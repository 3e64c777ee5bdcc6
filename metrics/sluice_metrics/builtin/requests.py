"""GETS_SEC, PUTS_SEC and ACTIVE_REQUESTS: requests that Swift let in."""

from __future__ import annotations

from typing import ClassVar

from sluice_core.describe import MetricInfo
from sluice_metrics.api import WITH_OBJECTS, Metric


class GetsSec(Metric):
    """Counts GETs that Swift let in."""

    info: ClassVar[MetricInfo] = MetricInfo("GETS_SEC", "per_second", "GETs per second", WITH_OBJECTS)

    def admitted(self, method: str) -> float:
        return 1 if method == "GET" else 0


class PutsSec(Metric):
    """Counts PUTs that Swift let in."""

    info: ClassVar[MetricInfo] = MetricInfo("PUTS_SEC", "per_second", "PUTs per second", WITH_OBJECTS)

    def admitted(self, method: str) -> float:
        return 1 if method == "PUT" else 0


class ActiveRequests(Metric):
    """One up when a request is let in, one down when it is over, cut off or not."""

    info: ClassVar[MetricInfo] = MetricInfo("ACTIVE_REQUESTS", "count", "requests at work now, of every method")
    gauge: ClassVar[bool] = True

    def admitted(self, method: str) -> float:
        return 1

    def ended(self, method: str) -> float:
        return -1
