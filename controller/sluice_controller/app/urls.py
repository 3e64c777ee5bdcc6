"""All resources."""

from __future__ import annotations

from django.urls import path, register_converter

from sluice_controller.api.converters import NameConverter, RateConverter, TargetConverter
from sluice_controller.api.views.bandwidth.bandwidth import (
    BandwidthMetricsView,
    DevicesView,
    FlowsView,
    NodeBandwidthView,
    PartsView,
)
from sluice_controller.api.views.bandwidth.iostack import (
    AccountBandwidthView,
    BandwidthView,
    ClearAccountView,
    ClearPolicyView,
    ClearView,
    OsinfoView,
    SetBandwidthView,
    SetPolicyBandwidthView,
)
from sluice_controller.api.views.bandwidth.slo import ObjectivesView, ObjectiveView, PolicyObjectiveView
from sluice_controller.api.views.code.controllers import (
    ControllerDataView,
    ControllerInstancesView,
    ControllerRollbackView,
    ControllerStartView,
    ControllerStopView,
    ControllersView,
    ControllerView,
)
from sluice_controller.api.views.code.dependencies import (
    DependenciesView,
    DependencyDataView,
    DependencyView,
    DeployDependencyView,
    DeployedDependenciesView,
    UndeployDependencyView,
)
from sluice_controller.api.views.code.filters import FilterDataView, FilterRollbackView, FiltersView, FilterView
from sluice_controller.api.views.code.uploaded_metrics import (
    MetricDataView,
    MetricInstancesView,
    MetricRollbackView,
    MetricStartView,
    MetricStopView,
)
from sluice_controller.api.views.operations.changes import ChangesView, ChangeView, RollbackView
from sluice_controller.api.views.operations.configuration import ExportView, ImportView
from sluice_controller.api.views.operations.health import HealthView
from sluice_controller.api.views.operations.metrics import MetricsView
from sluice_controller.api.views.operations.nodes import AdoptView, NodesView, NodeView
from sluice_controller.api.views.operations.schema import SchemaView
from sluice_controller.api.views.policies.deployments import DeploymentsView, DeployView, UndeployView
from sluice_controller.api.views.policies.effective import EffectiveView
from sluice_controller.api.views.policies.firings import FiringsView
from sluice_controller.api.views.policies.policies import CheckView, PoliciesView, PolicyView
from sluice_controller.api.views.registry.container_groups import (
    ContainerGroupsView,
    ContainerGroupView,
    ContainerMembersView,
    ContainerMemberView,
)
from sluice_controller.api.views.registry.groups import (
    TenantGroupsView,
    TenantGroupView,
    TenantMembersView,
    TenantMemberView,
)
from sluice_controller.api.views.registry.placement import ContainerView, LocalityView, PlacementsView, PlacementView
from sluice_controller.api.views.registry.registry import (
    RegistryFiltersView,
    RegistryFilterView,
    RegistryMetricsView,
    RegistryMetricView,
)
from sluice_controller.api.views.registry.stereotypes import (
    StereotypesView,
    StereotypeTargetsView,
    StereotypeTargetView,
    StereotypeView,
)
from sluice_controller.api.views.registry.vocabulary import AliasesView, AliasView, RegistryTermsView, RegistryTermView

register_converter(NameConverter, "name")
register_converter(TargetConverter, "target")
register_converter(RateConverter, "rate")

urlpatterns = [
    path("policies", PoliciesView.as_view()),
    path("policies/check", CheckView.as_view()),
    path("policies/<str:policy_id>", PolicyView.as_view()),
    path("policies/<str:policy_id>/firings", FiringsView.as_view()),
    path("effective", EffectiveView.as_view()),
    path("changes", ChangesView.as_view()),
    path("changes/<str:epoch>", ChangeView.as_view()),
    path("changes/<str:epoch>/rollback", RollbackView.as_view()),
    path("locality/<name:account>/<name:container>/<target:object_name>", LocalityView.as_view()),
    path("containers/<name:account>/<name:container>", ContainerView.as_view()),
    path("placements", PlacementsView.as_view()),
    path("placements/<name:account>", PlacementView.as_view()),
    path("export", ExportView.as_view()),
    path("import", ImportView.as_view()),
    path("nodes", NodesView.as_view()),
    path("nodes/adopt", AdoptView.as_view()),
    path("nodes/<str:node>", NodeView.as_view()),
    path("filters", FiltersView.as_view()),
    path("filters/dependencies", DependenciesView.as_view()),
    path("filters/dependencies/<name:dependency>", DependencyView.as_view()),
    path("filters/dependencies/<name:dependency>/data", DependencyDataView.as_view()),
    path("filters/dependencies/<target:target>/deploy", DeployedDependenciesView.as_view()),
    path("filters/dependencies/<target:target>/deploy/<name:dependency>", DeployDependencyView.as_view()),
    path("filters/dependencies/<target:target>/undeploy/<name:dependency>", UndeployDependencyView.as_view()),
    path("filters/<str:keyword>", FilterView.as_view()),
    path("filters/<str:keyword>/data", FilterDataView.as_view()),
    path("filters/<str:keyword>/rollback", FilterRollbackView.as_view()),
    path("filters/<target:target>/deploy", DeploymentsView.as_view()),
    path("filters/<target:target>/deploy/<name:keyword>", DeployView.as_view()),
    path("filters/<target:target>/undeploy/<name:keyword>", UndeployView.as_view()),
    path("registry/filters", RegistryFiltersView.as_view()),
    path("registry/filters/<name:keyword>", RegistryFilterView.as_view()),
    path("registry/metrics", RegistryMetricsView.as_view()),
    path("registry/metrics/<name:metric>", RegistryMetricView.as_view()),
    path("registry/metrics/<name:metric>/data", MetricDataView.as_view()),
    path("registry/metrics/<name:metric>/start", MetricStartView.as_view()),
    path("registry/metrics/<name:metric>/stop", MetricStopView.as_view()),
    path("registry/metrics/<name:metric>/rollback", MetricRollbackView.as_view()),
    path("registry/metrics/<name:metric>/instances", MetricInstancesView.as_view()),
    path("registry/terms", RegistryTermsView.as_view()),
    path("registry/terms/<name:term>", RegistryTermView.as_view()),
    path("registry/aliases", AliasesView.as_view()),
    path("registry/aliases/<name:alias>", AliasView.as_view()),
    path("registry/gtenants", TenantGroupsView.as_view()),
    path("registry/gtenants/<name:group>", TenantGroupView.as_view()),
    path("registry/gtenants/<name:group>/tenants", TenantMembersView.as_view()),
    path("registry/gtenants/<name:group>/tenants/<target:member>", TenantMemberView.as_view()),
    path("registry/gcontainers", ContainerGroupsView.as_view()),
    path("registry/gcontainers/<name:group>", ContainerGroupView.as_view()),
    path("registry/gcontainers/<name:group>/containers", ContainerMembersView.as_view()),
    path("registry/gcontainers/<name:group>/containers/<target:member>", ContainerMemberView.as_view()),
    path("controllers", ControllersView.as_view()),
    path("controllers/<name:controller>", ControllerView.as_view()),
    path("controllers/<name:controller>/data", ControllerDataView.as_view()),
    path("controllers/<name:controller>/start", ControllerStartView.as_view()),
    path("controllers/<name:controller>/stop", ControllerStopView.as_view()),
    path("controllers/<name:controller>/rollback", ControllerRollbackView.as_view()),
    path("controllers/<name:controller>/instances", ControllerInstancesView.as_view()),
    path("stereotypes", StereotypesView.as_view()),
    path("stereotypes/<name:stereotype>", StereotypeView.as_view()),
    path("stereotypes/<name:stereotype>/tenants", StereotypeTargetsView.as_view()),
    path("stereotypes/<name:stereotype>/tenants/<target:target>", StereotypeTargetView.as_view()),
    path("bw", BandwidthView.as_view()),
    path("bw/osinfo", OsinfoView.as_view()),
    path("bw/flows", FlowsView.as_view()),
    path("bw/nodes", NodeBandwidthView.as_view()),
    path("bw/parts", PartsView.as_view()),
    path("bw/devices", DevicesView.as_view()),
    path("bw/metrics", BandwidthMetricsView.as_view()),
    path("bw/slo", ObjectivesView.as_view()),
    path("bw/slo/<name:account>/<name:name>", ObjectiveView.as_view()),
    path("bw/slo/<name:account>/<name:name>/<name:policy>", PolicyObjectiveView.as_view()),
    path("bw/clear", ClearView.as_view()),
    path("bw/clear/<name:account>", ClearAccountView.as_view()),
    path("bw/clear/<name:account>/<name:policy>", ClearPolicyView.as_view()),
    path("bw/<name:account>", AccountBandwidthView.as_view()),
    path("bw/<name:account>/<rate:value>", SetBandwidthView.as_view()),
    path("bw/<name:account>/<name:policy>/<rate:value>", SetPolicyBandwidthView.as_view()),
    path("health", HealthView.as_view()),
    path("metrics", MetricsView.as_view()),
    path("schema", SchemaView.as_view()),
]

handler400 = "sluice_controller.errors.bad_request"
handler403 = "sluice_controller.errors.forbidden"
handler404 = "sluice_controller.errors.not_found"
handler500 = "sluice_controller.errors.server_error"
