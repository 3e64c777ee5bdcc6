"""The list of volumes, and one volume: its state, deciding policies, and loads over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from django.http import Http404, HttpRequest
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from sluice_client import ApiError, Client, ClientError
from sluice_dashboard import api
from sluice_dashboard.charts import Plot, Threshold, TimeRange, mean_series, rate
from sluice_dashboard.views import PageView, PlotView, Section, next_query_like
from sluice_dashboard.volumes import operations
from sluice_dashboard.volumes.operations import Wanted
from sluice_dashboard.volumes.tiers import TEMPLATES

AVAILABLE: Final = "available"
#: A parameter of throttling → the limited quantity.
RATES: Final = {
    "read_bw": _("reads"),
    "write_bw": _("writes"),
    "max_bw": _("reads and writes"),
    "read_iops": _("reads"),
    "write_iops": _("writes"),
    "max_iops": _("reads and writes"),
}
#: Plot → its metrics with their names, and their unit.
PLOTS: Final[Mapping[str, tuple[Sequence[tuple[str, Any]], str]]] = {
    "bandwidth": (
        (("VOLUME_READ_BW", _("reads")), ("VOLUME_WRITE_BW", _("writes"))),
        "bytes_per_second",
    ),
    "operations": (
        (("VOLUME_READ_IOPS", _("reads")), ("VOLUME_WRITE_IOPS", _("writes"))),
        "per_second",
    ),
    "latency": (
        (("VOLUME_LATENCY", _("median")), ("VOLUME_LATENCY_P99", _("99 of 100 are faster"))),
        "seconds",
    ),
    "queue": ((("VOLUME_QUEUE", _("requests under way")),), "count"),
}
#: Plot → suffixes of the names of its limits.
_LIMITED: Final = {"bandwidth": "_bw", "operations": "_iops"}
TITLES: Final = {
    "bandwidth": _("Bandwidth"),
    "operations": _("Operations per second"),
    "latency": _("Time of a request"),
    "queue": _("Requests under way"),
}
#: Volumes on a page, and the parameters of its URL that filter them.
_PAGE: Final = 50
_FILTERS: Final = ("name", "tier", "project")


def fetch_state(client: Client, request: HttpRequest, volume: str) -> Mapping[str, Any]:
    """Return the volume, operations on it, and the buttons that its state allows."""
    shown = client.volume(volume)
    wanted = operations.Wanted(volume=shown["id"])
    busy = operations.under_way(client, wanted)
    return {
        "volume": shown,
        "filters": [filter_text(one) for one in shown["filters"]],
        "asked": rate_texts(shown["rates"]),
        "in_force": None if shown["rates_in_force"] is None else rate_texts(shown["rates_in_force"]),
        "hidden_gib": shown["cinder_size"] - shown["size"],
        "under_way": busy,
        "ended": operations.ended(client, wanted)[:3],
        "is_free": shown["status"] == AVAILABLE and not shown["node"],
        "is_busy": bool(busy),
    }


def filter_text(step: Mapping[str, Any]) -> str:
    """A filter with its parameters, as ``xor key=7``."""
    return " ".join([step["keyword"], *(f"{name}={value}" for name, value in step["params"].items())])


def rate_text(name: str, value: float) -> str:
    """A rate of throttling with its unit."""
    return rate(value) if name.endswith("_bw") else f"{value:g}/s"


def rate_texts(rates: Mapping[str, float]) -> list[str]:
    """Rates by parameter, in words."""
    return [
        gettext("%(what)s: at most %(rate)s") % {"what": RATES.get(name, name), "rate": rate_text(name, value)}
        for name, value in sorted(rates.items())
    ]


def fetch_snapshots(client: Client, request: HttpRequest, volume: str) -> Mapping[str, Any]:
    """Return the volume's snapshots."""
    return {"snapshots": list(client.snapshots(volume)), "volume_id": volume}


def fetch_policies(client: Client, request: HttpRequest, volume: str) -> Mapping[str, Any]:
    """Return the decisions of policies about the volume, with overridden ones and the reason."""
    path = client.volume(volume)["path"]
    kinds = client.effective(path, volume=True)["kinds"] if path else []
    return {
        "known": bool(path),
        "steps": [one for kind in kinds for one in (*kind["pipeline"], *kind["deletes"])],
        "overridden": [one for kind in kinds for one in kind["overridden"]],
    }


def volume_plot(client: Client, volume: str, name: str, wanted: TimeRange) -> Plot:
    """The plot ``name`` of :data:`PLOTS`; a volume that Sluice does not know has no history.

    :raises ClientError: if the API is unreachable, or the volume belongs to another project
    """
    shown = client.volume(volume)
    metrics, unit = PLOTS[name]
    path = shown["path"]
    series = [mean_series(client, metric, path, wanted, str(label), unit) for metric, label in metrics if path]
    ending = _LIMITED.get(name)
    limits = [
        Threshold(limit, gettext("limit of %(what)s: %(rate)s") % {"what": RATES[one], "rate": rate_text(one, limit)})
        for one, limit in (shown["rates_in_force"] or {}).items()
        if ending and one.endswith(ending) and one in RATES
    ]
    return Plot(series, thresholds=limits, begin=wanted.begin, end=wanted.end)


def shows_everybody(request: HttpRequest) -> bool:
    """Whether it is the dashboard with the volumes of all projects."""
    return "sluice" in request.resolver_match.namespaces


def own_project(request: HttpRequest) -> str:
    """The id of the project whose volumes are fetched; empty if the API filters them."""
    if shows_everybody(request) or not api.permissions(request).allow("volumes:list_all"):
        return ""
    return str(request.user.project_id)


def fetch_volumes(client: Client, request: HttpRequest) -> Mapping[str, Any]:
    """Return one page of volumes; ``next`` is the query of the following one."""
    wanted = {name: request.GET.get(name, "") for name in _FILTERS}
    wanted["project"] = own_project(request) or wanted["project"]
    marker = request.GET.get("marker", "")
    page = client.get("/volumes", **wanted, marker=marker, limit=_PAGE)
    return {
        "volumes": page["volumes"],
        "next": next_query_like(request.GET, page["next_marker"]),
        "is_chosen": any(request.GET.get(name) for name in (*_FILTERS, "marker")),
        "everybody": shows_everybody(request),
    }


def fetch_operations(client: Client, request: HttpRequest) -> Mapping[str, Any]:
    """Return running and ended operations."""
    wanted = Wanted(project=own_project(request))
    return {"under_way": operations.under_way(client, wanted), "ended": operations.ended(client, wanted)}


class IndexView(PageView):
    """Volumes, and operations on them."""

    page_title = _("Volumes")
    template_name = f"{TEMPLATES}/index.html"
    sections = {
        "volumes": Section(f"{TEMPLATES}/_volumes.html", fetch_volumes, seconds=10),
        "operations": Section(f"{TEMPLATES}/_operations.html", fetch_operations, seconds=3),
    }

    def fetch(self, client: Client) -> Mapping[str, Any]:
        return {"everybody": shows_everybody(self.request)}


class DetailView(PageView):
    """One volume."""

    page_title = _("Volume")
    template_name = f"{TEMPLATES}/detail.html"
    sections = {
        "state": Section(f"{TEMPLATES}/_state.html", fetch_state, seconds=3),
        "policies": Section(f"{TEMPLATES}/_policies.html", fetch_policies, seconds=10),
        "snapshots": Section(f"{TEMPLATES}/_snapshots.html", fetch_snapshots, seconds=10),
    }

    def fetch(self, client: Client) -> Mapping[str, Any]:
        """Return nothing; a missing volume is reported once, and an unreachable API by each section."""
        try:
            client.volume(self.kwargs["volume"])
        except ApiError as error:
            if error.status in (403, 404):
                raise
        except ClientError:
            pass
        return {}

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return {**super().get_context_data(**kwargs), "volume_id": self.kwargs["volume"], "plots": TITLES}


class VolumePlotView(PlotView):
    """The loads of one volume over time."""

    def plot(self, client: Client, wanted: TimeRange) -> Plot:
        if self.kwargs["plot"] not in PLOTS:
            raise Http404
        return volume_plot(client, self.kwargs["volume"], self.kwargs["plot"], wanted)
