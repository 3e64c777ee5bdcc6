"""``/registry/filters`` and ``/registry/metrics``: keywords with their activation URLs, and what WHEN can ask for."""

from __future__ import annotations

from typing import Final

from sluice_controller.api.openapi import FORCE, in_path
from sluice_controller.api.serializers import registry as shapes
from sluice_controller.api.views.resources import CollectionView, EntryView, Resource
from sluice_controller.registry import activations, metrics

_FILTERS: Final = Resource(
    activations,
    ("registry", "filters"),
    in_path("keyword", "what sentences call the filter"),
    "Keywords in order.",
    shapes.RegisteredFilterSerializer,
    shapes.NewActivationSerializer,
    shapes.ACTIVATION,
    name_field="keyword",
)
_METRICS: Final = Resource(
    metrics,
    ("registry", "metrics"),
    in_path("metric", "the metric's name"),
    "Metrics by name.",
    shapes.MeasuredSerializer,
    shapes.NewMetricSerializer,
    shapes.METRIC,
)


@_FILTERS.declare(
    get=_FILTERS.list_operation(
        "sluice:filters:list",
        "list_registered_filters",
        "List every keyword of DO SET with its activation URL, also those that this cluster cannot enforce",
    ),
    post=_FILTERS.create_operation(
        "sluice:activations:register",
        "register_activation",
        "Name the federated service that activates a filter",
        404,
    ),
)
class RegistryFiltersView(CollectionView):
    """What the language knows behind SET."""


@_FILTERS.declare(
    get=_FILTERS.show_operation("sluice:filters:show", "show_activation", "Show a keyword and its activation URL"),
    put=_FILTERS.update_operation(
        "sluice:activations:update",
        "update_activation",
        "Name another service that activates a filter, or the first one",
    ),
    delete=_FILTERS.delete_operation(
        "sluice:activations:delete", "delete_activation", "Let our own deploy call activate a filter again", FORCE
    ),
)
class RegistryFilterView(EntryView):
    """One keyword."""


@_METRICS.declare(
    get=_METRICS.list_operation("sluice:metrics:list", "list_metrics", "List workload metrics"),
    post=_METRICS.create_operation(
        "sluice:metrics:register", "register_metric", "Register a metric that something else than our plugins publishes"
    ),
)
class RegistryMetricsView(CollectionView):
    """What WHEN can ask for."""


@_METRICS.declare(
    get=_METRICS.show_operation("sluice:metrics:show", "show_metric", "Show a metric"),
    put=_METRICS.update_operation("sluice:metrics:update", "update_metric", "Describe a registered metric anew"),
    delete=_METRICS.delete_operation("sluice:metrics:delete", "delete_metric", "Forget a registered metric", FORCE),
)
class RegistryMetricView(EntryView):
    """One metric."""
