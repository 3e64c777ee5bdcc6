"""The URLs of the panel *Bandwidth*."""

from __future__ import annotations

from django.urls import URLPattern, re_path

from sluice_dashboard.bandwidth import listing, nodes, objectives
from sluice_dashboard.panels import patterns_of_each_dashboard


def make_urlpatterns() -> list[URLPattern]:
    """The patterns of one dashboard."""
    # every name in an answer of the API has a URL, whatever its characters
    method, side = r"(?P<method>GET|PUT|REPLICATION)/", r"(?P<side>proxy|storage_node)/"
    node, device = r"(?P<node>[\s\S]+)/", r"(?P<device>[\s\S]+)/"
    owner = r"(?P<tenant>[\s\S]+)/"
    objective = r"(?P<account>[\s\S]+)/(?P<objective>[\s\S]+)/"
    return [
        re_path(r"^$", listing.IndexView.as_view(), name="index"),
        re_path(r"^objectives/set/$", objectives.SetView.as_view(), name="set"),
        re_path(rf"^objectives/{objective}delete/$", objectives.DeleteView.as_view(), name="delete"),
        re_path(rf"^tenants/{owner}$", listing.TenantView.as_view(), name="tenant"),
        re_path(rf"^plots/tenants/{method}{owner}$", listing.TenantPlotView.as_view(), name="tenant-plot"),
        re_path(r"^nodes/$", nodes.NodesView.as_view(), name="nodes"),
        re_path(rf"^nodes/{node}devices/{device}$", nodes.DeviceView.as_view(), name="device"),
        re_path(rf"^nodes/{node}$", nodes.NodeView.as_view(), name="node"),
        re_path(rf"^plots/nodes/{node}{side}{method}$", nodes.NodePlotView.as_view(), name="node-plot"),
        re_path(rf"^plots/devices/{node}{device}{method}$", nodes.DevicePlotView.as_view(), name="device-plot"),
    ]


__getattr__ = patterns_of_each_dashboard(make_urlpatterns)
