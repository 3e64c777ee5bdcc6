"""Nodes: last reports of their agents, plots of one node, and forms."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Final

from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from sluice_client import Client
from sluice_dashboard.charts import Plot, TimeRange
from sluice_dashboard.monitoring.choices import plot_metrics, time_link
from sluice_dashboard.names import NODE_STATES
from sluice_dashboard.templatetags.sluice import url_in_panel
from sluice_dashboard.views import ConfirmView, PageView, PlotView, Section

#: State of a node → style; the first are shown first.
_LEVELS: Final = {"failed": "failed", "away": "failed", "stale_history": "waiting", "ok": "active"}
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


def node_row(node: Mapping[str, Any]) -> dict[str, Any]:
    """A node of the API with its problems: ``left_out`` are plugins and isolated code that do not run."""
    left_out = {**node["plugins"], **{name: text for name, text in node["sandbox"].items() if text != "ok"}}
    return {
        **node,
        "state_name": str(NODE_STATES.get(node["state"], node["state"])),
        "level": _LEVELS.get(node["state"], "failed"),
        "left_out": sorted(left_out.items()),
    }


def node_rows(nodes: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """All nodes, first those with problems, then those that refuse an assignment, then by name."""
    order = {state: place for place, state in enumerate(_LEVELS)}
    rows = sorted(nodes, key=lambda node: (order.get(node["state"], 0), not node["refused"], node["node"]))
    return [node_row(node) for node in rows]


def fetch_nodes(client: Client, request: HttpRequest) -> Mapping[str, Any]:
    """Return all nodes, first those with problems or refusals."""
    nodes = client.nodes()
    return {
        "rows": node_rows(nodes),
        "well": sum(1 for node in nodes if node["state"] == "ok"),
        "away": any(node["state"] == "away" for node in nodes),
        "stale": any(node["state"] == "stale_history" for node in nodes),
    }


def fetch_node(client: Client, request: HttpRequest, node: str) -> Mapping[str, Any]:
    """Return the last report of its agent."""
    return {"row": node_row(client.node(node))}


class NodeView(PageView):
    """One node."""

    page_title = _("Node")
    template_name = "sluice_dashboard/monitoring/node.html"
    sections = {"state": Section("sluice_dashboard/monitoring/_node.html", fetch_node, seconds=5)}

    def fetch(self, client: Client) -> Mapping[str, Any]:
        """Its name and plots; 404 if there is no such node."""
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
    """Delete a node that no longer exists."""

    page_title = _("Forget a node")
    submit_label = _("Forget")

    def question(self) -> str:
        text = _("Forget the node %s? It is not counted any more. If it lives, it reports itself again.")
        return str(text % self.kwargs["node"])

    def act(self, client: Client, data: Mapping[str, Any]) -> str:
        """Delete it."""
        client.forget_node(self.kwargs["node"])
        return str(_("The node is forgotten."))


class AdoptView(ConfirmView):
    """Make nodes adopt the current history, after Redis was wiped or failed over."""

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
        """Make them adopt it."""
        client.adopt()
        return str(_("All nodes take the current history."))
