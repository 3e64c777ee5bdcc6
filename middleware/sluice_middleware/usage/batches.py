"""What was read, as metric batches of this node."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

from sluice_core.messages.nodes import MetricBatch
from sluice_core.messages.policies import CONTAINER, TENANT
from sluice_core.metrics import usage_metrics as metrics
from sluice_core.metrics.node_metrics import NODE, STORAGE_POLICY
from sluice_middleware.usage.databases import Pass, Usage
from sluice_middleware.usage.space import Space

#: Tenants and containers of a node that are published, those that hold most: brokers take 16 MiB in one message.
MOST_ROWS: Final = 40_000

Values = Mapping[str, Mapping[str, float]]


class UsageBatches:
    """Makes the batches of one node, with their numbers.

    :param period: seconds of a window
    """

    def __init__(self, node: str, period: int) -> None:
        self._node = node
        self._period = period
        self._numbers: Counter[str] = Counter()

    def stored(self, window: int, found: Pass) -> Iterator[MetricBatch]:
        """Batches of what tenants and containers hold."""
        levels = {TENANT: _largest(found.accounts), CONTAINER: _largest(found.containers)}
        for metric, value in ((metrics.STORED, _stored), (metrics.OBJECTS, _objects)):
            values = {level: {path: value(usage) for path, usage in rows.items()} for level, rows in levels.items()}
            yield self._batch(metric, window, values)

    def space(self, window: int, node: Space, policies: Mapping[str, Space]) -> Iterator[MetricBatch]:
        """Batches of the space of this node's devices; none of a node or storage policy without any."""
        if node.size:
            yield self._batch(metrics.NODE_CAPACITY, window, {NODE: {self._node: float(node.size)}})
            yield self._batch(metrics.NODE_FREE, window, {NODE: {self._node: node.free_share}})
        sizes = {STORAGE_POLICY: {name: float(one.size) for name, one in policies.items() if one.size}}
        if sizes[STORAGE_POLICY]:
            free = {STORAGE_POLICY: {name: policies[name].free_share for name in sizes[STORAGE_POLICY]}}
            yield self._batch(metrics.STORAGE_POLICY_CAPACITY, window, sizes)
            yield self._batch(metrics.STORAGE_POLICY_FREE, window, free, sizes)

    def _batch(self, metric: str, window: int, values: Values, weights: Values | None = None) -> MetricBatch:
        self._numbers[metric] += 1
        merge = metrics.MERGES.get(metric, "")
        return MetricBatch(
            self._node, metric, window, self._numbers[metric], values, float(self._period), weights or {}, merge
        )


def _largest(rows: Mapping[str, Usage]) -> Mapping[str, Usage]:
    if len(rows) <= MOST_ROWS:
        return rows
    return dict(heapq.nlargest(MOST_ROWS, rows.items(), key=lambda item: item[1].stored))


def _stored(usage: Usage) -> float:
    return float(usage.stored)


def _objects(usage: Usage) -> float:
    return float(usage.objects)
