"""The pages of volumes, tiers and pools."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from django.http import Http404, HttpRequest
from django.utils.translation import gettext_lazy as _

from sluice_client import ApiError, Client, ClientError
from sluice_dashboard import api
from sluice_dashboard.charts.plots import Plot, TimeRange
from sluice_dashboard.views import PageView, PlotView, Section
from sluice_dashboard.volumes import detail, lists, operations
from sluice_dashboard.volumes.operations import Wanted

_TEMPLATES: Final = "sluice_dashboard/volumes"

#: Volumes on a page, and the parameters of its URL that choose them.
_PAGE: Final = 50
_FILTERS: Final = ("name", "tier", "project")


def shows_everybody(request: HttpRequest) -> bool:
    """Whether it is the dashboard that shows everybody's volumes."""
    return "sluice" in request.resolver_match.namespaces


def own_project(request: HttpRequest) -> str:
    """The id of the project whose volumes are asked for; empty where the API answers those that are to be shown."""
    if shows_everybody(request) or not api.permissions(request).allow("volumes:list_all"):
        return ""
    return str(request.user.project_id)


def fetch_volumes(client: Client, request: HttpRequest) -> Mapping[str, Any]:
    """One page of volumes; ``next`` is the query of the following one."""
    wanted = {name: request.GET.get(name, "") for name in _FILTERS}
    wanted["project"] = own_project(request) or wanted["project"]
    marker = request.GET.get("marker", "")
    page = client.get("/volumes", **wanted, marker=marker, limit=_PAGE)
    following = page["next_marker"] or ""
    query = request.GET.copy()
    query.pop("section", None)
    query["marker"] = following
    return {
        "volumes": page["volumes"],
        "next": query.urlencode() if following else "",
        "is_chosen": any(request.GET.get(name) for name in (*_FILTERS, "marker")),
        "everybody": shows_everybody(request),
    }


def fetch_operations(client: Client, request: HttpRequest) -> Mapping[str, Any]:
    """What is done now, and what has ended."""
    wanted = Wanted(project=own_project(request))
    return {"under_way": operations.under_way(client, wanted), "ended": operations.ended(client, wanted)}


class IndexView(PageView):
    """Volumes, and operations on them."""

    page_title = _("Volumes")
    template_name = f"{_TEMPLATES}/index.html"
    sections = {
        "volumes": Section(f"{_TEMPLATES}/_volumes.html", fetch_volumes, seconds=10),
        "operations": Section(f"{_TEMPLATES}/_operations.html", fetch_operations, seconds=3),
    }

    def fetch(self, client: Client) -> Mapping[str, Any]:
        return {"everybody": shows_everybody(self.request)}


class DetailView(PageView):
    """One volume."""

    page_title = _("Volume")
    template_name = f"{_TEMPLATES}/detail.html"
    sections = {
        "state": Section(f"{_TEMPLATES}/_state.html", detail.fetch_state, seconds=3),
        "policies": Section(f"{_TEMPLATES}/_policies.html", detail.fetch_policies, seconds=10),
        "snapshots": Section(f"{_TEMPLATES}/_snapshots.html", detail.fetch_snapshots, seconds=10),
    }

    def fetch(self, client: Client) -> Mapping[str, Any]:
        """Nothing; a volume that there is not is said once, and an API that is away by each section."""
        try:
            client.volume(self.kwargs["volume"])
        except ApiError as error:
            if error.status in (403, 404):
                raise
        except ClientError:
            pass
        return {}

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return {**super().get_context_data(**kwargs), "volume_id": self.kwargs["volume"], "plots": detail.TITLES}


class TiersView(PageView):
    """What tiers promise, and what is free."""

    page_title = _("Tiers")
    template_name = f"{_TEMPLATES}/tiers.html"
    sections = {"tiers": Section(f"{_TEMPLATES}/_tiers.html", lists.fetch_tiers, seconds=10)}


class PoolsView(PageView):
    """What volumes lie in."""

    page_title = _("Pools")
    template_name = f"{_TEMPLATES}/pools.html"
    sections = {"pools": Section(f"{_TEMPLATES}/_pools.html", lists.fetch_pools, seconds=5)}


class PoolView(PageView):
    """One pool."""

    page_title = _("Pool")
    template_name = f"{_TEMPLATES}/pool.html"
    sections = {"pool": Section(f"{_TEMPLATES}/_pool.html", lists.fetch_pool, seconds=5)}

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return {**super().get_context_data(**kwargs), "pool": self.kwargs["pool"]}


class VolumePlotView(PlotView):
    """What one volume does over time."""

    def plot(self, client: Client, wanted: TimeRange) -> Plot:
        if self.kwargs["plot"] not in detail.PLOTS:
            raise Http404
        return detail.volume_plot(client, self.kwargs["volume"], self.kwargs["plot"], wanted)


class PoolPlotView(PlotView):
    """What is used of one pool over time."""

    def plot(self, client: Client, wanted: TimeRange) -> Plot:
        return detail.pool_plot(client, self.kwargs["pool"], wanted)
