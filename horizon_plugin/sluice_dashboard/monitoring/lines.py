"""Lines of plots: a metric of several targets, or several metrics of one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sluice_client import Client
from sluice_dashboard.charts.history import mean_series
from sluice_dashboard.charts.plots import Plot, Series, TimeRange
from sluice_dashboard.monitoring.names import metric_title


def plot_targets(client: Client, metric: str, targets: Mapping[str, str], wanted: TimeRange) -> Plot:
    """A line of ``metric`` for each of ``targets``, which have labels.

    :raises ClientError: when the API is away, or knows no such metric
    """
    known = client.metric(metric)
    lines = [_line(client, known, target, label, wanted) for target, label in targets.items()]
    return Plot(lines, begin=wanted.begin, end=wanted.end)


def plot_metrics(client: Client, metrics: Iterable[str], target: str, wanted: TimeRange) -> Plot:
    """A line of ``target`` for each of ``metrics``, which have the same unit.

    :raises ClientError: when the API is away, or does not know one of them
    """
    known = [client.metric(metric) for metric in metrics]
    lines = [_line(client, one, target, metric_title(one["name"]), wanted) for one in known]
    return Plot(lines, begin=wanted.begin, end=wanted.end)


def _line(client: Client, metric: Mapping[str, Any], target: str, label: str, wanted: TimeRange) -> Series:
    line = mean_series(client, metric["name"], target, wanted, label, metric["unit"])
    if line.unit != "fraction":
        return line
    # people read shares in percent
    return Series(label, "percent", [(at, None if value is None else 100 * value) for at, value in line.points])
