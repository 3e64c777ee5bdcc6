"""PUTS_SEC: uploads that begin."""

from __future__ import annotations

from typing import ClassVar

from sluice_core.describe import MetricInfo
from sluice_metrics.api import WITH_OBJECTS, Metric


class PutsSec(Metric):
    """Counts PUTs that Swift let in."""

    info: ClassVar[MetricInfo] = MetricInfo("PUTS_SEC", "per_second", "PUTs per second", WITH_OBJECTS)

    def admitted(self, method: str) -> float:
        return 1 if method == "PUT" else 0
