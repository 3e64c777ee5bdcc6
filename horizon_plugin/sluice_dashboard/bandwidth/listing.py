"""The first page: what is missing of floors, what tenants get and move, and their objectives."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any, Final
from urllib.parse import urlencode

from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from sluice_client import Client
from sluice_dashboard.bandwidth.names import METHODS, OBJECTIVES, name_of, owner_name
from sluice_dashboard.bandwidth.shortfall import shortfalls
from sluice_dashboard.views import PageView, Section

#: Flows on a page; floors that are not met that are named; objectives that are read.
PAGE: Final = 50
_NAMED: Final = 20
_READ: Final = 1000

Row = Mapping[str, Any]


def objectives_of(client: Client, account: str = "") -> list[Row]:
    """The first objectives, of one account if given."""
    return list(islice(client.slos(account), _READ))


def flow_row(flow: Row) -> dict[str, Any]:
    """What a line of the table shows of a flow."""
    return {
        **flow,
        "path": "/".join(filter(None, (flow["account"], flow["container"]))),
        "name": owner_name(flow),
        "method_name": name_of(METHODS, flow["method"]),
    }


def objective_row(one: Row) -> dict[str, Any]:
    """What a line of the table shows of an objective; ``query`` fills the form that changes it."""
    known = {"account": one["account"], "name": one["name"], "storage_policy": one["storage_policy"]}
    return {
        **one,
        "objective": name_of(OBJECTIVES, one["name"]),
        "query": urlencode({**known, "value": one["text"]}),
        "scope": urlencode({"storage_policy": one["storage_policy"]}) if one["storage_policy"] else "",
    }


def fetch_missing(client: Client, request: HttpRequest) -> Mapping[str, Any]:
    """Which floors are not met; whether that is known at all; and who allocates in the place of Sluice."""
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
    """One page of what tenants and containers are promised, get and move."""
    page = client.get("/bw/flows", limit=PAGE, marker=request.GET.get("marker", ""))
    following = page["next_marker"]
    return {
        "rows": [flow_row(one) for one in page["flows"]],
        "stale": page["stale"],
        "left_out": page["left_out"],
        "first": "marker" in request.GET,
        "following": urlencode({"marker": following}) if following else "",
    }


def fetch_objectives(client: Client, request: HttpRequest) -> Mapping[str, Any]:
    """The service level objectives."""
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
