"""Nodes: what their agents reported last, one node's plots, and what is done to them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from sluice_client import Client
from sluice_dashboard.charts.plots import Plot, TimeRange
from sluice_dashboard.content.sluice.monitoring.reports import node_row, node_rows
from sluice_dashboard.forms import ConfirmView
from sluice_dashboard.monitoring.choices import time_link
from sluice_dashboard.monitoring.lines import plot_metrics
from sluice_dashboard.templatetags.sluice import url_in_panel
from sluice_dashboard.views import PageView, PlotView, Section

#: Plot of a node → its metrics, which have one unit.
PLOTS: Final[Mapping[str, tuple[str, ...]]] = {
    "busy": ("NODE_CPU", "NODE_MEMORY", "NODE_DISK_BUSY"),
    "disks": ("NODE_DISK_READ", "NODE_DISK_WRITE"),
    "network": ("NODE_NET_IN", "NODE_NET_OUT"),
}
_TITLES: Final = {
    "busy": _("Processors, memory and the busiest disk"),
    "disks": _("Disks"),
    "network": _("Network"),
}


def fetch_nodes(client: Client, request: HttpRequest) -> Mapping[str, Any]:
    """All nodes, first those that are not well or refuse something."""
    nodes = client.nodes()
    return {
        "rows": node_rows(nodes),
        "well": sum(1 for node in nodes if node["state"] == "ok"),
        "away": any(node["state"] == "away" for node in nodes),
        "stale": any(node["state"] == "stale_history" for node in nodes),
    }


def fetch_node(client: Client, request: HttpRequest, node: str) -> Mapping[str, Any]:
    """What its agent reported last."""
    return {"row": node_row(client.node(node))}


class NodeView(PageView):
    """One node."""

    page_title = _("Node")
    template_name = "sluice/monitoring/node.html"
    sections = {"state": Section("sluice/monitoring/_node.html", fetch_node, seconds=5)}

    def fetch(self, client: Client) -> Mapping[str, Any]:
        """Its name and plots; 404 when there is no such node."""
        name = self.kwargs["node"]
        client.node(name)
        plots = [(url_in_panel(self.request, f"node_{plot}", name), str(title)) for plot, title in _TITLES.items()]
        return {"node": name, "plots": plots, **time_link(self.request.GET)}


class NodePlotView(PlotView):
    """Some metrics of one node."""

    metrics: ClassVar[tuple[str, ...]] = ()

    def plot(self, client: Client, wanted: TimeRange) -> Plot:
        """A line for each metric."""
        return plot_metrics(client, self.metrics, self.kwargs["node"], wanted)


class ForgetView(ConfirmView):
    """Forget a node that is no more."""

    page_title = _("Forget a node")
    submit_label = _("Forget")

    def question(self) -> str:
        text = _("Forget the node %s? It is not counted any more. If it lives, it reports itself again.")
        return str(text % self.kwargs["node"])

    def act(self, client: Client, data: Mapping[str, Any]) -> str:
        """Forget it."""
        client.forget_node(self.kwargs["node"])
        return str(_("The node is forgotten."))

    def get_success_url(self) -> str:
        return url_in_panel(self.request, "index")


class AdoptView(ConfirmView):
    """Have nodes take the current history, after Redis was wiped or failed over."""

    page_title = _("Take the current history")
    submit_label = _("Take it")

    def question(self) -> str:
        return str(
            _(
                "Have all nodes take the configuration that Redis holds now? After Redis was wiped or failed over,"
                " nodes keep enforcing what they knew before. What Redis does not hold any more is taken back."
            )
        )

    def act(self, client: Client, data: Mapping[str, Any]) -> str:
        """Tell them."""
        client.adopt()
        return str(_("All nodes take the current history."))

    def get_success_url(self) -> str:
        return url_in_panel(self.request, "index")
