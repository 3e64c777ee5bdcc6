"""Nodes and devices: their capacity and the traffic of each tenant or device, as stacked series."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

from django.http import HttpRequest
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from sluice_client import Client
from sluice_dashboard.charts import Plot, Point, Series, Threshold, TimeRange, mean_series, rate
from sluice_dashboard.names import METHODS, SIDES, SOURCES, name_of
from sluice_dashboard.templatetags.sluice import url_in_panel
from sluice_dashboard.views import PageView, PlotView, Section

#: Parts with a colour of their own.
LARGEST: Final = 7
#: Parts from which these are chosen.
_READ: Final = 500
_UNIT: Final = "bytes_per_second"
#: Rows that are shown.
_SHOWN: Final = 500
STORAGE: Final = "storage_node"
#: Sides and methods of a node that reports no numbers now.
_PLACES: Final = (("proxy", "GET"), ("proxy", "PUT"), (STORAGE, "GET"), (STORAGE, "PUT"), (STORAGE, "REPLICATION"))
#: Proxies do not replicate.
_NOWHERE: Final = ("proxy", "REPLICATION")
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Stack:
    """A whole and its parts.

    :param whole: the metric of the whole, at ``target``
    :param metric: the metric of the parts, stored at this ``level`` below ``place``
    :param now: name of a part → its rate now
    :param labels: name of a part → its label, where that differs
    """

    whole: str
    target: str
    metric: str
    level: str
    place: str
    now: Mapping[str, float]
    labels: Mapping[str, str] = field(default_factory=dict)


def stacked_series(client: Client, stack: Stack, wanted: TimeRange) -> list[Series]:
    """The parts with the highest rates now, each over time, and the rest of the whole as one more series."""
    names = part_names(client, stack)
    chosen = largest(names, stack.now)
    parts = [
        mean_series(client, stack.metric, f"{stack.place}/{name}", wanted, stack.labels.get(name, name), _UNIT)
        for name in chosen
    ]
    known = any(one.points for one in parts)
    if known and len(chosen) == len(names):
        return parts
    whole = mean_series(client, stack.whole, stack.target, wanted, str(gettext("measured")), _UNIT)
    if not known:
        return [whole]
    rest = rest_of(whole.points, [one.points for one in parts])
    return [*parts, Series(str(gettext("all others")), _UNIT, rest)]


def part_names(client: Client, stack: Stack) -> set[str]:
    """The parts with a history, and those with traffic now: Prometheus may hold a history of those."""
    prefix = f"{stack.metric} {stack.level} {stack.place}/"
    kept: Iterable[Mapping[str, Any]] = client.collection("/metrics/history", "series").list(
        metric=stack.metric, prefix=prefix, limit=_READ
    )
    targets = (one["target"] for one in islice(kept, _READ))
    begin = f"{stack.place}/"
    return {one.removeprefix(begin) for one in targets if one.startswith(begin)} | stack.now.keys()


def largest(names: Iterable[str], now: Mapping[str, float]) -> list[str]:
    """The ones of ``names`` with the highest rates, the largest first."""
    return sorted(names, key=lambda name: (-now.get(name, 0.0), name))[:LARGEST]


def rest_of(whole: Sequence[Point], parts: Iterable[Sequence[Point]]) -> list[Point]:
    """The whole without its ``parts`` at each time; None where the whole is not known."""
    sums: dict[float, float] = {}
    for points in parts:
        for at, value in points:
            sums[at] = sums.get(at, 0.0) + (value or 0.0)
    return [(at, None if value is None else max(0.0, value - sums.get(at, 0.0))) for at, value in whole]


def fetch_nodes(client: Client, request: HttpRequest, node: str = "") -> Mapping[str, Any]:
    """Return capacity and traffic of each side of each node; of one node if given."""
    collection = client.collection("/bw/nodes", "nodes")
    rows = [
        {
            **row,
            "side_name": name_of(SIDES, row["side"]),
            "method_name": name_of(METHODS, row["method"]),
            "source_name": name_of(SOURCES, row["source"]),
        }
        for row in islice(collection.list(node=node, limit=_SHOWN), _SHOWN)
        if (row["side"], row["method"]) != _NOWHERE
    ]
    return {"nodes": rows, "stale": collection.last_page["stale"]}


def fetch_devices(client: Client, request: HttpRequest, node: str = "", device: str = "") -> Mapping[str, Any]:
    """Return the traffic of each device; of one node, or one of its devices, if given."""
    found = client.collection("/bw/devices", "devices").list(node=node, device=device, limit=_SHOWN)
    return {"devices": [{**one, "method_name": name_of(METHODS, one["method"])} for one in islice(found, _SHOWN)]}


class NodesView(PageView):
    """All nodes and devices."""

    page_title = _("Bandwidth of nodes")
    template_name = "sluice_dashboard/bandwidth/nodes.html"
    sections = {
        "nodes": Section("sluice_dashboard/bandwidth/_nodes.html", fetch_nodes, seconds=5),
        "devices": Section("sluice_dashboard/bandwidth/_devices.html", fetch_devices, seconds=5),
    }


class NodeView(NodesView):
    """One node with its devices; a plot for each side and method."""

    page_title = _("Bandwidth of a node")
    template_name = "sluice_dashboard/bandwidth/node.html"

    def fetch(self, client: Client) -> Mapping[str, Any]:
        """Return the sides and methods of the node."""
        node = self.kwargs["node"]
        rows = client.get("/bw/nodes", node=node)["nodes"]
        known = [(one["side"], one["method"]) for one in rows]
        places = [one for one in known if one != _NOWHERE] or _PLACES
        titles = [(side, method, f"{name_of(METHODS, method)}, {name_of(SIDES, side)}") for side, method in places]
        return {"node": node, "places": titles}


class DeviceView(PageView):
    """One device."""

    page_title = _("Bandwidth of a device")
    template_name = "sluice_dashboard/bandwidth/device.html"
    sections = {"devices": Section("sluice_dashboard/bandwidth/_devices.html", fetch_devices, seconds=5)}

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        node = self.kwargs["node"]
        return {
            **super().get_context_data(**kwargs),
            "methods": [(method, name_of(METHODS, method)) for side, method in _PLACES if side == STORAGE],
            "custom_breadcrumb": [(node, url_in_panel(self.request, "node", node))],
        }


class NodePlotView(PlotView):
    """The traffic of one side of a node: at a proxy by tenant, at a storage node by device."""

    def plot(self, client: Client, wanted: TimeRange) -> Plot:
        """Stack the series, with the present capacity."""
        node, side, method = (self.kwargs[name] for name in ("node", "side", "method"))
        place = f"{node}/{side}"
        if side == STORAGE:
            rows = client.get("/bw/devices", node=node, method=method, limit=_SHOWN)["devices"]
            now = {one["device"]: one["measured"] for one in rows}
            stack = Stack(f"NODE_{method}_BW_MEASURED", place, f"DEVICE_{method}_BW_MEASURED", "device", node, now)
        else:
            stack = tenant_stack(client, f"NODE_{method}_BW_MEASURED", place, node=node, side=side, method=method)
        return stacked_plot(client, stack, wanted, capacity_of(client, node, side, method))


class DevicePlotView(PlotView):
    """The traffic of a device, by tenant."""

    def plot(self, client: Client, wanted: TimeRange) -> Plot:
        """Stack the series, with the capacity of all devices of the node together."""
        node, device, method = (self.kwargs[name] for name in ("node", "device", "method"))
        place = f"{node}/{device}"
        stack = tenant_stack(client, f"DEVICE_{method}_BW_MEASURED", place, node=node, device=device, method=method)
        return stacked_plot(client, stack, wanted, capacity_of(client, node, STORAGE, method))


def stacked_plot(client: Client, stack: Stack, wanted: TimeRange, thresholds: list[Threshold]) -> Plot:
    """A stack below its thresholds."""
    series = stacked_series(client, stack, wanted)
    return Plot(series, thresholds=thresholds, stacked=True, begin=wanted.begin, end=wanted.end)


def tenant_stack(client: Client, whole: str, place: str, **query: str) -> Stack:
    """The traffic of tenants at a ``place``, which ``query`` selects among parts; replication has no tenant."""
    now: dict[str, float] = {}
    labels = {"": str(_("everybody's"))}
    for one in islice(client.collection("/bw/parts", "parts").list(limit=_SHOWN, **query), _SHOWN):
        now[one["account"]] = now.get(one["account"], 0.0) + one["measured"]
        labels.setdefault(one["account"], one["label"] or one["account"])
    return Stack(whole, place, f"PART_{query['method']}_BW_MEASURED", "part", place, now, labels)


def capacity_of(client: Client, node: str, side: str, method: str) -> list[Threshold]:
    """The capacity of one side of a node, where it is known."""
    text = _("%(side)s %(node)s can carry %(rate)s (%(source)s)")
    return [
        Threshold(
            row["capacity"],
            str(text)
            % {
                "side": name_of(SIDES, side),
                "node": node,
                "rate": rate(row["capacity"]),
                "source": name_of(SOURCES, row["source"]),
            },
        )
        for row in client.get("/bw/nodes", node=node, side=side, method=method)["nodes"]
        if row["capacity"] is not None
    ]
