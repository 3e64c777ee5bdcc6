"""The input of the history: windows of metrics, and the report of bandwidth as metrics.

The name of a bandwidth metric has the method and the quantity: ``GET_BW_MEASURED``, ``GET_BW_SHARE``,
``GET_BW_FLOOR`` and ``GET_BW_CEILING`` of tenants and containers (of the cluster only the measured rate),
``NODE_GET_BW_MEASURED``, ``_ASSIGNED`` and ``_CAPACITY`` of ``node/side``, ``DEVICE_GET_BW_MEASURED`` and ``_SHARE``
of ``node/device``, and ``PART_GET_BW_MEASURED`` and ``_SHARE`` of a tenant on one device.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from sluice_actors.metrics.windows import ClosedWindow
from sluice_core.describe import STORAGE_NODE
from sluice_core.messages.bandwidth_report import BandwidthReport
from sluice_core.messages.policies import CLUSTER, CONTAINER, OBJECT, TENANT
from sluice_core.metrics.node_metrics import NODE
from sluice_metric_history.records import DEVICE, FLOW_QUANTITIES, NODE_QUANTITIES, OWNED, PART, PART_QUANTITIES, family

ReportRow = Mapping[str, Any]
Values = dict[str, float]


class GroupKey(NamedTuple):
    """Metrics at one level; a path has all of them or none."""

    metrics: tuple[str, ...]
    level: str

    def __str__(self) -> str:
        return f"{self.metrics[0]} {self.level}"


@dataclass(frozen=True, slots=True)
class WindowSample:
    """One window of a group.

    :param values: one mapping of each metric, path → value
    :param weights: path → its weight in the ranking
    :param adds: metrics whose values add up: a path without a value has 0, and a rest can be summed
    """

    group: GroupKey
    window: int
    period: float
    values: tuple[Mapping[str, float], ...]
    weights: Mapping[str, float]
    adds: frozenset[str] = frozenset()


def of_window(closed: ClosedWindow, adds: bool) -> Iterator[WindowSample]:
    """Split a window by its levels; the level of objects is left out, because it has too many paths.

    :param adds: whether the values of several nodes add up
    """
    tenants = closed.at(TENANT)
    for level, values in closed.values.items():
        if level == OBJECT:
            continue
        # The cluster's value is the sum over its tenants, but for a metric of nodes the maximum.
        summed = adds and (level in OWNED or (level == CLUSTER and bool(tenants)))
        metrics = frozenset({closed.metric}) if summed else frozenset()
        yield WindowSample(GroupKey((closed.metric,), level), closed.window, closed.period, (values,), values, metrics)


def silent(key: GroupKey, closed: ClosedWindow, adds: frozenset[str]) -> WindowSample:
    """A window without any value at a level that had values before."""
    return WindowSample(key, closed.window, closed.period, ({},), {}, adds)


def of_report(report: BandwidthReport) -> Iterator[WindowSample]:
    """The samples of a second of bandwidth; none if no node reported, because nothing was measured then."""
    if not report.nodes:
        return
    window = int(report.at) - 1
    for method in sorted({row["method"] for row in report.nodes}):
        flows = [row for row in report.flows if row["method"] == method]
        yield from _of_flows(method, window, flows)
        nodes = [row for row in report.nodes if row["method"] == method]
        yield _sample(family(method, NODE), NODE, window, nodes, NODE_QUANTITIES, _node_path)
        parts = [row for row in report.parts if row["method"] == method]
        devices = [row for row in parts if row["side"] == STORAGE_NODE]
        yield _sample(family(method, DEVICE), DEVICE, window, devices, PART_QUANTITIES, _device_path)
        yield _sample(family(method, PART), PART, window, parts, PART_QUANTITIES, _part_path)


def _of_flows(method: str, window: int, flows: Iterable[ReportRow]) -> Iterator[WindowSample]:
    metrics, rows = family(method, TENANT), list(flows)
    for level, some in ((TENANT, False), (CONTAINER, True)):
        chosen = [row for row in rows if bool(row["container"]) == some]
        yield _sample(metrics, level, window, chosen, FLOW_QUANTITIES, _flow_path, metrics[:1])
    total = {"": sum(row["measured"] for row in rows)}
    yield WindowSample(GroupKey(metrics[:1], CLUSTER), window, 1.0, (total,), total, frozenset(metrics[:1]))


def _sample(
    metrics: tuple[str, ...],
    level: str,
    window: int,
    rows: Iterable[ReportRow],
    quantities: tuple[str, ...],
    path_of: Callable[[ReportRow], str],
    adds: Iterable[str] = (),
) -> WindowSample:
    """The sums of ``rows`` by path; a quantity that is unlimited or not set has no value."""
    sums: tuple[Values, ...] = tuple({} for _ in quantities)
    weights: Values = {}
    for row in rows:
        path = path_of(row)
        weights[path] = weights.get(path, 0.0) + row["measured"] + row.get("floor", 0.0)
        for values, quantity in zip(sums, quantities, strict=True):
            value = row[quantity]
            if value > 0 or (value == 0 and quantity in _MAY_BE_ZERO):
                values[path] = values.get(path, 0.0) + value
    return WindowSample(GroupKey(metrics, level), window, 1.0, sums, weights, frozenset(adds))


#: Quantities that may be 0; a floor, ceiling or capacity of 0 means none.
_MAY_BE_ZERO: Final = frozenset({"measured", "share", "assigned"})


def _flow_path(row: ReportRow) -> str:
    return f"{row['account']}/{row['container']}" if row["container"] else str(row["account"])


def _node_path(row: ReportRow) -> str:
    return f"{row['node']}/{row['side']}"


def _device_path(row: ReportRow) -> str:
    return f"{row['node']}/{row['device']}"


def _part_path(row: ReportRow) -> str:
    return f"{row['node']}/{row['device'] or row['side']}/{row['account']}"
