"""The URLs of the panel *Monitoring* of administrators."""

from __future__ import annotations

from django.urls import re_path

from sluice_dashboard.monitoring import loads, nodes

_NODE = r"^nodes/(?P<node>[^/]+)/"

urlpatterns = [
    re_path(r"^$", loads.IndexView.as_view(), name="index"),
    re_path(r"^plots/nodes/$", loads.NodesPlotView.as_view(), name="nodes_plot"),
    re_path(r"^plots/loads/$", loads.LoadsPlotView.as_view(), name="loads_plot"),
    re_path(r"^adopt/$", nodes.AdoptView.as_view(), name="adopt"),
    re_path(_NODE + r"$", nodes.NodeView.as_view(), name="node"),
    re_path(_NODE + r"forget/$", nodes.ForgetView.as_view(), name="forget"),
    *(
        re_path(_NODE + rf"plots/{name}/$", nodes.NodePlotView.as_view(metrics=metrics), name=f"node_{name}")
        for name, metrics in nodes.PLOTS.items()
    ),
]
