"""The panel of projects: usable filters, one filter, and its deployment for a container."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.http import HttpRequest
from django.urls import re_path
from django.utils.translation import gettext_lazy as _

from sluice_client import Client
from sluice_dashboard import api
from sluice_dashboard.code import deployments, details
from sluice_dashboard.code.lists import fetch_filters
from sluice_dashboard.views import PageView, Section


class IndexView(PageView):
    """Filters of the cluster."""

    page_title = _("Filters")
    template_name = "sluice_dashboard/code/filters.html"
    sections = {"list": Section("sluice_dashboard/code/_filters.html", fetch_filters, seconds=5)}


def fetch_filter(client: Client, request: HttpRequest, **parameters: str) -> Mapping[str, Any]:
    """Return one filter, and whether the user may set it for own containers."""
    name = parameters["filter"]
    shown = client.filter(name)
    may_deploy = api.permissions(request, filter=name).allow("deployments:deploy")
    return {
        "name": name,
        "facts": details.filter_facts(shown),
        "parameters": shown["parameters"],
        "may_deploy": may_deploy and (shown["installed"] or shown["sha256"]),
    }


class FilterView(PageView):
    """One filter."""

    page_title = _("Filter {{ filter }}")
    template_name = "sluice_dashboard/code/filter.html"
    sections = {"state": Section("sluice_dashboard/code/_filter.html", fetch_filter, seconds=15)}

    def fetch(self, client: Client) -> Mapping[str, Any]:
        """A missing filter is a page with status 404."""
        client.filter(self.kwargs["filter"])
        return {}


class DeployView(deployments.DeployView):
    """Set a filter for a container of the project."""

    def get_initial(self) -> dict[str, Any]:
        given = super().get_initial()
        return {**given, "target": given["target"] or f"{self.request.user.project_name}/"}


_FILTER = r"^filters/(?P<filter>[^/]+)"

urlpatterns = [
    re_path(r"^$", IndexView.as_view(), name="index"),
    re_path(r"^deployments/$", deployments.DeploymentsView.as_view(), name="deployments"),
    re_path(rf"{_FILTER}/$", FilterView.as_view(), name="filter"),
    re_path(rf"{_FILTER}/deploy/$", DeployView.as_view(), name="deploy"),
    re_path(rf"{_FILTER}/take-back/$", deployments.UndeployView.as_view(), name="undeploy"),
]
