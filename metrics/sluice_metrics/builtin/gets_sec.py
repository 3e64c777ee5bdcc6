"""GETS_SEC: downloads that begin."""

from __future__ import annotations

from typing import ClassVar

from sluice_core.describe import MetricInfo
from sluice_metrics.api import WITH_OBJECTS, Metric


class GetsSec(Metric):
    """Counts GETs that Swift let in."""

    info: ClassVar[MetricInfo] = MetricInfo("GETS_SEC", "per_second", "GETs per second", WITH_OBJECTS)

    def admitted(self, method: str) -> float:
        return 1 if method == "GET" else 0
