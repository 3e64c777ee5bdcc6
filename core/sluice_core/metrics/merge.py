"""Merges values of several nodes: rates and levels add up, means are weighted.

If nodes measure the same thing (replicas of a database), the highest or lowest value counts: a field of the batch says
which.  Metrics of nodes themselves add to nothing; the cluster's value is the highest of them, or the lowest.

A batch with weights belongs to a mean (``COMPRESSIBILITY``): its values times their weights add up, and the sum is
divided by the sum of weights, so that a node with more samples counts more.  A batch of a quantile has sketches: their
buckets add up, and the quantile is that of the sum.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from sluice_core.messages.nodes import HIGHEST, LOWEST, MetricBatch
from sluice_core.messages.policies import CLUSTER, TENANT
from sluice_core.metrics.node_metrics import PLACE_LEVELS
from sluice_core.metrics.sketch import Sketches, estimate_quantiles, merge, unpack
from sluice_core.metrics.totals import means

Levels = dict[str, dict[str, float]]

_MERGES: Final[Mapping[str, Callable[[float, float], float]]] = {HIGHEST: max, LOWEST: min}


class MergedBatches:
    """The batches of one metric and window, merged as they arrive."""

    __slots__ = ("_merge", "_quantile", "_sketches", "_sums", "_weights")

    def __init__(self) -> None:
        self._sums: Levels = {}
        self._weights: Levels = {}
        self._merge = ""
        self._quantile = 0.0
        self._sketches: Sketches = {}

    def add(self, batch: MetricBatch) -> None:
        """Add a node's batch; a value of a mean without its weight is left out."""
        if batch.quantile:
            self._quantile = batch.quantile
            self._add_sketches(batch)
            return
        self._merge = batch.merge if batch.merge in _MERGES else ""
        for level, rows in batch.values.items():
            weights = batch.weights.get(level) if batch.weights else None
            if self._merge and not batch.weights:
                self._choose(_MERGES[self._merge], level, rows)
            elif not batch.weights:
                self._add(self._sums, level, rows)
            elif weights:
                weighed = {path: weights[path] for path in rows if weights.get(path, 0) > 0}
                self._add(self._sums, level, {path: rows[path] * weight for path, weight in weighed.items()})
                self._add(self._weights, level, weighed)

    def values(self) -> Levels:
        """Return granularity → path → value of all nodes, the cluster's included; call it once."""
        if self._quantile:
            for sketch in list(self._sketches.get(TENANT, {}).values()):
                merge(self._sketches.setdefault(CLUSTER, {}).setdefault("", {}), sketch.items())
            return estimate_quantiles(self._sketches, self._quantile)
        for levels in (self._sums, self._weights):
            tenants = levels.get(TENANT)
            if tenants:
                levels[CLUSTER] = {"": sum(tenants.values())}
        combined = means(self._sums, self._weights) if self._weights else self._sums
        for level in PLACE_LEVELS:
            if combined.get(level) and CLUSTER not in combined:
                combined[CLUSTER] = {"": (min if self._merge == LOWEST else max)(combined[level].values())}
        return combined

    def _add_sketches(self, batch: MetricBatch) -> None:
        for level, found in batch.sketches.items():
            sketches = self._sketches.setdefault(level, {})
            for path, packed in found.items():
                if packed:
                    merge(sketches.setdefault(path, {}), unpack(packed).items())

    def _choose(self, better: Callable[[float, float], float], level: str, rows: Mapping[str, float]) -> None:
        total = self._sums.setdefault(level, {})
        for path, value in rows.items():
            total[path] = better(total.get(path, value), value)

    @staticmethod
    def _add(levels: Levels, level: str, rows: Mapping[str, float]) -> None:
        total = levels.get(level)
        if total is None:
            levels[level] = dict(rows)
            return
        for path, value in rows.items():
            total[path] = total.get(path, 0.0) + value
