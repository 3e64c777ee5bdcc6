"""Metrics of volumes, measured by konnectors each second, and metrics of Cinder's pools."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from sluice_core.describe import MetricInfo
from sluice_core.messages.policies import CLUSTER, TENANT, VOLUME
from sluice_core.metrics import usage_metrics
from sluice_core.metrics.node_metrics import POOL
from sluice_volumes.messages import Pool

VOLUME_READ_BW: Final = "VOLUME_READ_BW"
VOLUME_WRITE_BW: Final = "VOLUME_WRITE_BW"
VOLUME_READ_IOPS: Final = "VOLUME_READ_IOPS"
VOLUME_WRITE_IOPS: Final = "VOLUME_WRITE_IOPS"
VOLUME_LATENCY: Final = "VOLUME_LATENCY"
VOLUME_LATENCY_P99: Final = "VOLUME_LATENCY_P99"
VOLUME_QUEUE: Final = "VOLUME_QUEUE"
#: Metrics that are quantiles → the quantile; both are of one sketch, named after the first.
LATENCY_QUANTILES: Final = {VOLUME_LATENCY: 0.5, VOLUME_LATENCY_P99: 0.99}

#: A tenant's value is the sum of its volumes, or the quantile of all their requests.
VOLUME_LEVELS: Final = (VOLUME, TENANT, CLUSTER)


def _metric(name: str, unit: str, text: str, *aliases: str) -> MetricInfo:
    return MetricInfo(name, unit, text, VOLUME_LEVELS, aliases=aliases)


VOLUME_METRICS: Final = (
    _metric(VOLUME_READ_BW, "bytes_per_second", "bytes read from volumes"),
    _metric(VOLUME_WRITE_BW, "bytes_per_second", "bytes written to volumes"),
    _metric(VOLUME_READ_IOPS, "per_second", "reads of volumes"),
    _metric(VOLUME_WRITE_IOPS, "per_second", "writes to volumes"),
    _metric(VOLUME_LATENCY, "seconds", "median time of a request to a volume", "VOLUME_LATENCY_P50"),
    _metric(VOLUME_LATENCY_P99, "seconds", "time that 99 % of the requests to a volume do not exceed"),
    _metric(VOLUME_QUEUE, "count", "requests to volumes under way"),
)

POOL_FREE: Final = "POOL_FREE"
POOL_USED: Final = "POOL_USED"
#: Seconds between two windows.
POOL_PERIOD: Final = 5.0
POOL_METRICS: Final = (
    MetricInfo(POOL_FREE, "fraction", "free share of a pool of Cinder", (POOL,), POOL_PERIOD),
    MetricInfo(POOL_USED, "bytes", "bytes of a pool of Cinder that are in use", (POOL,), POOL_PERIOD),
)
#: Seconds between two windows of all metrics that are not measured each second.
SLOW_PERIODS: Final = {**usage_metrics.SLOW_PERIODS, **{one.name: one.period for one in POOL_METRICS}}


def pool_values(pools: Iterable[Pool]) -> dict[str, dict[str, float]]:
    """Return metric → name → value, of the pools that report their size."""
    known = {one.name: one for one in pools if one.total > 0 and one.free >= 0}
    return {
        POOL_FREE: {name: min(one.free / one.total, 1.0) for name, one in known.items()},
        POOL_USED: {name: max(one.total - one.free, 0.0) for name, one in known.items()},
    }
