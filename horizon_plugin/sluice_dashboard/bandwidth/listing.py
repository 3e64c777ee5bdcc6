"""Objectives, shares and rates of tenants: floors that are not met, flows, objectives, and the page of one tenant."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final
from urllib.parse import urlencode

from django.http import HttpRequest
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from sluice_client import Client
from sluice_dashboard.charts import Plot, TimeRange, mean_series, rate
from sluice_dashboard.names import FLOORS, METHODS, MOVES, OBJECTIVES, QUANTITIES, name_of, owner_name
from sluice_dashboard.views import PageView, PlotView, Section, next_query

Row = Mapping[str, Any]
#: Flows on a page; named floors that are not met; objectives that are read.
PAGE: Final = 50
_NAMED: Final = 20
_READ: Final = 1000
#: Methods of tenants; replication has no tenant.
OWN_METHODS: Final = ("GET", "PUT")
#: Flows in the plots: a tenant has one for each of its containers with objectives.
_SHOWN: Final = 100
_UNIT: Final = "bytes_per_second"


@dataclass(frozen=True, slots=True)
class Shortfall:
    """A floor that is not met: ``path`` and ``name`` of its owner, the missing bytes per second, a sentence."""

    path: str
    name: str
    missing: float
    text: str


def shortfalls(flows: Iterable[Row], objectives: Iterable[Row]) -> list[Shortfall]:
    """A line for each floor that is not met, the largest shortfall first.

    :param flows: of ``GET /bw/flows``
    :param objectives: of ``GET /bw/slo``; an objective without a flow belongs to a tenant that moves no bytes now
    """
    short = [one for one in flows if one["short"] > 0]
    found = [_of_flow(one) for one in short]
    found += _of_objectives(objectives, short)
    return sorted(found, key=lambda one: (-one.missing, one.text))


def _of_flow(flow: Row) -> Shortfall:
    text = gettext(
        "%(name)s is promised %(floor)s of %(method)s%(under)s. The cluster can carry %(met)s of it now: %(short)s are "
        "missing. %(measured)s are moved."
    )
    rates = {name: rate(flow[name]) for name in ("floor", "met", "short", "measured")}
    name = owner_name(flow)
    words = {"name": name, "method": name_of(MOVES, flow["method"]), "under": _under(flow)}
    path = "/".join(filter(None, (flow["account"], flow["container"])))
    return Shortfall(path, name, flow["short"], str(text) % {**rates, **words})


def _of_objectives(objectives: Iterable[Row], short: Iterable[Row]) -> Iterator[Shortfall]:
    told = {(one["account"], one["method"], policy) for one in short for policy in one["policies"]}
    text = gettext(
        "%(name)s is promised %(floor)s of %(method)s%(under)s, of which nothing is used now. "
        "%(short)s of it are missing."
    )
    for objective in objectives:
        method = FLOORS.get(objective["name"])
        if not objective["infeasible"] or method is None or (objective["account"], method, objective["policy"]) in told:
            continue
        missing, name = objective["infeasible"]["shortfall"], owner_name(objective)
        words = {
            "name": name,
            "floor": rate(objective["value"]),
            "method": name_of(MOVES, method),
            "under": _under(objective),
            "short": rate(missing),
        }
        yield Shortfall(objective["account"], name, missing, str(text) % words)


def _under(row: Row) -> str:
    name = row["storage_policy"]
    return str(gettext(" under the storage policy %s")) % name if name else ""


def objectives_of(client: Client, account: str = "") -> list[Row]:
    """The first objectives, of one account if given."""
    return list(islice(client.slos(account), _READ))


def flow_row(flow: Row) -> dict[str, Any]:
    """A flow as a line of the table."""
    return {
        **flow,
        "path": "/".join(filter(None, (flow["account"], flow["container"]))),
        "name": owner_name(flow),
        "method_name": name_of(METHODS, flow["method"]),
    }


def objective_row(objective: Row) -> dict[str, Any]:
    """An objective as a line of the table; ``query`` fills the form that changes it."""
    known = {"account": objective["account"], "name": objective["name"], "storage_policy": objective["storage_policy"]}
    return {
        **objective,
        "objective": name_of(OBJECTIVES, objective["name"]),
        "query": urlencode({**known, "value": objective["text"]}),
        "scope": urlencode({"storage_policy": objective["storage_policy"]}) if objective["storage_policy"] else "",
    }


def fetch_missing(client: Client, request: HttpRequest) -> Mapping[str, Any]:
    """Return the floors that are not met, whether they are known, and the controllers that allocate."""
    flows = client.collection("/bw/flows", "flows")
    short = list(islice(flows.list(short=True, limit=_NAMED), _NAMED))
    objectives = objectives_of(client)
    page = flows.last_page
    return {
        "missing": shortfalls(short, objectives)[:_NAMED],
        "stale": page["stale"],
        "controllers": [(name_of(METHODS, method), name) for method, name in page["controllers"].items()],
    }


def fetch_flows(client: Client, request: HttpRequest) -> Mapping[str, Any]:
    """Return one page of the objectives, shares and rates of tenants and containers."""
    page = client.get("/bw/flows", limit=PAGE, marker=request.GET.get("marker", ""))
    return {
        "rows": [flow_row(one) for one in page["flows"]],
        "stale": page["stale"],
        "left_out": page["left_out"],
        "first": "marker" in request.GET,
        "following": next_query(page["next_marker"]),
    }


def fetch_objectives(client: Client, request: HttpRequest) -> Mapping[str, Any]:
    """Return the service level objectives."""
    found = [objective_row(one) for one in objectives_of(client)]
    return {"objectives": found, "most": _READ if len(found) == _READ else 0}


class IndexView(PageView):
    """Floors, flows and objectives."""

    page_title = _("Bandwidth")
    template_name = "sluice_dashboard/bandwidth/index.html"
    sections = {
        "missing": Section("sluice_dashboard/bandwidth/_missing.html", fetch_missing, seconds=5),
        "flows": Section("sluice_dashboard/bandwidth/_flows.html", fetch_flows, seconds=5),
        "objectives": Section("sluice_dashboard/bandwidth/_objectives.html", fetch_objectives, seconds=10),
    }


def fetch_now(client: Client, request: HttpRequest, tenant: str) -> Mapping[str, Any]:
    """Return its flows, those of its containers, and its objectives."""
    account, _slash, container = tenant.partition("/")
    flows = client.collection("/bw/flows", "flows")
    flow_rows = list(islice(flows.list(account=account, container=container, limit=_SHOWN), _SHOWN))
    objectives = objectives_of(client, account)
    names = [one["label"] for one in (*flow_rows, *objectives) if one["label"]]
    return {
        "name": "/".join(filter(None, (names[0] if names else account, container))),
        "rows": [flow_row(one) for one in flow_rows],
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
            "methods": [(method, name_of(METHODS, method)) for method in OWN_METHODS],
        }


class TenantPlotView(PlotView):
    """The measured rate over time beside share, floor and ceiling."""

    def plot(self, client: Client, wanted: TimeRange) -> Plot:
        """Omit lines that the tenant does not have, such as a ceiling."""
        method, tenant = self.kwargs["method"], self.kwargs["tenant"]
        lines = [
            mean_series(client, f"{method}_BW_{quantity}", tenant, wanted, str(name), _UNIT)
            for quantity, name in QUANTITIES.items()
        ]
        known = [one for one in lines if any(value is not None for _at, value in one.points)]
        return Plot(known or lines[:1], begin=wanted.begin, end=wanted.end)
