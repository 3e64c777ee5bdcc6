"""Merges values of several nodes: rates and levels add up, means are weighted, of nodes themselves the highest counts.

A batch with weights belongs to a mean (``COMPRESSIBILITY``): its values times their weights add up, and the sum is
divided by the sum of weights, so that a node with more samples counts more.  A batch of a quantile has sketches: their
buckets add up, and the quantile is that of the sum.
"""

from __future__ import annotations

from collections.abc import Mapping

from sluice_core.messages.nodes import MetricBatch
from sluice_core.messages.policies import CLUSTER, TENANT
from sluice_core.metrics.node_metrics import NODE
from sluice_core.metrics.sketch import Sketches, estimate_quantiles, merge, unpack
from sluice_core.metrics.totals import means

Levels = dict[str, dict[str, float]]


class MergedBatches:
    """The batches of one metric and window, merged as they come."""

    __slots__ = ("_quantile", "_sketches", "_sums", "_weights")

    def __init__(self) -> None:
        self._sums: Levels = {}
        self._weights: Levels = {}
        self._quantile = 0.0
        self._sketches: Sketches = {}

    def add(self, batch: MetricBatch) -> None:
        """Take a node's batch; a value of a mean that came without its weight is left out."""
        if batch.quantile:
            self._quantile = batch.quantile
            self._add_sketches(batch)
            return
        for level, rows in batch.values.items():
            weights = batch.weights.get(level) if batch.weights else None
            if not batch.weights:
                self._add(self._sums, level, rows)
            elif weights:
                weighed = {path: weights[path] for path in rows if weights.get(path, 0) > 0}
                self._add(self._sums, level, {path: rows[path] * weight for path, weight in weighed.items()})
                self._add(self._weights, level, weighed)

    def values(self) -> Levels:
        """Granularity → path → value of all nodes, the cluster's included; to be called once."""
        if self._quantile:
            for sketch in list(self._sketches.get(TENANT, {}).values()):
                merge(self._sketches.setdefault(CLUSTER, {}).setdefault("", {}), sketch.items())
            return estimate_quantiles(self._sketches, self._quantile)
        for levels in (self._sums, self._weights):
            tenants = levels.get(TENANT)
            if tenants:
                levels[CLUSTER] = {"": sum(tenants.values())}
        found = means(self._sums, self._weights) if self._weights else self._sums
        nodes = found.get(NODE)
        if nodes and CLUSTER not in found:
            found[CLUSTER] = {"": max(nodes.values())}
        return found

    def _add_sketches(self, batch: MetricBatch) -> None:
        for level, found in batch.sketches.items():
            sketches = self._sketches.setdefault(level, {})
            for path, packed in found.items():
                if packed:
                    merge(sketches.setdefault(path, {}), unpack(packed).items())

    @staticmethod
    def _add(levels: Levels, level: str, rows: Mapping[str, float]) -> None:
        total = levels.get(level)
        if total is None:
            levels[level] = dict(rows)
            return
        for path, value in rows.items():
            total[path] = total.get(path, 0.0) + value
