"""The first page: a metric of nodes and a metric of tenants on one time axis, and the nodes."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any, Final

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from sluice_client import Client
from sluice_dashboard.charts import Plot, TimeRange
from sluice_dashboard.monitoring.choices import (
    LINES,
    ChoiceForm,
    add_refusals,
    known_targets,
    metric_field,
    plot_targets,
    time_link,
    typed_targets,
)
from sluice_dashboard.monitoring.nodes import fetch_nodes
from sluice_dashboard.names import metric_choices, metric_title
from sluice_dashboard.views import PageView, PlotView, Section

_OF_NODES: Final = frozenset({"node"})
_OF_TENANTS: Final = frozenset({"tenant", "container"})
#: Choices besides single nodes: the highest value, and all nodes.
HIGHEST: Final = "highest"
EACH: Final = "each"


class ViewForm(ChoiceForm):
    """The chosen metrics and targets: of nodes, and of tenants."""

    node_metric = metric_field(_("Metric of nodes"), "NODE_CPU")
    node = forms.ChoiceField(label=_("Node"), initial=EACH, required=False)
    metric = metric_field(_("Load"), "GETS_SEC")
    target = forms.CharField(
        label=_("Tenants or containers"),
        required=False,
        help_text=_("Names with commas between them, as acme, acme/logs. Empty: all together and each tenant."),
    )


def node_targets(client: Client, form: ViewForm) -> dict[str, str]:
    """The nodes of the plot, with labels."""
    chosen = form.value("node")
    if chosen == HIGHEST:
        return {"": gettext("the highest of all nodes")}
    if chosen != EACH:
        return {chosen: chosen}
    return dict(islice(known_targets(client, form.value("node_metric"), "node").items(), LINES))


def load_targets(client: Client, form: ViewForm) -> dict[str, str]:
    """The tenants and containers of the plot, with labels."""
    typed = typed_targets(form.value("target"))
    if typed:
        return {target: target for target in typed}
    tenants = known_targets(client, form.value("metric"), "tenant")
    return {"": gettext("all together"), **dict(islice(tenants.items(), LINES - 1))}


class IndexView(PageView):
    """The URL has all choices, so that users can share the page."""

    page_title = _("Monitoring")
    template_name = "sluice_dashboard/monitoring/index.html"
    sections = {"nodes": Section("sluice_dashboard/monitoring/_nodes.html", fetch_nodes, seconds=5)}

    def fetch(self, client: Client) -> Mapping[str, Any]:
        """Return the form, with its errors."""
        form = ViewForm(self.request.GET)
        metrics = client.metrics()
        form.set_choices("node_metric", metric_choices(metrics, _OF_NODES))
        form.set_choices("metric", metric_choices(metrics, _OF_TENANTS))
        every = [(EACH, gettext("each node, at most %d") % LINES), (HIGHEST, gettext("the highest of all nodes"))]
        form.set_choices("node", [*every, *((name, name) for name in measured_nodes(client, form))])
        if form.is_valid():
            add_refusals(client, form, "target", form.value("metric"), typed_targets(form.value("target")))
        return {
            "form": form,
            "known": list(known_targets(client, form.value("metric"), "tenant").values()),
            "node_title": metric_title(form.value("node_metric")),
            "load_title": metric_title(form.value("metric")),
            **time_link(self.request.GET),
        }


def measured_nodes(client: Client, form: ViewForm) -> list[str]:
    """All nodes with an agent or with measurements, as compute nodes may have; by name."""
    agents = (one["node"] for one in islice(client.collection("/nodes").list(), 1000))
    return sorted({*agents, *known_targets(client, form.value("node_metric"), "node")})


class NodesPlotView(PlotView):
    """A metric of nodes."""

    def plot(self, client: Client, wanted: TimeRange) -> Plot:
        """A line for each chosen node."""
        form = ViewForm(self.request.GET)
        return plot_targets(client, form.value("node_metric"), node_targets(client, form), wanted)


class LoadsPlotView(PlotView):
    """A metric of tenants and containers."""

    def plot(self, client: Client, wanted: TimeRange) -> Plot:
        """A line for each chosen target."""
        form = ViewForm(self.request.GET)
        return plot_targets(client, form.value("metric"), load_targets(client, form), wanted)
