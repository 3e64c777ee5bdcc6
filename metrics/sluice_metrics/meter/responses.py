"""The additions of responses to metrics that are means over them, or quantiles of their durations.

Most responses are equal (``GET``, 200), so a metric is called once for each :class:`~sluice_metrics.api.Response` and
its answer cached: a request costs one look-up here, and an addition for each metric of its response.  Amounts and
weights are running totals in columns of their own; an agent adds them up over its workers and divides.  Seconds are
counted in a sketch of the cell, one for all quantiles of the same responses.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import isfinite
from typing import Final, Protocol

from sluice_core.metrics.sketch import find_bucket
from sluice_metrics.api import Metric, Response
from sluice_metrics.meter.cell import Cell, CellSketch

#: Number of different responses in the cache; clients may send any method.
_KNOWN: Final = 256
#: Number of a column and the addition of a response.
_Additions = tuple[tuple[int, float], ...]
#: Name of a sketch and how often a response counts in it.
_Counts = tuple[tuple[str, float], ...]


class Measured(Protocol):
    """The meter's methods that the counter of responses needs."""

    def touch(self, *cells: Cell) -> None:
        """Mark ``cells`` as changed."""

    def fail(self, event: str, number: int, error: Exception) -> None:
        """Switch a metric off."""


class ResponseCounter:
    """Counts the responses of one worker."""

    def __init__(self, meter: Measured) -> None:
        self._meter = meter
        self._known: dict[Response, tuple[_Additions, _Counts]] = {}
        self._metrics: list[tuple[int, int | None, Metric]] = []

    def measure(self, metrics: Iterable[tuple[int, int | None, Metric]]) -> None:
        """Count for these metrics from now on.

        :param metrics: number of its column, number of the column of its weights (None for a quantile, which has
            weights only), and each metric
        """
        self._metrics = list(metrics)
        self._known = {}

    def without(self, number: int) -> None:
        """Metric ``number`` is switched off."""
        self.measure([one for one in self._metrics if one[0] != number])

    def count(self, tenant: Cell, container: Cell, response: Response, seconds: float) -> None:
        """Count ``response`` to a request for an object in ``container``."""
        additions, sketches = self._known.get(response) or self._learn(response)
        if not additions:
            return
        ours, theirs = tenant.values, container.values
        for column, amount in additions:
            ours[column] += amount
            theirs[column] += amount
        if sketches:
            bucket = find_bucket(seconds)
            for cell in (tenant, container):
                for name, weight in sketches:
                    sketch = cell.sketches.get(name)
                    if sketch is None:
                        sketch = cell.sketches[name] = CellSketch()
                    counts = sketch.counts
                    counts[bucket] = counts.get(bucket, 0) + weight
                    sketch.changed.add(bucket)
        if not (tenant.dirty and container.dirty):
            self._meter.touch(tenant, container)

    def _learn(self, response: Response) -> tuple[_Additions, _Counts]:
        """Call the metrics once for the additions of ``response``, and cache them."""
        additions: list[tuple[int, float]] = []
        sketches: list[tuple[str, float]] = []
        for number, weights, metric in list(self._metrics):
            try:
                amount, weight = metric.responded(response)
                if not (isfinite(amount) and isfinite(weight) and amount >= 0 and weight >= 0):
                    raise ValueError(f"`{amount}` of weight `{weight}` is no mean")
            except Exception as error:  # noqa: BLE001  a metric's fault must not end a request; it is logged
                self._meter.fail("responded", number, error)
                continue
            if not weight:
                continue
            if weights is None:
                additions.append((number, weight))
                sketches.append((metric.info.name, weight))
            else:
                additions += [(weights, weight), (number, amount)] if amount else [(weights, weight)]
        added = tuple(additions), tuple(sketches)
        if len(self._known) < _KNOWN:
            self._known[response] = added
        return added
