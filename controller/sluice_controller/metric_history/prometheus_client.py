"""The only access of the API to a Prometheus that keeps the history of the exported metrics."""

from __future__ import annotations

import math
from typing import Any, Final
from urllib.parse import urlsplit

from keystoneauth1 import exceptions as ksa
from keystoneauth1 import session

from sluice_core.errors import PeerError
from sluice_metric_history.resolutions import Point

_TIMEOUT: Final = 10.0
#: The number of values that are evaluated within a step.
_WITHIN: Final = 30
#: The PromQL functions of a point's fields, in their order.
_PARTS: Final = ("avg_over_time(", "min_over_time(", "max_over_time(", "quantile_over_time(0.95, ")


class PrometheusClient:
    """:param url: the URL of the server, without the path of its API"""

    def __init__(self, url: str) -> None:
        self._url = url.rstrip("/")
        self._session = session.Session(timeout=_TIMEOUT, redirect=False)

    def points(self, expression: str, begin: int, end: int, step: int) -> list[Point | None]:
        """The points of the steps from ``begin`` to before ``end``, Unix time; None for gaps.

        :param expression: an instant vector of one element
        :raises PeerError: when the server is unreachable, or its answer is not valid
        """
        within = f"[{step}s:{max(1, step // _WITHIN)}s]"
        parts = [self._values(f"{part}({expression}){within})", begin, end, step) for part in _PARTS]
        points: list[Point | None] = []
        for at in range(begin, end, step):
            values = [one.get(at + step) for one in parts]
            points.append(None if None in values else Point(*values))  # type: ignore[arg-type]
        return points

    def _values(self, query: str, begin: int, end: int, step: int) -> dict[int, float]:
        """Unix time at which a step ended → its value."""
        if begin >= end:
            return {}
        wanted = {"query": query, "start": begin + step, "end": end, "step": step}
        try:
            answer = self._session.post(f"{self._url}/api/v1/query_range", data=wanted, authenticated=False)
            series: list[Any] = answer.json()["data"]["result"]
            values = series[0]["values"] if series else []
            known = {round(float(at)): float(value) for at, value in values}
        except (ksa.ClientException, ValueError, KeyError, TypeError, IndexError) as error:
            place = urlsplit(self._url).hostname
            raise PeerError(f"prometheus at `{place}` cannot be asked: {type(error).__name__}") from error
        return {at: value for at, value in known.items() if math.isfinite(value)}
