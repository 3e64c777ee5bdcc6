"""All resources."""

from __future__ import annotations

from django.urls import path

from sluice_controller.views.filters import FilterDataView, FiltersView, FilterView
from sluice_controller.views.health import HealthView
from sluice_controller.views.nodes import AdoptView, NodesView, NodeView
from sluice_controller.views.policies import CheckView, PoliciesView, PolicyView
from sluice_controller.views.registry import RegistryFiltersView, RegistryMetricsView, RegistryTermsView
from sluice_controller.views.schema import SchemaView

urlpatterns = [
    path("policies", PoliciesView.as_view()),
    path("policies/check", CheckView.as_view()),
    path("policies/<str:policy_id>", PolicyView.as_view()),
    path("nodes", NodesView.as_view()),
    path("nodes/adopt", AdoptView.as_view()),
    path("nodes/<str:node>", NodeView.as_view()),
    path("filters", FiltersView.as_view()),
    path("filters/<str:keyword>", FilterView.as_view()),
    path("filters/<str:keyword>/data", FilterDataView.as_view()),
    path("registry/filters", RegistryFiltersView.as_view()),
    path("registry/metrics", RegistryMetricsView.as_view()),
    path("registry/terms", RegistryTermsView.as_view()),
    path("health", HealthView.as_view()),
    path("schema", SchemaView.as_view()),
]

handler400 = "sluice_controller.failures.bad_request"
handler403 = "sluice_controller.failures.forbidden"
handler404 = "sluice_controller.failures.not_found"
handler500 = "sluice_controller.failures.server_error"
