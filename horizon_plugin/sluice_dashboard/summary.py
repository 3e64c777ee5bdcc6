"""Whether all is well, in a few cards: what the overviews of both dashboards show."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from django.urls import NoReverseMatch, reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from sluice_client import Client
from sluice_dashboard.templatetags.sluice import rate

OK: Final = "ok"
WARNING: Final = "warning"
DANGER: Final = "danger"
UNKNOWN: Final = "unknown"

#: Policies that are counted; of a page of more it is said that there are more.
_COUNTED: Final = 1000
#: Things that a card names.
_NAMED: Final = 5
#: Seconds back, and number, of the events that are shown.
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


def service_card(client: Client) -> Card:
    """What the API depends on: Redis, actor hosts, the broker, nodes, Keystone."""
    names = {
        "redis": _("Redis"),
        "actors": _("Actor hosts"),
        "broker": _("Message broker"),
        "nodes": _("Nodes"),
        "keystone": _("Keystone"),
    }
    found: Mapping[str, str] = client.health()["dependencies"]
    bad = [name for name, state in found.items() if state != "ok"]
    lines = [
        Line(
            f"{names.get(name, name)}: {_('well') if state == 'ok' else _('not well')}",
            level=DANGER if name in bad else OK,
        )
        for name, state in found.items()
    ]
    figure = _("well") if not bad else _("not well")
    return Card(_("Services"), figure, DANGER if bad else OK, tuple(lines))


def nodes_card(client: Client, dashboard: str) -> Card:
    """How many nodes do what they should, and which do not."""
    nodes = client.nodes()
    bad = [node for node in nodes if node["state"] != "ok" or node["refused"]]
    url = link(dashboard, "monitoring")
    lines = [
        Line(
            _("%(node)s: %(state)s %(detail)s")
            % {"node": node["node"], "state": _state(node), "detail": node["detail"]},
            url,
            DANGER,
        )
        for node in bad[:_NAMED]
    ]
    level = DANGER if bad else OK if nodes else UNKNOWN
    figure = _("%(well)d of %(all)d well") % {"well": len(nodes) - len(bad), "all": len(nodes)}
    return Card(_("Nodes"), figure, level, (*lines, *_more(bad, url)), url)


def _state(node: Mapping[str, Any]) -> str:
    states = {
        "ok": _("refuses what a policy sets"),
        "stale_history": _("has an older history"),
        "failed": _("failed"),
        "away": _("does not report"),
    }
    return str(states.get(node["state"], node["state"]))


def policies_card(client: Client, dashboard: str) -> Card:
    """Policies by state."""
    policies = client.collection("/policies")
    rows = list(islice(policies.list(limit=_COUNTED), _COUNTED))
    more = bool(policies.last_page.get("next_marker"))
    tally = Counter(row["state"] for row in rows)
    waiting = sum(1 for row in rows if row["enabled"] and row["enforced"]["nodes"] < row["enforced"]["total"])
    lines = [
        Line(f"{state}: {count}", link(dashboard, "policies", f"?state={state}"), DANGER if state == "failed" else OK)
        for state, count in sorted(tally.items())
    ]
    if waiting:
        text = ngettext("%d is not enforced everywhere", "%d are not enforced everywhere", waiting) % waiting
        lines.append(Line(text, link(dashboard, "policies"), WARNING))
    level = DANGER if tally["failed"] else WARNING if waiting else OK
    figure = _("more than %d") % len(rows) if more else str(len(rows))
    return Card(_("Policies"), figure, level, tuple(lines), link(dashboard, "policies"))


def floors_card(client: Client, dashboard: str) -> Card:
    """Floors of bandwidth that are not met."""
    flows = client.collection("/bw/flows", "flows")
    rows = [row for row in islice(flows.list(limit=_COUNTED), _COUNTED) if row["floor"] > 0]
    url = link(dashboard, "bandwidth")
    if flows.last_page.get("stale"):
        return Card(_("Bandwidth floors"), _("nobody measures now"), UNKNOWN, (), url)
    short = sorted((row for row in rows if row["short"] > 0), key=lambda row: -row["short"])
    lines = [Line(_lacks(row), url, WARNING) for row in short[:_NAMED]]
    figure = _("%(met)d of %(all)d met") % {"met": len(rows) - len(short), "all": len(rows)}
    return Card(_("Bandwidth floors"), figure, WARNING if short else OK, (*lines, *_more(short, url)), url)


def _lacks(flow: Mapping[str, Any]) -> str:
    name = "/".join(filter(None, (flow["account"], flow["container"])))
    given = {"name": name, "rate": rate(flow["short"]), "method": flow["method"]}
    return str(_("%(name)s lacks %(rate)s of %(method)s") % given)


def recent_events(client: Client) -> Sequence[Mapping[str, Any]]:
    """The last events of an hour, newest first."""
    since = f"{time.time() - _RECENT:.0f}"
    return list(deque(islice(client.collection("/events").list(since=since, limit=_READ), _READ), _EVENTS))[::-1]


def _more(bad: Iterable[object], url: str) -> tuple[Line, ...]:
    count = len(list(bad)) - _NAMED
    return (Line(ngettext("and %d more", "and %d more", count) % count, url, DANGER),) if count > 0 else ()
