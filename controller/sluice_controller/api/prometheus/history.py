"""PromQL expressions for the metrics of the history, for a Prometheus that scrapes Sluice's endpoints."""

from __future__ import annotations

from typing import Final

from sluice_controller.api.prometheus.volumes import LEVELS, POOL_GAUGES, QUANTITIES
from sluice_core.describe import PROXY, STORAGE_NODE
from sluice_core.messages.bandwidth import METHODS
from sluice_core.messages.policies import CLUSTER, CONTAINER, TENANT, VOLUME
from sluice_core.metrics.node_metrics import NODE, POOL
from sluice_metric_history.records import DEVICE, FAMILIES, PART, SeriesKey

_FLOWS: Final = "sluice_bandwidth_flow_bytes_per_second"
_PARTS: Final = "sluice_bandwidth_part_bytes_per_second"
_NODES: Final = "sluice_bandwidth_bytes_per_second"


def expression_of(key: SeriesKey, prefix: str) -> str:
    """An expression with one element or none; empty for a series that is not exported.

    :param prefix: the text before a project's id in its account
    """
    if key.rest:
        return ""
    if key.metric in FAMILIES:
        return _of_bandwidth(key)
    if key.level == POOL and key.metric in POOL_GAUGES:
        return _sum(POOL_GAUGES[key.metric], pool=key.path)
    return _of_volumes(key, prefix)


def _of_bandwidth(key: SeriesKey) -> str:
    words = key.metric.lower().split("_")
    labels = {"method": next(one for one in METHODS if one.lower() in words), "what": words[-1]}
    first, _, second = key.path.partition("/")
    if key.level in (TENANT, CONTAINER):
        return _sum(_FLOWS, account=first, container=second, **labels)
    if key.level == NODE:
        return _sum(_NODES, node=first, side=second, **labels)
    if key.level == DEVICE:
        return _sum(_PARTS, node=first, side=STORAGE_NODE, device=second, **labels)
    if key.level == PART:
        device, _, account = second.partition("/")
        side, device = (PROXY, "") if device == PROXY else (STORAGE_NODE, device)
        return _sum(_PARTS, node=first, side=side, device=device, account=account, **labels)
    return _sum(_FLOWS, **labels)


def _of_volumes(key: SeriesKey, prefix: str) -> str:
    account, _, volume = key.path.partition("/")
    project = account.removeprefix(prefix)
    places = {VOLUME: {"volume": volume, "project": project}, TENANT: {"project": project}, CLUSTER: {}}
    for level, name, _ in LEVELS:
        for quantity in QUANTITIES:
            if key.level == level and key.metric in quantity.metrics:
                label = {quantity.label: quantity.metrics[key.metric]} if quantity.label else {}
                return _sum(f"{name}_{quantity.name}", **places[level], **label)
    return ""


def _sum(name: str, **labels: str) -> str:
    """The sum of the series whose labels have these values, which may be empty."""
    return f"sum({name}{{{','.join(f'{label}={_quoted(value)}' for label, value in labels.items())}}})"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
