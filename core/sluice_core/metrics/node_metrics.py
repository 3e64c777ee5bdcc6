"""Metrics of nodes: CPU, memory, disks and network, as CollectD measures them.

The names are Sluice's, the units those of other metrics, the granularity is ``node``.  A metric comes from one or
several *value lists* of CollectD, named by plugin, type and type instance, of which one data source counts.  Several
lists (one of each disk) add up, or the highest counts.  ``docs/reference/metrics.md`` has CollectD's configuration.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from math import isfinite
from typing import Any, Final

from sluice_core.describe import MetricInfo
from sluice_core.errors import DecodeError

#: The granularity, whose paths are names of nodes.
NODE: Final = "node"
#: The granularity whose paths are names of storage policies.
STORAGE_POLICY: Final = "storage_policy"
#: The granularity whose paths are pools of Cinder.
POOL: Final = "pool"
#: Granularities that are not targets of sentences: a metric of one of them is the cluster's, or that of a named path.
PLACE_LEVELS: Final = (NODE, STORAGE_POLICY, POOL)
_LEVELS: Final = (NODE,)
#: A node with more disks and interfaces than this is an error.
_MOST_PARTS: Final = 1000


@dataclass(frozen=True, slots=True)
class NodeMetric:
    """A metric, and the values of CollectD that it is computed from; empty ``instance`` means any."""

    info: MetricInfo
    plugin: str
    type: str
    instance: str
    source: str
    factor: float = 1.0
    highest: bool = False

    def combine(self, parts: Iterable[float]) -> float:
        """Return the node's value, from those of its disks, interfaces, …."""
        return (max(parts) if self.highest else sum(parts)) * self.factor


def _metric(name: str, unit: str, text: str) -> MetricInfo:
    return MetricInfo(name, unit, text, _LEVELS, period=10.0)


NODE_METRICS: Final = (
    NodeMetric(_metric("NODE_CPU", "fraction", "CPU time at work"), "cpu", "percent", "active", "value", 0.01),
    NodeMetric(_metric("NODE_MEMORY", "fraction", "memory in use"), "memory", "percent", "used", "value", 0.01),
    NodeMetric(_metric("NODE_DISK_READ", "bytes_per_second", "read from disks"), "disk", "disk_octets", "", "read"),
    NodeMetric(_metric("NODE_DISK_WRITE", "bytes_per_second", "written to disks"), "disk", "disk_octets", "", "write"),
    NodeMetric(
        _metric("NODE_DISK_BUSY", "fraction", "time for which the busiest disk had work"),
        "disk", "disk_io_time", "", "io_time", 0.001, highest=True,
    ),
    NodeMetric(_metric("NODE_NET_IN", "bytes_per_second", "received, all links"), "interface", "if_octets", "", "rx"),
    NodeMetric(_metric("NODE_NET_OUT", "bytes_per_second", "sent, all links"), "interface", "if_octets", "", "tx"),
)  # fmt: skip


def collectd_routing_key(node: str) -> str:
    """Routing key of CollectD on ``node``: ``collectd.<node>``; dots in the name become ``_``."""
    return f"collectd.{node.replace('.', '_')}"


@dataclass(frozen=True, slots=True)
class Reading:
    """One number of CollectD for one metric of Sluice; ``part`` is the disk, the interface …."""

    metric: NodeMetric
    part: str
    value: float
    interval: float


def parse_collectd(body: bytes) -> list[Reading]:
    """The readings in a message of CollectD's AMQP plugin (``Format JSON``, ``StoreRates true``).

    Value lists of other plugins are ignored, as are first values of rates, which are null.

    :raises DecodeError: when ``body`` is not such a message
    """
    try:
        lists = json.loads(body)
        readings = [one for values in lists for one in _of_list(values)]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise DecodeError(f"not a message of collectd: {error}", body) from error
    if len(readings) > _MOST_PARTS:
        raise DecodeError(f"not a message of collectd: {len(readings)} values at once", body)
    return readings


def _of_list(values: Any) -> Iterable[Reading]:
    part, interval = str(values["plugin_instance"]), float(values["interval"])
    if not (isfinite(interval) and interval > 0):
        raise ValueError(f"interval `{interval}`")
    for metric in NODE_METRICS:
        if (metric.plugin, metric.type) != (values["plugin"], values["type"]):
            continue
        if metric.instance and metric.instance != values["type_instance"]:
            continue
        numbers = dict(zip(values["dsnames"], values["values"], strict=True))
        number = numbers.get(metric.source)
        if isinstance(number, int | float) and isfinite(number):
            yield Reading(metric, part, float(number), interval)
