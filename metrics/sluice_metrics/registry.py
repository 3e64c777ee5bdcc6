"""The installed metrics: built-in ones in one literal list, third-party ones by entry point.

A plugin is a distribution with an entry point in the group ``sluice.metrics`` that names a
:class:`~sluice_metrics.api.Metric`.  A plugin that cannot be loaded is reported and left out.
"""

from __future__ import annotations

from typing import Final

from sluice_code.plugins import load_plugins
from sluice_core.describe import MetricInfo
from sluice_core.metrics.usage_metrics import AGENT_METRICS
from sluice_metrics.api import Metric
from sluice_metrics.builtin.bandwidth import GetBw, PutBw, Throughput
from sluice_metrics.builtin.compressibility import Compressibility
from sluice_metrics.builtin.requests import ActiveRequests, GetsSec, PutsSec
from sluice_metrics.builtin.responses import Errors, HitRatio, ResponseTime, ResponseTimeP95, ResponseTimeP99

GROUP: Final = "sluice.metrics"

BUILT_IN: Final[tuple[type[Metric], ...]] = (
    GetsSec,
    PutsSec,
    GetBw,
    PutBw,
    Throughput,
    ActiveRequests,
    Errors,
    HitRatio,
    ResponseTime,
    ResponseTimeP95,
    ResponseTimeP99,
    Compressibility,
)


def load_metrics(failures: dict[str, str] | None = None) -> dict[str, type[Metric]]:
    """Return every usable metric by its name, built-in ones first.

    :param failures: receives the reason of each plugin that was left out, by the entry point's name
    """
    return load_plugins(GROUP, BUILT_IN, lambda one: one.info.name, _unfit, failures)


def _unfit(plugin: object) -> str:
    """Return why ``plugin`` cannot be used; empty when it can."""
    if not (isinstance(plugin, type) and issubclass(plugin, Metric)):
        return f"`{plugin!r}` is not a subclass of Metric"
    info = getattr(plugin, "info", None)
    if not isinstance(info, MetricInfo):
        return "it has no `info`"
    if info.name != info.name.upper():
        return f"name `{info.name}` is not in upper case"
    return ""


def descriptions(metrics: dict[str, type[Metric]] | None = None) -> dict[str, MetricInfo]:
    """Return the descriptions of the installed metrics, and of those that agents measure, by name."""
    found = {name: one.info for name, one in (load_metrics() if metrics is None else metrics).items()}
    return {**{one.name: one for one in AGENT_METRICS}, **found}
