"""Metrics of this API and of the cluster, in Prometheus' text format.

Requests are counted in files that all worker processes share (``PROMETHEUS_MULTIPROC_DIR``, which
``sluice_controller.app.server`` creates before it forks), so every worker gives the same answer.  The gauges of the
cluster are read from Redis at each request.  No series has a tenant, policy or path: the number of series is bounded by
that of calls, nodes and hosts.  The other modules of this package export the rates of tenants and volumes.
"""

from __future__ import annotations

import os
from collections import Counter as Tally
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, TypeVar

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from sluice_controller.bandwidth import report_tables
from sluice_controller.catalog import nodes
from sluice_controller.catalog.backend import OWN, Backend
from sluice_controller.catalog.nodes import cluster_now
from sluice_core.errors import PeerError

F = TypeVar("F", GaugeMetricFamily, CounterMetricFamily)
MULTIPROCESS: Final = "PROMETHEUS_MULTIPROC_DIR"
CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"


def exposition(backend: Backend) -> bytes:
    """All metrics, in Prometheus' text format."""
    registry = CollectorRegistry()
    if os.environ.get(MULTIPROCESS):
        MultiProcessCollector(registry)
        requests: bytes = generate_latest(registry)
    else:
        requests = generate_latest(OWN)
    cluster = CollectorRegistry()
    cluster.register(ClusterCollector(backend))
    return requests + generate_latest(cluster)


class ClusterCollector(Collector):
    """The state of the cluster in Redis; without Redis only that it is unreachable."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def describe(self) -> Iterable[Metric]:
        """Called when it is registered; reads nothing."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """Called for each exposition."""
        up = GaugeMetricFamily("sluice_redis_up", "whether Redis answers")
        try:
            families = [*self._policies(), *self._nodes(), *self._hosts(), self._bandwidth()]
        except PeerError:
            up.add_metric([], 0)
            yield up
            return
        up.add_metric([], 1)
        yield up
        yield from families

    def _policies(self) -> Iterator[Metric]:
        contents = self._backend.policy_cache.contents()
        tally = Tally(
            "disabled" if not one.policy.enabled else "dynamic" if one.policy.dynamic else "static"
            for one in contents.policies.values()
        )
        yield gauges("sluice_policies", "policies", "kind", {kind: tally[kind] for kind in _POLICY_KINDS})
        yield GaugeMetricFamily("sluice_epoch", "number of the newest change", contents.head.epoch)

    def _nodes(self) -> Iterator[Metric]:
        cluster = cluster_now(self._backend)
        tally = Tally(cluster.state(node) for node in cluster.nodes)
        yield gauges("sluice_nodes", "nodes", "state", {state: tally[state] for state in _NODE_STATES})
        for name, text, value in _NODE_GAUGES:
            yield gauges(name, text, "node", {node.node: value(node) for node in cluster.nodes})
        dropped = {node.node: node.dropped for node in cluster.nodes}
        lost = CounterMetricFamily("sluice_node_dropped", "metric batches that a node lost", labels=["node"])
        yield _fill(lost, dropped)

    def _hosts(self) -> Iterator[Metric]:
        hosts = self._backend.store.hosts()
        now = self._backend.now()
        ages = {name: now - at for name, one in hosts.items() if isinstance(at := one.get("at"), int | float)}
        yield gauges("sluice_actor_host_report_age_seconds", "age of a host's last report", "host", ages)
        for field, text in _HOST_GAUGES:
            yield gauges(f"sluice_actor_host_{field}", text, "host", _numbers(hosts, field))
        for field, text in _HOST_COUNTERS:
            counter = CounterMetricFamily(f"sluice_actor_host_{field}", text, labels=["host"])
            yield _fill(counter, _numbers(hosts, field))

    def _bandwidth(self) -> Metric:
        """Rows of the newest report; `assigned` is missing without a limit, `capacity` if it is not known."""
        labels = ("node", "side", "method", "what")
        family = GaugeMetricFamily(
            "sluice_bandwidth_bytes_per_second", "payload that a side of a node moves, may and can move", labels=labels
        )
        for row in report_tables.nodes(nodes.current_report(self._backend)).rows.values():
            for what in _BANDWIDTHS:
                if row[what] is not None:
                    family.add_metric([row["node"], row["side"], row["method"], what], row[what])
        return family


_BANDWIDTHS: Final = ("measured", "assigned", "capacity")
_POLICY_KINDS: Final = ("static", "dynamic", "disabled")
_NODE_STATES: Final = ("ok", "stale_history", "failed", "away")
_NODE_GAUGES: Final[Any] = (
    ("sluice_node_epoch", "the last change that a node has applied", lambda node: node.epoch),
    ("sluice_node_refused", "assignments that a node refuses", lambda node: len(node.refused)),
    ("sluice_node_workers", "Swift workers that are connected to a node's agent", lambda node: node.workers),
    ("sluice_node_assignments", "assignments that a node has", lambda node: node.assignments),
)
_HOST_GAUGES: Final = (
    ("actors", "policy actors of a host"),
    ("suspended", "actors that failed and wait for their restart"),
    ("pending", "policies that wait to be written"),
    ("bus", "whether a host is connected to RabbitMQ"),
)
_HOST_COUNTERS: Final = (
    ("failures", "times that actors failed"),
    ("restarts", "times that actors were started again"),
    ("dropped", "messages dropped for suspended actors"),
    ("undecodable", "metric batches that could not be read"),
)


def gauges(name: str, text: str, label: str, values: Mapping[str, float]) -> GaugeMetricFamily:
    """One gauge for each of ``values``, by ``label``."""
    return _fill(GaugeMetricFamily(name, text, labels=[label]), values)


def _fill(family: F, values: Mapping[str, float]) -> F:
    """``family`` with a sample for each of ``values``, by its one label."""
    for key, value in values.items():
        family.add_metric([key], value)
    return family


def _numbers(hosts: Mapping[str, Mapping[str, Any]], field: str) -> dict[str, float]:
    return {name: float(value) for name, one in hosts.items() if isinstance(value := one.get(field), int | float)}
