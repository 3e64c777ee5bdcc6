"""One volume: how it fares, what decides about it, and what it does over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from django.http import HttpRequest
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from sluice_client import Client
from sluice_dashboard.charts.history import mean_series
from sluice_dashboard.charts.plots import Plot, Threshold, TimeRange
from sluice_dashboard.charts.units import rate
from sluice_dashboard.volumes import operations

AVAILABLE: Final = "available"
#: A parameter of throttling → what it limits.
RATES: Final = {
    "read_bw": gettext_lazy("reads"),
    "write_bw": gettext_lazy("writes"),
    "max_bw": gettext_lazy("reads and writes"),
    "read_iops": gettext_lazy("reads"),
    "write_iops": gettext_lazy("writes"),
    "max_iops": gettext_lazy("reads and writes"),
}
#: Plot → its metrics with their names, and their unit.
PLOTS: Final[Mapping[str, tuple[Sequence[tuple[str, Any]], str]]] = {
    "bandwidth": (
        (("VOLUME_READ_BW", gettext_lazy("reads")), ("VOLUME_WRITE_BW", gettext_lazy("writes"))),
        "bytes_per_second",
    ),
    "operations": (
        (("VOLUME_READ_IOPS", gettext_lazy("reads")), ("VOLUME_WRITE_IOPS", gettext_lazy("writes"))),
        "per_second",
    ),
    "latency": (
        (("VOLUME_LATENCY", gettext_lazy("median")), ("VOLUME_LATENCY_P99", gettext_lazy("99 of 100 are faster"))),
        "seconds",
    ),
    "queue": ((("VOLUME_QUEUE", gettext_lazy("requests under way")),), "count"),
}
#: Plot → how the names of the rates end that limit what it shows.
_LIMITED: Final = {"bandwidth": "_bw", "operations": "_iops"}
TITLES: Final = {
    "bandwidth": gettext_lazy("Bandwidth"),
    "operations": gettext_lazy("Operations per second"),
    "latency": gettext_lazy("Time of a request"),
    "queue": gettext_lazy("Requests under way"),
}


def fetch_state(client: Client, request: HttpRequest, volume: str) -> Mapping[str, Any]:
    """The volume, operations on it, and which buttons make sense now."""
    found = client.volume(volume)
    wanted = operations.Wanted(volume=found["id"])
    busy = operations.under_way(client, wanted)
    return {
        "volume": found,
        "filters": [filter_text(one) for one in found["filters"]],
        "asked": rate_texts(found["rates"]),
        "in_force": None if found["rates_in_force"] is None else rate_texts(found["rates_in_force"]),
        "hidden_gib": found["cinder_size"] - found["size"],
        "under_way": busy,
        "ended": operations.ended(client, wanted)[:3],
        "is_free": found["status"] == AVAILABLE and not found["node"],
        "is_busy": bool(busy),
    }


def filter_text(step: Mapping[str, Any]) -> str:
    """A filter with its parameters, as ``xor key=7``."""
    return " ".join([step["keyword"], *(f"{name}={value}" for name, value in step["params"].items())])


def rate_text(name: str, value: float) -> str:
    """A rate of throttling with its unit."""
    return rate(value) if name.endswith("_bw") else f"{value:g}/s"


def rate_texts(rates: Mapping[str, float]) -> list[str]:
    """Rates by parameter, in words."""
    return [
        _("%(what)s: at most %(rate)s") % {"what": RATES.get(name, name), "rate": rate_text(name, value)}
        for name, value in sorted(rates.items())
    ]


def fetch_snapshots(client: Client, request: HttpRequest, volume: str) -> Mapping[str, Any]:
    """The volume's snapshots."""
    return {"snapshots": list(client.snapshots(volume)), "volume_id": volume}


def fetch_policies(client: Client, request: HttpRequest, volume: str) -> Mapping[str, Any]:
    """What policies decide about the volume, and which of them are overridden and why."""
    path = client.volume(volume)["path"]
    kinds = client.effective(path, volume=True)["kinds"] if path else []
    return {
        "known": bool(path),
        "steps": [one for kind in kinds for one in (*kind["pipeline"], *kind["deletes"])],
        "overridden": [one for kind in kinds for one in kind["overridden"]],
    }


def volume_plot(client: Client, volume: str, name: str, wanted: TimeRange) -> Plot:
    """The plot ``name`` of :data:`PLOTS`; a volume that Sluice does not know has no history.

    :raises ClientError: when the API is away, or the volume is not one's own
    """
    found = client.volume(volume)
    metrics, unit = PLOTS[name]
    path = found["path"]
    series = [mean_series(client, metric, path, wanted, str(label), unit) for metric, label in metrics if path]
    ending = _LIMITED.get(name)
    limits = [
        Threshold(limit, _("limit of %(what)s: %(rate)s") % {"what": RATES[one], "rate": rate_text(one, limit)})
        for one, limit in (found["rates_in_force"] or {}).items()
        if ending and one.endswith(ending) and one in RATES
    ]
    return Plot(series, thresholds=limits, begin=wanted.begin, end=wanted.end)


def pool_plot(client: Client, pool: str, wanted: TimeRange) -> Plot:
    """What is used of a pool over time."""
    used = mean_series(client, "POOL_USED", pool, wanted, _("used"), "bytes")
    total = next((one["total"] for one in client.pools() if one["name"] == pool), None)
    whole = [Threshold(total, _("all of it"))] if total else []
    return Plot([used], thresholds=whole, begin=wanted.begin, end=wanted.end)
