"""Names of filters stand behind `filters/`, so that no name hides a page."""

from __future__ import annotations

from django.urls import re_path

from sluice_dashboard.content.sluice_project.code import views
from sluice_dashboard.filters import deployments

_FILTER = r"^filters/(?P<filter>[^/]+)"

urlpatterns = [
    re_path(r"^$", views.IndexView.as_view(), name="index"),
    re_path(r"^deployments/$", deployments.DeploymentsView.as_view(), name="deployments"),
    re_path(rf"{_FILTER}/$", views.FilterView.as_view(), name="filter"),
    re_path(rf"{_FILTER}/deploy/$", views.DeployView.as_view(), name="deploy"),
    re_path(rf"{_FILTER}/take-back/$", deployments.UndeployView.as_view(), name="undeploy"),
]
