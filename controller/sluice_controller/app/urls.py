"""All resources."""

from __future__ import annotations

from django.urls import path, register_converter
from django.urls.converters import StringConverter

from sluice_controller.api.views.bandwidth import iostack, measurements, slo
from sluice_controller.api.views.code import controllers, dependencies, filters, uploaded_metrics
from sluice_controller.api.views.motifs import objects as motif_objects
from sluice_controller.api.views.motifs import operations as motif_operations
from sluice_controller.api.views.motifs import spaces
from sluice_controller.api.views.operations import (
    changes,
    configuration,
    events,
    metric_history,
    nodes,
    overview,
    permissions,
    rewrites,
    service,
)
from sluice_controller.api.views.policies import deployments, effective, policies, sentences, undo
from sluice_controller.api.views.registry import groups, placement, registry, stereotypes, vocabulary
from sluice_controller.api.views.volumes import locality, metrics, tiers, volumes
from sluice_controller.api.views.volumes import operations as volume_operations


class NameConverter(StringConverter):
    """One name: any characters but a slash.  Other than for ``str``, the schema says so."""


class TargetConverter(StringConverter):
    """``account[/container[/object]]``; an object's name may hold slashes and line breaks."""

    regex = r"[\s\S]+"


class RateConverter(StringConverter):
    """A rate, whose unit may end in ``/s``."""

    regex = "[^/]+(?:/s(?:ec)?)?"


register_converter(NameConverter, "name")
register_converter(TargetConverter, "target")
register_converter(RateConverter, "rate")

urlpatterns = [
    path("policies", policies.PoliciesView.as_view()),
    path("policies/check", sentences.CheckView.as_view()),
    path("policies/complete", sentences.CompletionView.as_view()),
    path("policies/<str:policy_id>", policies.PolicyView.as_view()),
    path("policies/<str:policy_id>/firings", policies.FiringsView.as_view()),
    path("policies/<str:policy_id>/undo", undo.UndoView.as_view()),
    path("overview", overview.OverviewView.as_view()),
    path("permissions", permissions.PermissionsView.as_view()),
    path("effective", effective.EffectiveView.as_view()),
    path("changes", changes.ChangesView.as_view()),
    path("changes/<str:epoch>", changes.ChangeView.as_view()),
    path("changes/<str:epoch>/rollback", changes.RollbackView.as_view()),
    path("events", events.EventsView.as_view()),
    path("rewrites", rewrites.RewritesView.as_view()),
    path("rewrites/<str:rewrite>", rewrites.RewriteView.as_view()),
    path("rewrites/<str:rewrite>/pause", rewrites.RewritePauseView.as_view()),
    path("rewrites/<str:rewrite>/resume", rewrites.RewriteResumeView.as_view()),
    path("rewrites/<str:rewrite>/cancel", rewrites.RewriteCancelView.as_view()),
    path("locality/<name:account>/<name:container>/<target:object_name>", placement.LocalityView.as_view()),
    path("locality/volume/<name:volume>", locality.VolumeLocalityView.as_view()),
    path("containers/<name:account>/<name:container>", placement.ContainerView.as_view()),
    path("placements", placement.PlacementsView.as_view()),
    path("placements/<name:account>", placement.PlacementView.as_view()),
    path("export", configuration.ExportView.as_view()),
    path("import", configuration.ImportView.as_view()),
    path("nodes", nodes.NodesView.as_view()),
    path("nodes/adopt", nodes.AdoptView.as_view()),
    path("nodes/<str:node>", nodes.NodeView.as_view()),
    path("filters", filters.FiltersView.as_view()),
    path("filters/dependencies", dependencies.DependenciesView.as_view()),
    path("filters/dependencies/<name:dependency>", dependencies.DependencyView.as_view()),
    path("filters/dependencies/<name:dependency>/data", dependencies.DependencyDataView.as_view()),
    path("filters/dependencies/<target:target>/deploy", dependencies.DeployedDependenciesView.as_view()),
    path("filters/dependencies/<target:target>/deploy/<name:dependency>", dependencies.DeployDependencyView.as_view()),
    path(
        "filters/dependencies/<target:target>/undeploy/<name:dependency>", dependencies.UndeployDependencyView.as_view()
    ),
    path("filters/<str:keyword>", filters.FilterView.as_view()),
    path("filters/<str:keyword>/data", filters.FilterDataView.as_view()),
    path("filters/<str:keyword>/rollback", filters.FilterRollbackView.as_view()),
    path("filters/<target:target>/deploy", deployments.DeploymentsView.as_view()),
    path("filters/<target:target>/deploy/<name:keyword>", deployments.DeployView.as_view()),
    path("filters/<target:target>/undeploy/<name:keyword>", deployments.UndeployView.as_view()),
    path("registry/filters", registry.RegistryFiltersView.as_view()),
    path("registry/filters/<name:keyword>", registry.RegistryFilterView.as_view()),
    path("registry/metrics", registry.RegistryMetricsView.as_view()),
    path("registry/metrics/<name:metric>", registry.RegistryMetricView.as_view()),
    path("registry/metrics/<name:metric>/data", uploaded_metrics.MetricDataView.as_view()),
    path("registry/metrics/<name:metric>/start", uploaded_metrics.MetricStartView.as_view()),
    path("registry/metrics/<name:metric>/stop", uploaded_metrics.MetricStopView.as_view()),
    path("registry/metrics/<name:metric>/rollback", uploaded_metrics.MetricRollbackView.as_view()),
    path("registry/metrics/<name:metric>/instances", uploaded_metrics.MetricInstancesView.as_view()),
    path("registry/terms", vocabulary.RegistryTermsView.as_view()),
    path("registry/terms/<name:term>", vocabulary.RegistryTermView.as_view()),
    path("registry/aliases", vocabulary.AliasesView.as_view()),
    path("registry/aliases/<name:alias>", vocabulary.AliasView.as_view()),
    path("registry/gtenants", groups.TenantGroupsView.as_view()),
    path("registry/gtenants/<name:group>", groups.TenantGroupView.as_view()),
    path("registry/gtenants/<name:group>/tenants", groups.TenantMembersView.as_view()),
    path("registry/gtenants/<name:group>/tenants/<target:member>", groups.TenantMemberView.as_view()),
    path("registry/gcontainers", groups.ContainerGroupsView.as_view()),
    path("registry/gcontainers/<name:group>", groups.ContainerGroupView.as_view()),
    path("registry/gcontainers/<name:group>/containers", groups.ContainerMembersView.as_view()),
    path("registry/gcontainers/<name:group>/containers/<target:member>", groups.ContainerMemberView.as_view()),
    path("registry/gvolumes", groups.VolumeGroupsView.as_view()),
    path("registry/gvolumes/<name:group>", groups.VolumeGroupView.as_view()),
    path("registry/gvolumes/<name:group>/volumes", groups.VolumeMembersView.as_view()),
    path("registry/gvolumes/<name:group>/volumes/<target:member>", groups.VolumeMemberView.as_view()),
    path("controllers", controllers.ControllersView.as_view()),
    path("controllers/<name:controller>", controllers.ControllerView.as_view()),
    path("controllers/<name:controller>/data", controllers.ControllerDataView.as_view()),
    path("controllers/<name:controller>/start", controllers.ControllerStartView.as_view()),
    path("controllers/<name:controller>/stop", controllers.ControllerStopView.as_view()),
    path("controllers/<name:controller>/rollback", controllers.ControllerRollbackView.as_view()),
    path("controllers/<name:controller>/instances", controllers.ControllerInstancesView.as_view()),
    path("stereotypes", stereotypes.StereotypesView.as_view()),
    path("stereotypes/<name:stereotype>", stereotypes.StereotypeView.as_view()),
    path("stereotypes/<name:stereotype>/tenants", stereotypes.StereotypeTargetsView.as_view()),
    path("stereotypes/<name:stereotype>/tenants/<target:target>", stereotypes.StereotypeTargetView.as_view()),
    path("bw", iostack.BandwidthView.as_view()),
    path("bw/osinfo", iostack.OsinfoView.as_view()),
    path("bw/flows", measurements.FlowsView.as_view()),
    path("bw/nodes", measurements.NodeBandwidthView.as_view()),
    path("bw/parts", measurements.PartsView.as_view()),
    path("bw/devices", measurements.DevicesView.as_view()),
    path("bw/metrics", measurements.BandwidthMetricsView.as_view()),
    path("bw/slo", slo.ObjectivesView.as_view()),
    path("bw/slo/<name:account>/<name:name>", slo.ObjectiveView.as_view()),
    path("bw/slo/<name:account>/<name:name>/<name:policy>", slo.PolicyObjectiveView.as_view()),
    path("bw/clear", iostack.ClearView.as_view()),
    path("bw/clear/<name:account>", iostack.ClearAccountView.as_view()),
    path("bw/clear/<name:account>/<name:policy>", iostack.ClearPolicyView.as_view()),
    path("bw/accounts/<name:account>", iostack.AccountBandwidthView.as_view()),
    path("bw/<name:account>", iostack.ShortAccountView.as_view()),
    path("bw/<name:account>/<rate:value>", iostack.SetBandwidthView.as_view()),
    path("bw/<name:account>/<name:policy>/<rate:value>", iostack.SetPolicyBandwidthView.as_view()),
    path("volumes", volumes.VolumesView.as_view()),
    path("volumes/pools", tiers.PoolsView.as_view()),
    path("volumes/pools/<name:pool>/calibration", tiers.CalibrationView.as_view()),
    path("volumes/metrics", metrics.VolumeMetricsView.as_view()),
    path("volumes/pools/<name:pool>/calibrate", tiers.MeasurementView.as_view()),
    path("volumes/tiers", tiers.TiersView.as_view()),
    path("volumes/tiers/match", tiers.TierMatchView.as_view()),
    path("volumes/tiers/<name:tier>", tiers.TierView.as_view()),
    path("volumes/operations", volume_operations.VolumeOperationsView.as_view()),
    path("volumes/operations/<str:operation>", volume_operations.VolumeOperationView.as_view()),
    path("volumes/<name:volume>", volumes.VolumeView.as_view()),
    path("volumes/<name:volume>/size", volumes.VolumeSizeView.as_view()),
    path("volumes/<name:volume>/tier", volumes.VolumeTierView.as_view()),
    path("volumes/<name:volume>/attach", volumes.VolumeAttachView.as_view()),
    path("volumes/<name:volume>/detach", volumes.VolumeDetachView.as_view()),
    path("volumes/<name:volume>/snapshots", volumes.SnapshotsView.as_view()),
    path("volumes/<name:volume>/snapshots/<name:snapshot>", volumes.SnapshotView.as_view()),
    path("motifs", motif_objects.MotifsView.as_view()),
    path("motifs/templates", motif_objects.TemplatesView.as_view()),
    path("motifs/operations", motif_operations.MotifOperationsView.as_view()),
    path("motifs/operations/<str:operation>", motif_operations.MotifOperationView.as_view()),
    path("motifs/operations/<str:operation>/cancel", motif_operations.MotifOperationCancelView.as_view()),
    path("motifs/<name:account>/<name:container>/<target:object_name>", motif_objects.MotifView.as_view()),
    path("spaces", spaces.SpacesView.as_view()),
    path("spaces/metrics", spaces.SpaceMetricsView.as_view()),
    path("spaces/<target:space>", spaces.SpaceView.as_view()),
    path("health", service.HealthView.as_view()),
    path("metrics", service.MetricsView.as_view()),
    path("metrics/history", metric_history.MetricSeriesView.as_view()),
    path("metrics/<name:metric>/history", metric_history.MetricHistoryView.as_view()),
    path("schema", service.SchemaView.as_view()),
]

handler400 = "sluice_controller.errors.bad_request"
handler403 = "sluice_controller.errors.forbidden"
handler404 = "sluice_controller.errors.not_found"
handler500 = "sluice_controller.errors.server_error"
