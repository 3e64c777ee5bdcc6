"""The first page of both dashboards: the state of the cluster in a few cards, and the last events."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from django.http import HttpRequest
from django.urls import re_path
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from sluice_client import Client
from sluice_dashboard.charts import rate
from sluice_dashboard.panels import patterns_of_each_dashboard
from sluice_dashboard.templatetags.sluice import panel_link
from sluice_dashboard.views import PageView, Section

OK: Final = "ok"
WARNING: Final = "warning"
DANGER: Final = "danger"
UNKNOWN: Final = "unknown"

#: Entries that a card names.
_NAMED: Final = 5
#: Age in seconds and number of the shown events; number of events that are read.
_RECENT: Final = 3600
_EVENTS: Final = 8
_READ: Final = 1000


@dataclass(frozen=True, slots=True)
class Line:
    """An entry of a card; ``url`` is the page that corrects it, empty for none."""

    text: str
    url: str = ""
    level: str = OK


@dataclass(frozen=True, slots=True)
class Card:
    """One aspect and its state; ``level`` is :data:`OK`, :data:`WARNING` …"""

    title: str
    figure: str
    level: str
    lines: tuple[Line, ...] = ()
    url: str = ""


def cards(client: Client, request: HttpRequest) -> list[Card]:
    """The counts of the API, with links to panels of the dashboard; the cluster's parts only for permitted users."""
    counts = client.overview()
    all_cards = [policies_card(counts["policies"], request), floors_card(client, counts["floors"], request)]
    cluster = counts["cluster"]
    if cluster is None:
        return all_cards
    return [service_card(cluster), nodes_card(client, cluster["nodes"], request), *all_cards]


def service_card(cluster: Mapping[str, Any]) -> Card:
    """The services that the API needs: Redis, actor hosts, the broker, nodes, Keystone."""
    names = {
        "redis": gettext("Redis"),
        "actors": gettext("Actor hosts"),
        "broker": gettext("Message broker"),
        "nodes": gettext("Nodes"),
        "keystone": gettext("Keystone"),
    }
    lines = [
        Line(f"{names.get(name, name)}: {gettext('well')}")
        if state == "ok"
        else Line(f"{names.get(name, name)}: {gettext('not well')}", level=DANGER)
        for name, state in cluster["dependencies"].items()
    ]
    away = cluster["hosts"]["away"]
    if away:
        lines.append(Line(ngettext("%d actor host is silent", "%d actor hosts are silent", away) % away, level=WARNING))
    bad = DANGER if any(line.level == DANGER for line in lines) else WARNING if away else OK
    return Card(gettext("Services"), gettext("well") if bad == OK else gettext("not well"), bad, tuple(lines))


def nodes_card(client: Client, counts: Mapping[str, Any], request: HttpRequest) -> Card:
    """How many nodes are well, and which are not."""
    url = panel_link(request, "monitoring")
    total, well = counts["total"], counts["ok"]
    bad: list[Line] = []
    for state, text in _node_states().items():
        nodes = _nodes(client, state=state) if counts[state] else ()
        bad += [Line(text % {"node": node["node"], "detail": node["detail"]}, url, DANGER) for node in nodes]
    if counts["refusing"]:
        refusing = gettext("%(node)s refuses what a policy sets")
        bad += [Line(refusing % {"node": node["node"]}, url, WARNING) for node in _nodes(client, refusing=True)]
    level = DANGER if well < total else WARNING if bad else OK if total else UNKNOWN
    figure = gettext("%(well)d of %(all)d well") % {"well": well, "all": total}
    return Card(gettext("Nodes"), figure, level, tuple(bad), url)


def _node_states() -> dict[str, str]:
    return {
        "away": gettext("%(node)s does not report %(detail)s"),
        "failed": gettext("%(node)s failed: %(detail)s"),
        "stale_history": gettext("%(node)s has an older history %(detail)s"),
    }


def _nodes(client: Client, **query: Any) -> Iterable[Mapping[str, Any]]:
    return islice(client.collection("/nodes").list(limit=_NAMED, **query), _NAMED)


def policies_card(counts: Mapping[str, Any], request: HttpRequest) -> Card:
    """Policies by state."""
    states = {
        "active": gettext("%d active"),
        "waiting": gettext("%d wait for their condition"),
        "failed": gettext("%d failed"),
        "disabled": gettext("%d disabled"),
    }
    lines = [
        Line(
            text % counts[state],
            panel_link(request, "policies", f"?state={state}"),
            DANGER if state == "failed" else OK,
        )
        for state, text in states.items()
        if counts[state]
    ]
    refused = counts["refused"]
    if refused:
        text = ngettext("%d is refused by a node", "%d are refused by nodes", refused) % refused
        lines.append(Line(text, panel_link(request, "policies"), WARNING))
    level = DANGER if counts["failed"] else WARNING if refused else OK
    return Card(gettext("Policies"), str(counts["total"]), level, tuple(lines), panel_link(request, "policies"))


def floors_card(client: Client, counts: Mapping[str, Any], request: HttpRequest) -> Card:
    """Floors of bandwidth that are not met, and their tenants."""
    url = panel_link(request, "bandwidth")
    title = gettext("Bandwidth floors")
    if counts["stale"]:
        return Card(title, gettext("no actor host measures"), UNKNOWN, (), url)
    if not counts["short"]:
        return Card(title, gettext("all met"), OK, (), url)
    figure = gettext("%(count)d not met, %(rate)s lacking") % {
        "count": counts["short"],
        "rate": rate(counts["shortfall"]),
    }
    flows = islice(client.collection("/bw/flows", "flows").list(limit=_READ), _READ)
    short = sorted((row for row in flows if row["short"] > 0), key=lambda row: -row["short"])
    return Card(title, figure, WARNING, tuple(Line(_lacks(row), url, WARNING) for row in short[:_NAMED]), url)


def _lacks(flow: Mapping[str, Any]) -> str:
    name = "/".join(filter(None, (flow["account"], flow["container"])))
    given = {"name": name, "rate": rate(flow["short"]), "method": flow["method"]}
    return str(gettext("%(name)s lacks %(rate)s of %(method)s") % given)


def fetch_cards(client: Client, request: HttpRequest) -> Mapping[str, Any]:
    """Return a card for each aspect; the API's lists contain only entries of the project."""
    return {"cards": cards(client, request)}


def fetch_events(client: Client, request: HttpRequest) -> Mapping[str, Any]:
    """Return the events of the last hour, newest first."""
    since = f"{time.time() - _RECENT:.0f}"
    events = islice(client.collection("/events").list(since=since, limit=_READ), _READ)
    return {"events": list(deque(events, _EVENTS))[::-1]}


class IndexView(PageView):
    """The state of the cluster."""

    page_title = _("Overview")
    template_name = "sluice_dashboard/overview.html"
    sections = {
        "state": Section("sluice_dashboard/_cards.html", fetch_cards, seconds=5),
        "events": Section("sluice_dashboard/_events.html", fetch_events, seconds=5),
    }


__getattr__ = patterns_of_each_dashboard(lambda: [re_path(r"^$", IndexView.as_view(), name="index")])
