"""Whether all is well, in a few cards: what the overviews of both dashboards show."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from django.urls import NoReverseMatch, reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from sluice_client import Client
from sluice_dashboard.charts.units import rate

OK: Final = "ok"
WARNING: Final = "warning"
DANGER: Final = "danger"
UNKNOWN: Final = "unknown"

#: Things that a card names.
_NAMED: Final = 5
#: Seconds back, and number, of the events that are shown; of how many that are read.
_RECENT: Final = 3600
_EVENTS: Final = 8
_READ: Final = 1000


@dataclass(frozen=True, slots=True)
class Line:
    """Something that a card names; ``url`` is where it is mended, empty for nowhere."""

    text: str
    url: str = ""
    level: str = OK


@dataclass(frozen=True, slots=True)
class Card:
    """One question and its answer; ``level`` is :data:`OK`, :data:`WARNING` …"""

    title: str
    figure: str
    level: str
    lines: tuple[Line, ...] = ()
    url: str = ""


def link(dashboard: str, panel: str, query: str = "") -> str:
    """The URL of a panel; empty where it is not installed."""
    try:
        return f"{reverse(f'horizon:{dashboard}:{panel}:index')}{query}"
    except NoReverseMatch:
        return ""


def cards(client: Client, dashboard: str) -> list[Card]:
    """What the API counts; the cluster's own parts only for whoever may see them.

    :param dashboard: whose panels the cards lead to
    """
    counts = client.overview()
    found = [policies_card(counts["policies"], dashboard), floors_card(client, counts["floors"], dashboard)]
    cluster = counts["cluster"]
    if cluster is None:
        return found
    return [service_card(cluster), nodes_card(client, cluster["nodes"], dashboard), *found]


def service_card(cluster: Mapping[str, Any]) -> Card:
    """What the API depends on: Redis, actor hosts, the broker, nodes, Keystone."""
    names = {
        "redis": _("Redis"),
        "actors": _("Actor hosts"),
        "broker": _("Message broker"),
        "nodes": _("Nodes"),
        "keystone": _("Keystone"),
    }
    lines = [
        Line(f"{names.get(name, name)}: {_('well')}")
        if state == "ok"
        else Line(f"{names.get(name, name)}: {_('not well')}", level=DANGER)
        for name, state in cluster["dependencies"].items()
    ]
    away = cluster["hosts"]["away"]
    if away:
        lines.append(Line(ngettext("%d actor host is silent", "%d actor hosts are silent", away) % away, level=WARNING))
    bad = DANGER if any(line.level == DANGER for line in lines) else WARNING if away else OK
    return Card(_("Services"), _("well") if bad == OK else _("not well"), bad, tuple(lines))


def nodes_card(client: Client, counts: Mapping[str, Any], dashboard: str) -> Card:
    """How many nodes do what they should, and which do not."""
    url = link(dashboard, "monitoring")
    total, well = counts["total"], counts["ok"]
    bad: list[Line] = []
    for state, text in _node_states().items():
        nodes = _nodes(client, state=state) if counts[state] else ()
        bad += [Line(text % {"node": node["node"], "detail": node["detail"]}, url, DANGER) for node in nodes]
    if counts["refusing"]:
        refusing = _("%(node)s refuses what a policy sets")
        bad += [Line(refusing % {"node": node["node"]}, url, WARNING) for node in _nodes(client, refusing=True)]
    level = DANGER if well < total else WARNING if bad else OK if total else UNKNOWN
    figure = _("%(well)d of %(all)d well") % {"well": well, "all": total}
    return Card(_("Nodes"), figure, level, tuple(bad), url)


def _node_states() -> dict[str, str]:
    return {
        "away": _("%(node)s does not report %(detail)s"),
        "failed": _("%(node)s failed: %(detail)s"),
        "stale_history": _("%(node)s has an older history %(detail)s"),
    }


def _nodes(client: Client, **query: Any) -> Iterable[Mapping[str, Any]]:
    return islice(client.collection("/nodes").list(limit=_NAMED, **query), _NAMED)


def policies_card(counts: Mapping[str, Any], dashboard: str) -> Card:
    """Policies by state."""
    states = {
        "active": _("%d active"),
        "waiting": _("%d wait for their condition"),
        "failed": _("%d failed"),
        "disabled": _("%d disabled"),
    }
    lines = [
        Line(text % counts[state], link(dashboard, "policies", f"?state={state}"), DANGER if state == "failed" else OK)
        for state, text in states.items()
        if counts[state]
    ]
    refused = counts["refused"]
    if refused:
        text = ngettext("%d is refused by a node", "%d are refused by nodes", refused) % refused
        lines.append(Line(text, link(dashboard, "policies"), WARNING))
    level = DANGER if counts["failed"] else WARNING if refused else OK
    return Card(_("Policies"), str(counts["total"]), level, tuple(lines), link(dashboard, "policies"))


def floors_card(client: Client, counts: Mapping[str, Any], dashboard: str) -> Card:
    """Floors of bandwidth that are not met, and whose they are."""
    url = link(dashboard, "bandwidth")
    title = _("Bandwidth floors")
    if counts["stale"]:
        return Card(title, _("nobody measures now"), UNKNOWN, (), url)
    if not counts["short"]:
        return Card(title, _("all met"), OK, (), url)
    figure = _("%(count)d not met, %(rate)s lacking") % {"count": counts["short"], "rate": rate(counts["shortfall"])}
    flows = islice(client.collection("/bw/flows", "flows").list(limit=_READ), _READ)
    short = sorted((row for row in flows if row["short"] > 0), key=lambda row: -row["short"])
    return Card(title, figure, WARNING, tuple(Line(_lacks(row), url, WARNING) for row in short[:_NAMED]), url)


def _lacks(flow: Mapping[str, Any]) -> str:
    name = "/".join(filter(None, (flow["account"], flow["container"])))
    given = {"name": name, "rate": rate(flow["short"]), "method": flow["method"]}
    return str(_("%(name)s lacks %(rate)s of %(method)s") % given)


def recent_events(client: Client) -> Sequence[Mapping[str, Any]]:
    """The last events of an hour, newest first."""
    since = f"{time.time() - _RECENT:.0f}"
    return list(deque(islice(client.collection("/events").list(since=since, limit=_READ), _READ), _EVENTS))[::-1]
