"""The lists of filters, metrics, controllers and dependencies, one page each with links to the others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from sluice_client import Client
from sluice_dashboard import api
from sluice_dashboard.code.kinds import CONTROLLERS, FILTERS, METRICS
from sluice_dashboard.views import PageView, Section


def fetch_filters(client: Client, request: HttpRequest) -> Mapping[str, Any]:
    """Return all filters by keyword."""
    return {
        "filters": client.filters(),
        "may_show": api.permissions(request).allow("filters:show"),
    }


def fetch_metrics(client: Client, request: HttpRequest) -> Mapping[str, Any]:
    """Return all metrics of policies, built-in, registered and uploaded."""
    return {"metrics": client.metrics()}


def fetch_controllers(client: Client, request: HttpRequest) -> Mapping[str, Any]:
    """Return all global controllers with their states."""
    return {"controllers": client.controllers()}


def fetch_dependencies(client: Client, request: HttpRequest) -> Mapping[str, Any]:
    """Return all files for filters."""
    return {"dependencies": list(client.collection("/filters/dependencies").list())}


class ListView(PageView):
    """A list; a subclass sets ``shown``, the page, and ``add``, the operation that adds an entry."""

    template_name = "sluice_dashboard/code/list.html"
    shown = ""
    add = ""

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        known = api.permissions(self.request)
        tabs = [
            ("index", FILTERS.title, known.allow("filters:list")),
            ("metrics", METRICS.title, known.allow("metrics:list")),
            ("controllers", CONTROLLERS.title, known.allow("controllers:list")),
            ("dependencies", _("Dependencies"), known.allow("dependencies:list")),
        ]
        context = super().get_context_data(**kwargs)
        shown = [(f"horizon:sluice:code:{name}", title, name == self.shown) for name, title, allowed in tabs if allowed]
        add = f"horizon:sluice:code:add_{self.add.partition(':')[0]}"
        return {**context, "tabs": shown, "add_url": add, "may_add": known.allow(self.add)}


class FiltersView(ListView):
    """Filters that policies can set."""

    page_title = _("Filters")
    shown, add = "index", FILTERS.operations["add"]
    sections = {"list": Section("sluice_dashboard/code/_filters.html", fetch_filters, seconds=5)}


class MetricsView(ListView):
    """Metrics that policies can watch."""

    page_title = _("Metrics")
    shown, add = "metrics", METRICS.operations["add"]
    sections = {"list": Section("sluice_dashboard/code/_metrics.html", fetch_metrics, seconds=5)}


class ControllersView(ListView):
    """Controllers that decide for the whole cluster."""

    page_title = _("Controllers")
    shown, add = "controllers", CONTROLLERS.operations["add"]
    sections = {"list": Section("sluice_dashboard/code/_controllers.html", fetch_controllers, seconds=5)}


class DependenciesView(ListView):
    """Files beside the code of filters."""

    page_title = _("Dependencies")
    shown, add = "dependencies", "dependencies:create"
    sections = {"list": Section("sluice_dashboard/code/_dependencies.html", fetch_dependencies, seconds=5)}
