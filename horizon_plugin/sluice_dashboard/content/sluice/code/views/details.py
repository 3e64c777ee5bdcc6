"""One filter, metric or controller: what it says of itself, where it is, its revisions, and what one may do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, Final

from django.http import HttpRequest
from django.utils.translation import gettext as _

from sluice_client import Client
from sluice_dashboard import api
from sluice_dashboard.content.sluice.code import rollout
from sluice_dashboard.content.sluice.code.kinds import (
    CONTROLLERS,
    FILTERS,
    KINDS,
    METRICS,
    NATIVE_OPERATION,
    TRIED,
    VOLUMES,
    Kind,
)
from sluice_dashboard.filters import description
from sluice_dashboard.views import PageView, Section


def fetch_state(client: Client, request: HttpRequest, kind: str, **parameters: str) -> Mapping[str, Any]:
    """All that the page shows; it follows by itself, since a roll-out takes seconds."""
    known, shown = KINDS[kind], api.permissions(request)
    name = known.name(parameters)
    found = client.collection(known.path).get(name)
    return {
        "kind": known,
        "name": name,
        "found": found,
        "may": _may(known, found, shown),
        **_FETCH[known.slug](client, shown, found),
    }


def _fetch_filter(client: Client, known: api.Permissions, found: Mapping[str, Any]) -> Mapping[str, Any]:
    nodes = client.nodes() if not found["installed"] and known.allow("nodes:list") else []
    rows = [] if found["installed"] else rollout.filter_instances(found, nodes)
    total = 0 if found["installed"] else found["rollout"]["total"]
    return {
        "facts": description.filter_facts(found),
        "parameters": found["parameters"],
        "show_parameters": True,
        "uploaded": not found["installed"],
        "rows": rows,
        "summary": rollout.summary(rows, total),
        "usable": found["environment"] != VOLUMES and (found["installed"] or bool(found["sha256"])),
    }


def _fetch_metric(client: Client, known: api.Permissions, found: Mapping[str, Any]) -> Mapping[str, Any]:
    wanted = found["uploaded"] and known.allow(METRICS.operations["instances"])
    rows = rollout.metric_instances(client.metric_code.instances(found["name"])) if wanted else []
    return {
        "facts": _metric_facts(found),
        "uploaded": found["uploaded"],
        "state": "running" if found["running"] else "stopped",
        "rows": rows,
        "summary": rollout.summary(rows, len(rows)) if found["running"] else "",
    }


def _fetch_controller(client: Client, known: api.Permissions, found: Mapping[str, Any]) -> Mapping[str, Any]:
    wanted = known.allow(CONTROLLERS.operations["instances"])
    rows = rollout.controller_instances(client.controller_code.instances(found["name"])) if wanted else []
    return {
        "facts": _controller_facts(found),
        "uploaded": True,
        "state": found["state"],
        "reason": found["reason"],
        "rows": rows,
        "summary": "",
    }


def _metric_facts(found: Mapping[str, Any]) -> list[description.Fact]:
    """Of a metric as ``GET /registry/metrics/{name}`` shows it."""
    return [
        (_("What it measures"), found["help"]),
        (_("Unit"), found["unit"]),
        (_("Type"), found["type"]),
        (_("Measured per"), ", ".join(found["granularities"])),
        (_("Period"), _("%g s") % found["period"]),
    ]


def _controller_facts(found: Mapping[str, Any]) -> list[description.Fact]:
    """Of a controller as ``GET /controllers/{name}`` shows it."""
    return [
        (_("What it does"), found["help"]),
        (_("Watches"), ", ".join(found["metrics"])),
        (_("Period"), _("%g s") % found["period"]),
    ]


_FETCH: Final[Mapping[str, Callable[..., Mapping[str, Any]]]] = {
    FILTERS.slug: _fetch_filter,
    METRICS.slug: _fetch_metric,
    CONTROLLERS.slug: _fetch_controller,
}


def _may(kind: Kind, found: Mapping[str, Any], known: api.Permissions) -> dict[str, bool]:
    """What one may do to it: the rules allow it, and it makes sense."""
    allowed = {verb: known.allow(operation) for verb, operation in kind.operations.items()}
    if kind is FILTERS:
        native = found["environment"] not in TRIED or known.allow(NATIVE_OPERATION)
        changes = native and not found["installed"]
        changed = ("add", "upload", "roll_back")
        allowed |= {verb: allowed[verb] and changes for verb in changed}
        allowed["delete"] = allowed["delete"] and not found["installed"]
        allowed["deploy"] = known.allow("deployments:deploy")
    if kind is METRICS:
        allowed |= {verb: ok and found["uploaded"] for verb, ok in allowed.items() if verb != "delete"}
        allowed["delete"] = allowed["delete"] and (found["uploaded"] or found["registered"])
    if kind.can_start:
        allowed["start"] = allowed["start"] and not found["running"]
        allowed["stop"] = allowed["stop"] and found["running"]
    return allowed


class DetailView(PageView):
    """One of them."""

    template_name = "sluice/code/detail.html"
    sections = {"state": Section("sluice/code/_state.html", fetch_state, seconds=2)}

    @cached_property
    def kind(self) -> Kind:
        """Which kind it is of."""
        return KINDS[self.kwargs["kind"]]

    @property
    def page_title(self) -> Any:
        """What it is, and its name, which the template escapes."""
        return self.kind.page_title

    def fetch(self, client: Client) -> Mapping[str, Any]:
        """404 is the page's status."""
        client.collection(self.kind.path).get(self.kind.name(self.kwargs))
        return {}

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return {**super().get_context_data(**kwargs), "name": self.kind.name(self.kwargs)}
