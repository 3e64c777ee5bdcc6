"""What metrics are called on pages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from django.utils.translation import gettext_lazy as _

#: Metric of nodes → its name.
NODE_METRICS: Final[Mapping[str, Any]] = {
    "NODE_CPU": _("Processors: time at work"),
    "NODE_MEMORY": _("Memory in use"),
    "NODE_DISK_BUSY": _("Busiest disk: time at work"),
    "NODE_DISK_READ": _("Read from disks"),
    "NODE_DISK_WRITE": _("Written to disks"),
    "NODE_NET_IN": _("Received from the network"),
    "NODE_NET_OUT": _("Sent to the network"),
}
#: Metric of tenants and containers → its name.
LOADS: Final[Mapping[str, Any]] = {
    "GETS_SEC": _("Downloads per second"),
    "PUTS_SEC": _("Uploads per second"),
    "GET_BW": _("Downloaded bytes"),
    "PUT_BW": _("Uploaded bytes"),
    "THROUGHPUT": _("Downloaded and uploaded bytes"),
    "ACTIVE_REQUESTS": _("Requests at work"),
    "ERRORS": _("Share of errors"),
    "RESPONSE_TIME": _("Response time, median"),
    "RESPONSE_TIME_P95": _("Response time, 95 %"),
    "RESPONSE_TIME_P99": _("Response time, 99 %"),
    "HIT_RATIO": _("Hits of the cache"),
    "STORED": _("Stored bytes"),
    "OBJECTS": _("Objects"),
}
#: State of a node → its name.
NODE_STATES: Final[Mapping[str, Any]] = {
    "ok": _("well"),
    "stale_history": _("has an older history"),
    "failed": _("failed"),
    "away": _("does not report"),
}


def metric_choices(metrics: Iterable[Mapping[str, Any]], levels: frozenset[str]) -> list[tuple[str, str]]:
    """Name and title of the metrics that exist at one of ``levels``; first those that have a name here.

    :param metrics: as the API's registry has them
    """
    known = {**NODE_METRICS, **LOADS}
    names = [one["name"] for one in metrics if levels & set(one["granularities"])]
    order = {name: place for place, name in enumerate(known)}
    return [(name, str(known.get(name, name))) for name in sorted(names, key=lambda name: (order.get(name, 99), name))]


def metric_title(name: str) -> str:
    """What a metric is called; one of others has its own name."""
    return str(NODE_METRICS.get(name) or LOADS.get(name, name))
