"""One filter, metric or controller: description, nodes or hosts, revisions, and permitted actions.

The nodes or hosts with and without the code are listed in one form for all three.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.http import HttpRequest
from django.utils.translation import gettext, ngettext

from sluice_client import Client
from sluice_dashboard import api
from sluice_dashboard.code.kinds import (
    CONTROLLERS,
    FILTERS,
    KINDS,
    METRICS,
    NATIVE_OPERATION,
    TRIED,
    VOLUMES,
    CodeView,
    Kind,
)
from sluice_dashboard.views import PageView, Section

#: States of an instance → style.
_LEVELS: Final = {"running": "ok", "refused": "danger", "failed": "danger", "waiting": "warning", "away": "warning"}
Fact = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Instance:
    """Code on a node or an actor host; ``revision`` is the revision there, 0 for none."""

    where: str
    state: str
    revision: int
    reason: str = ""

    @property
    def level(self) -> str:
        """The style of its state."""
        return _LEVELS.get(self.state, "unknown")

    @property
    def state_text(self) -> str:
        """The state in words."""
        texts: dict[str, str] = {
            "running": gettext("has it"),
            "refused": gettext("refuses"),
            "waiting": gettext("has not answered yet"),
            "away": gettext("does not report"),
            "stopped": gettext("stopped"),
            "starting": gettext("starting"),
            "failed": gettext("failed"),
        }
        return texts.get(self.state, self.state)


def filter_instances(shown: Mapping[str, Any], nodes: Iterable[Mapping[str, Any]]) -> list[Instance]:
    """The state of a filter's newest revision on each node that should have it, by name.

    :param nodes: as in ``GET /nodes``; only these show which nodes have it
    """
    rollout = shown["rollout"]
    revisions = {node["node"]: int(node["code"].get(shown["keyword"], 0)) for node in nodes}
    rows = {one["node"]: Instance(one["node"], "refused", one["revision"], one["reason"]) for one in rollout["refused"]}
    for state in ("waiting", "away"):
        rows |= {name: Instance(name, state, revisions.get(name, 0)) for name in rollout[state]}
    has = [name for name, one in revisions.items() if one == shown["revision"] and name not in rows]
    if shown["sha256"]:
        rows |= {name: Instance(name, "running", shown["revision"]) for name in has}
    return [rows[name] for name in sorted(rows)]


def metric_instances(found: Iterable[Mapping[str, Any]]) -> list[Instance]:
    """The instances in ``GET /registry/metrics/{name}/instances``."""
    return [Instance(one["node"], one["state"], one["revision"], one["reason"]) for one in found]


def controller_instances(found: Iterable[Mapping[str, Any]]) -> list[Instance]:
    """The instances in ``GET /controllers/{name}/instances``."""
    return [Instance(one["host"], one["state"], one["revision"], one["reason"]) for one in found]


def summary(rows: Sequence[Instance], total: int) -> str:
    """How many have it and how many refuse it."""
    has = sum(one.state == "running" for one in rows)
    refuse = sum(one.level == "danger" for one in rows)
    text = gettext("%(has)d of %(total)d nodes have the newest revision") % {"has": has, "total": total}
    refusals = ngettext("%d refuses it", "%d refuse it", refuse) % refuse  # xgettext finds no message in an f-string
    return f"{text}, {refusals}" if refuse else str(text)


def filter_facts(shown: Mapping[str, Any]) -> list[Fact]:
    """Facts of a filter from ``GET /filters/{keyword}``."""
    said = shown["capabilities"]
    return [
        (gettext("What it does"), shown["help"]),
        (gettext("Runs in"), shown["environment"]),
        (gettext("Comes from"), gettext("the software of the nodes") if shown["installed"] else gettext("an upload")),
        (gettext("Self-service"), yes_no(shown["self_service"])),
        (gettext("A GET undoes it"), yes_no(shown["reverse"])),
        (gettext("Places"), ", ".join(said.get("places", ()))),
        (gettext("Order"), str(said.get("stage", ""))),
    ]


def yes_no(value: bool) -> str:
    """Yes or no in the user's language."""
    return str(gettext("yes") if value else gettext("no"))


def fetch_state(client: Client, request: HttpRequest, kind: str, **parameters: str) -> Mapping[str, Any]:
    """Return the state of the page; it is refreshed, because a roll-out takes seconds."""
    known, shown = KINDS[kind], api.permissions(request)
    name = known.name(parameters)
    code = client.collection(known.path).get(name)
    return {
        "kind": known,
        "name": name,
        "found": code,
        "may": _may(known, code, shown),
        **_FETCH[known.slug](client, shown, code),
    }


def _fetch_filter(client: Client, known: api.Permissions, shown: Mapping[str, Any]) -> Mapping[str, Any]:
    nodes = client.nodes() if not shown["installed"] and known.allow("nodes:list") else []
    rows = [] if shown["installed"] else filter_instances(shown, nodes)
    total = 0 if shown["installed"] else shown["rollout"]["total"]
    return {
        "facts": filter_facts(shown),
        "parameters": shown["parameters"],
        "show_parameters": True,
        "uploaded": not shown["installed"],
        "rows": rows,
        "summary": summary(rows, total),
        "usable": shown["environment"] != VOLUMES and (shown["installed"] or bool(shown["sha256"])),
    }


def _fetch_metric(client: Client, known: api.Permissions, shown: Mapping[str, Any]) -> Mapping[str, Any]:
    wanted = shown["uploaded"] and known.allow(METRICS.operations["instances"])
    rows = metric_instances(client.metric_code.instances(shown["name"])) if wanted else []
    return {
        "facts": _metric_facts(shown),
        "uploaded": shown["uploaded"],
        "state": "running" if shown["running"] else "stopped",
        "rows": rows,
        "summary": summary(rows, len(rows)) if shown["running"] else "",
    }


def _fetch_controller(client: Client, known: api.Permissions, shown: Mapping[str, Any]) -> Mapping[str, Any]:
    wanted = known.allow(CONTROLLERS.operations["instances"])
    rows = controller_instances(client.controller_code.instances(shown["name"])) if wanted else []
    return {
        "facts": _controller_facts(shown),
        "uploaded": True,
        "state": shown["state"],
        "reason": shown["reason"],
        "rows": rows,
        "summary": "",
    }


def _metric_facts(shown: Mapping[str, Any]) -> list[Fact]:
    """Facts of a metric from ``GET /registry/metrics/{name}``."""
    return [
        (gettext("What it measures"), shown["help"]),
        (gettext("Unit"), shown["unit"]),
        (gettext("Type"), shown["type"]),
        (gettext("Measured per"), ", ".join(shown["granularities"])),
        (gettext("Period"), gettext("%g s") % shown["period"]),
    ]


def _controller_facts(shown: Mapping[str, Any]) -> list[Fact]:
    """Facts of a controller from ``GET /controllers/{name}``."""
    return [
        (gettext("What it does"), shown["help"]),
        (gettext("Watches"), ", ".join(shown["metrics"])),
        (gettext("Period"), gettext("%g s") % shown["period"]),
    ]


_FETCH: Final[Mapping[str, Callable[..., Mapping[str, Any]]]] = {
    FILTERS.slug: _fetch_filter,
    METRICS.slug: _fetch_metric,
    CONTROLLERS.slug: _fetch_controller,
}


def _may(kind: Kind, shown: Mapping[str, Any], known: api.Permissions) -> dict[str, bool]:
    """The actions that the rules permit and its state allows."""
    allowed = {verb: known.allow(operation) for verb, operation in kind.operations.items()}
    if kind is FILTERS:
        native = shown["environment"] not in TRIED or known.allow(NATIVE_OPERATION)
        changes = native and not shown["installed"]
        changed = ("add", "upload", "roll_back")
        allowed |= {verb: allowed[verb] and changes for verb in changed}
        allowed["delete"] = allowed["delete"] and not shown["installed"]
        allowed["deploy"] = known.allow("deployments:deploy")
    if kind is METRICS:
        allowed |= {verb: ok and shown["uploaded"] for verb, ok in allowed.items() if verb != "delete"}
        allowed["delete"] = allowed["delete"] and (shown["uploaded"] or shown["registered"])
    if kind.can_start:
        allowed["start"] = allowed["start"] and not shown["running"]
        allowed["stop"] = allowed["stop"] and shown["running"]
    return allowed


class DetailView(CodeView, PageView):
    """The page of one filter, metric or controller."""

    template_name = "sluice_dashboard/code/detail.html"
    sections = {"state": Section("sluice_dashboard/code/_state.html", fetch_state, seconds=2)}

    @property
    def page_title(self) -> Any:
        """Its kind and its name, which the template escapes."""
        return self.kind.page_title

    def fetch(self, client: Client) -> Mapping[str, Any]:
        """A missing one is a page with status 404."""
        client.collection(self.kind.path).get(self.name)
        return {}
