"""GETS_SEC, PUTS_SEC and ACTIVE_REQUESTS: requests that Swift authorized."""

from __future__ import annotations

from typing import ClassVar

from sluice_core.describe import MetricInfo
from sluice_metrics.api import WITH_OBJECTS, Metric


class GetsSec(Metric):
    """Counts GETs that Swift authorized."""

    info: ClassVar[MetricInfo] = MetricInfo("GETS_SEC", "per_second", "GETs per second", WITH_OBJECTS)

    def admitted(self, method: str) -> float:
        return 1 if method == "GET" else 0


class PutsSec(Metric):
    """Counts PUTs that Swift authorized."""

    info: ClassVar[MetricInfo] = MetricInfo("PUTS_SEC", "per_second", "PUTs per second", WITH_OBJECTS)

    def admitted(self, method: str) -> float:
        return 1 if method == "PUT" else 0


class ActiveRequests(Metric):
    """Adds one when a request is authorized, subtracts one at its end, complete or cut off."""

    info: ClassVar[MetricInfo] = MetricInfo("ACTIVE_REQUESTS", "count", "requests at work now, of every method")
    gauge: ClassVar[bool] = True

    def admitted(self, method: str) -> float:
        return 1

    def ended(self, method: str) -> float:
        return -1
