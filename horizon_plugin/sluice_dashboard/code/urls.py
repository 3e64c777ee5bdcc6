"""Names of uploaded code follow their kind in the URL, so no name hides a page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.urls import URLPattern, re_path

from sluice_dashboard.code import actions, dependencies, deployments, details, lists, uploads
from sluice_dashboard.code.kinds import KINDS, Kind

_FILTER = r"^filters/(?P<filter>[^/]+)"
_DEPENDENCY = r"^dependencies/(?P<dependency>[^/]+)"


def _pages(kind: Kind) -> list[URLPattern]:
    """The pages of each kind; only kinds that can be started have pages for it."""
    begin, name = rf"^{kind.slug}/(?P<{kind.parameter}>[^/]+)", kind.parameter
    more: Mapping[str, Any] = {"kind": kind.slug}
    patterns = [
        re_path(rf"{begin}/$", details.DetailView.as_view(), more, name=name),
        re_path(rf"{begin}/upload/$", uploads.NewRevisionView.as_view(), more, name=f"{name}_upload"),
        re_path(
            rf"{begin}/roll-back/(?P<revision>\d+)/$", actions.RollBackView.as_view(), more, name=f"{name}_roll_back"
        ),
        re_path(rf"{begin}/delete/$", actions.DeleteView.as_view(), more, name=f"{name}_delete"),
    ]
    if kind.can_start:
        patterns.append(re_path(rf"{begin}/start/$", actions.StartView.as_view(), more, name=f"{name}_start"))
        patterns.append(re_path(rf"{begin}/stop/$", actions.StopView.as_view(), more, name=f"{name}_stop"))
    return patterns


urlpatterns = [
    re_path(r"^$", lists.FiltersView.as_view(), name="index"),
    re_path(r"^metrics/$", lists.MetricsView.as_view(), name="metrics"),
    re_path(r"^controllers/$", lists.ControllersView.as_view(), name="controllers"),
    re_path(r"^dependencies/$", lists.DependenciesView.as_view(), name="dependencies"),
    re_path(r"^add/filter/$", uploads.NewFilterView.as_view(), name="add_filters"),
    re_path(r"^add/metric/$", uploads.NewMetricView.as_view(), name="add_metrics"),
    re_path(r"^add/controller/$", uploads.NewControllerView.as_view(), name="add_controllers"),
    re_path(r"^add/dependency/$", dependencies.NewView.as_view(), name="add_dependencies"),
    re_path(r"^deployments/$", deployments.DeploymentsView.as_view(), name="deployments"),
    re_path(rf"{_FILTER}/deploy/$", deployments.DeployView.as_view(), name="deploy"),
    re_path(rf"{_FILTER}/take-back/$", deployments.UndeployView.as_view(), name="undeploy"),
    *(pattern for kind in KINDS.values() for pattern in _pages(kind)),
    re_path(rf"{_DEPENDENCY}/$", dependencies.DetailView.as_view(), name="dependency"),
    re_path(rf"{_DEPENDENCY}/upload/$", dependencies.DataView.as_view(), name="dependency_upload"),
    re_path(rf"{_DEPENDENCY}/attach/$", dependencies.AttachView.as_view(), name="dependency_attach"),
    re_path(rf"{_DEPENDENCY}/detach/(?P<filter>[^/]+)/$", dependencies.DetachView.as_view(), name="dependency_detach"),
    re_path(rf"{_DEPENDENCY}/delete/$", dependencies.DeleteView.as_view(), name="dependency_delete"),
]
