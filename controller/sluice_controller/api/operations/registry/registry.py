"""``/registry/filters`` and ``/registry/metrics``: keywords with their activation URLs, and what WHEN can ask for."""

from __future__ import annotations

from typing import Final

from sluice_controller.api.openapi import FORCE, in_path
from sluice_controller.api.resources import Resource
from sluice_controller.api.serializers import registry as shapes
from sluice_controller.identity.rules import ADMIN, READER, Rule
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


_FILTERS.declare_list(
    "sluice:filters:list",
    "list_registered_filters",
    "List every keyword of DO SET with its activation URL, also those that this cluster cannot enforce",
)
_FILTERS.declare_create(
    Rule("sluice:activations:register", ADMIN, "name the service of a filter"),
    "register_activation",
    "Name the federated service that activates a filter",
    404,
)


_FILTERS.declare_show("sluice:filters:show", "show_activation", "Show a keyword and its activation URL")
_FILTERS.declare_update(
    Rule("sluice:activations:update", ADMIN, "name another service"),
    "update_activation",
    "Name another service that activates a filter, or the first one",
)
_FILTERS.declare_delete(
    Rule("sluice:activations:delete", ADMIN, "our own call again"),
    "delete_activation",
    "Let our own deploy call activate a filter again",
    FORCE,
)


_METRICS.declare_list(Rule("sluice:metrics:list", READER, "list metrics"), "list_metrics", "List workload metrics")
_METRICS.declare_create(
    Rule("sluice:metrics:register", ADMIN, "register a metric"),
    "register_metric",
    "Register a metric that something else than our plugins publishes",
)


_METRICS.declare_show(Rule("sluice:metrics:show", READER, "show a metric"), "show_metric", "Show a metric")
_METRICS.declare_update(
    Rule("sluice:metrics:update", ADMIN, "describe a metric anew"), "update_metric", "Describe a registered metric anew"
)
_METRICS.declare_delete(
    Rule("sluice:metrics:delete", ADMIN, "forget a metric"), "delete_metric", "Forget a registered metric", FORCE
)
