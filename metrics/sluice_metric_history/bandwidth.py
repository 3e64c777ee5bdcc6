"""The metrics of bandwidth in the history: what actor hosts keep out of the report, and what the API knows them by."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from sluice_core.describe import MetricInfo
from sluice_core.messages.bandwidth import METHODS
from sluice_core.messages.policies import CLUSTER, CONTAINER, TENANT
from sluice_core.metrics.node_metrics import NODE
from sluice_metric_history.records import DEVICE, PART

#: Fields of the rows of the report (``BandwidthReport``) that are kept, each as a metric of its own.
FLOW_QUANTITIES: Final = ("measured", "share", "floor", "ceiling")
NODE_QUANTITIES: Final = ("measured", "assigned", "capacity")
PART_QUANTITIES: Final = ("measured", "share")
_KINDS: Final = (
    (TENANT, "", FLOW_QUANTITIES, (CONTAINER, TENANT, CLUSTER)),
    (NODE, "NODE_", NODE_QUANTITIES, (NODE,)),
    (DEVICE, "DEVICE_", PART_QUANTITIES, (DEVICE,)),
    (PART, "PART_", PART_QUANTITIES, (PART,)),
)
_MEANING: Final = {
    "measured": "moved",
    "share": "that may move, where that is limited",
    "floor": "promised",
    "ceiling": "never exceeded",
    "assigned": "that may move, where that is limited",
    "capacity": "that can move, where that is known",
}


def family(method: str, level: str) -> tuple[str, ...]:
    """The metrics of ``method`` of tenants and containers (``TENANT``), of nodes, devices or parts."""
    for kind, prefix, quantities, _ in _KINDS:
        if kind == level:
            return tuple(f"{prefix}{method}_BW_{one.upper()}" for one in quantities)
    raise ValueError(level)


def _described() -> Iterator[MetricInfo]:
    for method in METHODS:
        for kind, _, quantities, levels in _KINDS:
            for name, quantity in zip(family(method, kind), quantities, strict=True):
                text = f"bytes of {method} {_MEANING[quantity]}"
                yield MetricInfo(name, "bytes_per_second", text, levels)


#: By name.
BANDWIDTH_METRICS: Final = {one.name: one for one in _described()}
#: Metric → all metrics that the same paths have.
FAMILIES: Final = {
    name: family(method, kind) for method in METHODS for kind, *_ in _KINDS for name in family(method, kind)
}
