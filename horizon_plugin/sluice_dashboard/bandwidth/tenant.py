"""One tenant or container: what it is promised, gets and moves, now and over time."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any, Final

from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from sluice_client import Client
from sluice_dashboard.bandwidth.listing import flow_row, objective_row, objectives_of
from sluice_dashboard.bandwidth.names import METHODS, QUANTITIES, name_of
from sluice_dashboard.charts.history import mean_series
from sluice_dashboard.charts.plots import Plot, TimeRange
from sluice_dashboard.views import PageView, PlotView, Section

#: What tenants do; replication is nobody's.
OWN_METHODS: Final = ("GET", "PUT")
#: Flows that are shown: a tenant has one for each of its containers that has objectives.
_SHOWN: Final = 100
_UNIT: Final = "bytes_per_second"


def fetch_now(client: Client, request: HttpRequest, tenant: str) -> Mapping[str, Any]:
    """Its flows and those of its containers, and its objectives."""
    account, _slash, container = tenant.partition("/")
    flows = client.collection("/bw/flows", "flows")
    found = list(islice(flows.list(account=account, container=container, limit=_SHOWN), _SHOWN))
    objectives = objectives_of(client, account)
    names = [one["label"] for one in (*found, *objectives) if one["label"]]
    return {
        "name": "/".join(filter(None, (names[0] if names else account, container))),
        "rows": [flow_row(one) for one in found],
        "stale": flows.last_page["stale"],
        "objectives": [objective_row(one) for one in objectives],
    }


class TenantView(PageView):
    """One tenant or container."""

    page_title = _("Bandwidth of a tenant")
    template_name = "sluice_dashboard/bandwidth/tenant.html"
    sections = {"now": Section("sluice_dashboard/bandwidth/_tenant.html", fetch_now, seconds=5)}

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return {
            **super().get_context_data(**kwargs),
            "tenant": self.kwargs["tenant"],
            "methods": [(method, name_of(METHODS, method)) for method in OWN_METHODS],
        }


class TenantPlotView(PlotView):
    """What is measured over time beside share, floor and ceiling."""

    def plot(self, client: Client, wanted: TimeRange) -> Plot:
        """Of what it has: a tenant without a ceiling has no line of it."""
        method, tenant = self.kwargs["method"], self.kwargs["tenant"]
        lines = [
            mean_series(client, f"{method}_BW_{quantity}", tenant, wanted, str(name), _UNIT)
            for quantity, name in QUANTITIES.items()
        ]
        known = [one for one in lines if any(value is not None for _at, value in one.points)]
        return Plot(known or lines[:1], begin=wanted.begin, end=wanted.end)
