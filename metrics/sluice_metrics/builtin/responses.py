"""ERRORS: what becomes of the requests that Swift let in."""

from __future__ import annotations

from typing import ClassVar

from sluice_core.describe import MetricInfo
from sluice_metrics.api import Metric, Response


class Errors(Metric):
    """Responses with a status of 500 and above, by all responses."""

    info: ClassVar[MetricInfo] = MetricInfo("ERRORS", "fraction", "share of responses with a status of 5xx")
    mean: ClassVar[bool] = True

    def responded(self, response: Response) -> tuple[float, float]:
        return (0, 0) if response.part else (1 if response.status >= 500 else 0, 1)
