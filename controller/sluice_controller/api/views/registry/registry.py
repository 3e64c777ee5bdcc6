"""``/registry/filters`` and ``/registry/metrics``: keywords with their activation URLs, and what WHEN can ask for."""

from __future__ import annotations

from sluice_controller.api.openapi import (
    FORCE,
    create_operation,
    delete_operation,
    in_path,
    list_operation,
    operations,
    show_operation,
    update_operation,
)
from sluice_controller.api.serializers import registry as shapes
from sluice_controller.api.views.resources import CollectionView, EntryView
from sluice_controller.registry import activations, metrics

_KEYWORD = in_path("keyword", "what sentences call the filter")
_METRIC = in_path("metric", "the metric's name")


@operations(
    get=list_operation(
        "sluice:filters:list",
        "list_registered_filters",
        "List every keyword of DO SET with its activation URL, also those that this cluster cannot enforce",
        shapes.RegisteredFilterPageSerializer,
    ),
    post=create_operation(
        "sluice:activations:register",
        "register_activation",
        "Name the federated service that activates a filter",
        shapes.RegisteredFilterSerializer,
        shapes.NewActivationSerializer,
        shapes.ACTIVATION,
        404,
    ),
)
class RegistryFiltersView(CollectionView):
    """What the language knows behind SET."""

    service, serializer = activations, shapes.RegisteredFilterSerializer
    path, name_field = ("registry", "filters"), "keyword"


@operations(
    get=show_operation(
        "sluice:filters:show",
        "show_activation",
        "Show a keyword and its activation URL",
        shapes.RegisteredFilterSerializer,
        _KEYWORD,
    ),
    put=update_operation(
        "sluice:activations:update",
        "update_activation",
        "Name another service that activates a filter, or the first one",
        shapes.RegisteredFilterSerializer,
        shapes.NewActivationSerializer,
        _KEYWORD,
    ),
    delete=delete_operation(
        "sluice:activations:delete", "delete_activation", "Let our own deploy call activate a filter again", _KEYWORD
    ),
)
class RegistryFilterView(EntryView):
    """One keyword."""

    service, serializer, forced = activations, shapes.RegisteredFilterSerializer, ()


@operations(
    get=list_operation("sluice:metrics:list", "list_metrics", "List workload metrics", shapes.MeasuredPageSerializer),
    post=create_operation(
        "sluice:metrics:register",
        "register_metric",
        "Register a metric that something else than our plugins publishes",
        shapes.MeasuredSerializer,
        shapes.NewMetricSerializer,
        shapes.METRIC,
    ),
)
class RegistryMetricsView(CollectionView):
    """What WHEN can ask for."""

    service, serializer, path = metrics, shapes.MeasuredSerializer, ("registry", "metrics")


@operations(
    get=show_operation("sluice:metrics:show", "show_metric", "Show a metric", shapes.MeasuredSerializer, _METRIC),
    put=update_operation(
        "sluice:metrics:update",
        "update_metric",
        "Describe a registered metric anew",
        shapes.MeasuredSerializer,
        shapes.NewMetricSerializer,
        _METRIC,
    ),
    delete=delete_operation("sluice:metrics:delete", "delete_metric", "Forget a registered metric", _METRIC, FORCE),
)
class RegistryMetricView(EntryView):
    """One metric."""

    service, serializer = metrics, shapes.MeasuredSerializer
