"""ERRORS, HIT_RATIO and RESPONSE_TIME: the responses to requests that Swift authorized."""

from __future__ import annotations

from typing import ClassVar

from sluice_core.describe import MetricInfo
from sluice_metrics.api import HIT, Metric, Response


class Errors(Metric):
    """Responses with a status of 500 and above, divided by all responses."""

    info: ClassVar[MetricInfo] = MetricInfo("ERRORS", "fraction", "share of responses with a status of 5xx")
    mean: ClassVar[bool] = True

    def responded(self, response: Response) -> tuple[float, float]:
        return (0, 0) if response.part else (1 if response.status >= 500 else 0, 1)


class HitRatio(Metric):
    """Responses from the node's cache, divided by all for which it was searched.

    Segments of large objects count separately, since they are cached separately.
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        "HIT_RATIO", "fraction", "share of reads that the cache answers where it is searched"
    )
    mean: ClassVar[bool] = True

    def responded(self, response: Response) -> tuple[float, float]:
        return (1 if response.cache == HIT else 0, 1) if response.cache else (0, 0)


class ResponseTime(Metric):
    """The median of the seconds from a request's arrival to the end of its response."""

    info: ClassVar[MetricInfo] = MetricInfo(
        "RESPONSE_TIME", "seconds", "time that half of the responses do not exceed", aliases=("RESPONSE_TIME_P50",)
    )
    quantile: ClassVar[float] = 0.5

    def responded(self, response: Response) -> tuple[float, float]:
        return 0, 0 if response.part else 1


class ResponseTimeP95(ResponseTime):
    """The 95 % quantile of the same seconds."""

    info: ClassVar[MetricInfo] = MetricInfo(
        "RESPONSE_TIME_P95", "seconds", "time that 95 % of the responses do not exceed"
    )
    quantile: ClassVar[float] = 0.95


class ResponseTimeP99(ResponseTime):
    """The 99 % quantile of the same seconds."""

    info: ClassVar[MetricInfo] = MetricInfo(
        "RESPONSE_TIME_P99", "seconds", "time that 99 % of the responses do not exceed"
    )
    quantile: ClassVar[float] = 0.99
