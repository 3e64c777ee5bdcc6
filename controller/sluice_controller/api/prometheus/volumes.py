"""Volumes and pools of Cinder for Prometheus: the metrics VOLUME_* and POOL_* as gauges.

They contain ids of volumes and projects, so they need a token and are not part of ``/metrics``.  All values come from
Redis: without Redis the answer is an error, and the target is down for Prometheus.  An actor host writes the newest
window of each metric to Redis, for the number of volumes and tenants in ``sluice_actors.volumes.volume_report``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from prometheus_client import generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from sluice_controller.api.prometheus.cluster import gauges
from sluice_controller.catalog.backend import Backend
from sluice_core.messages.policies import CLUSTER, TENANT, VOLUME
from sluice_volumes import metrics, operations
from sluice_volumes.messages import VolumeReport


def exposition(backend: Backend) -> bytes:
    """All metrics, in Prometheus' text format.

    :raises PeerError: when Redis is unreachable
    """
    found: bytes = generate_latest(VolumeCollector(backend))
    return found


class Quantity(NamedTuple):
    """Several metrics of one level: ``label`` distinguishes their series, and is empty if there is one."""

    name: str
    text: str
    label: str
    metrics: Mapping[str, str]


class VolumeCollector(Collector):
    """The metrics in Redis; of volumes only their report's age if no host measures."""

    def __init__(self, backend: Backend) -> None:
        run, keys = backend.store.run, backend.store.keys
        self._report, self._age = run(operations.read_volume_report(keys))
        self._pools = run(operations.POOLS.read_all(keys))
        self._in_pool = {one.path: one.pool for one in run(operations.RECORDS.read_all(keys)).values()}
        self._prefix = backend.config.reseller_prefix
        self._now = backend.now()

    def collect(self) -> Iterator[Metric]:
        """Called for each exposition."""
        for level, prefix, labels in LEVELS:
            for quantity in QUANTITIES:
                yield self._family(level, prefix, labels, quantity)
        report = self._report or VolumeReport(0.0, {})
        text = "volumes and tenants without a series in a big cluster"
        yield gauges("sluice_volume_rows_left_out", text, "level", report.left_out)
        text = "age of the measurement; +Inf while no host measures"
        yield GaugeMetricFamily("sluice_volume_report_age_seconds", text, self._age)
        yield from self._of_pools()

    def _family(self, level: str, prefix: str, labels: tuple[str, ...], quantity: Quantity) -> Metric:
        own = (quantity.label,) if quantity.label else ()
        family = GaugeMetricFamily(f"{prefix}_{quantity.name}", quantity.text, labels=(*labels, *own))
        values = self._report.values if self._report is not None else {}
        for metric, word in quantity.metrics.items():
            for path, value in values.get(metric, {}).get(level, {}).items():
                family.add_metric([*self._labels(level, path), *((word,) if quantity.label else ())], value)
        return family

    def _labels(self, level: str, path: str) -> list[str]:
        """For a volume its id, project and pool, for a tenant its project, for the cluster nothing."""
        account, _, volume = path.partition("/")
        project = account.removeprefix(self._prefix)
        return {VOLUME: [volume, project, self._in_pool.get(path, "")], TENANT: [project], CLUSTER: []}[level]

    def _of_pools(self) -> Iterator[Metric]:
        values = metrics.pool_values(self._pools.values())
        for metric, name in POOL_GAUGES.items():
            yield gauges(name, _HELP[metric], "pool", values[metric])
        ages = {name: max(self._now - one.seen, 0.0) for name, one in self._pools.items()}
        yield gauges("sluice_pool_report_age_seconds", "age of Cinder's last report of a pool", "pool", ages)


POOL_GAUGES: Final = {metrics.POOL_FREE: "sluice_pool_free_ratio", metrics.POOL_USED: "sluice_pool_used_bytes"}
_HELP: Final = {one.name: one.help for one in metrics.POOL_METRICS}
#: Level → the prefix and the labels of its families.
LEVELS: Final = (
    (VOLUME, "sluice_volume", ("volume", "project", "pool")),
    (TENANT, "sluice_tenant_volumes", ("project",)),
    (CLUSTER, "sluice_cluster_volumes", ()),
)
QUANTITIES: Final = (
    Quantity(
        "bytes_per_second",
        "read from and written to volumes",
        "operation",
        {metrics.VOLUME_READ_BW: "read", metrics.VOLUME_WRITE_BW: "write"},
    ),
    Quantity(
        "requests_per_second",
        "reads of and writes to volumes",
        "operation",
        {metrics.VOLUME_READ_IOPS: "read", metrics.VOLUME_WRITE_IOPS: "write"},
    ),
    Quantity(
        "latency_seconds",
        "time that this share of the requests to volumes does not exceed",
        "quantile",
        {metric: str(quantile) for metric, quantile in metrics.LATENCY_QUANTILES.items()},
    ),
    Quantity("queue", "running requests to volumes", "", {metrics.VOLUME_QUEUE: ""}),
)
