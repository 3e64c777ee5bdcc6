"""The words of the language on this cluster.

``/registry/filters`` and ``/registry/metrics``: keywords with their activation URLs, and metrics for WHEN;
``/registry/terms`` and ``/registry/aliases``: user-defined terms, and further names for existing words.
"""

from __future__ import annotations

from typing import Final

from sluice_controller.api.openapi import FORCE, in_path
from sluice_controller.api.resources import Resource
from sluice_controller.api.serializers import registry as shapes
from sluice_controller.identity.rules import ADMIN, READER, Rule
from sluice_controller.registry import activations, aliases, metrics, terms

_FILTERS: Final = Resource(
    activations,
    ("registry", "filters"),
    in_path("keyword", "the filter's keyword in sentences"),
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


_TERMS: Final = Resource(
    terms,
    ("registry", "terms"),
    in_path("term", "the term"),
    "Terms by name.",
    shapes.CoinedTermSerializer,
    shapes.NewTermSerializer,
    shapes.TERM,
    name_field="term",
)
_ALIASES: Final = Resource(
    aliases,
    ("registry", "aliases"),
    in_path("alias", "the alias"),
    "Aliases by name.",
    shapes.AliasSerializer,
    shapes.NewAliasSerializer,
    shapes.ALIAS,
)


_FILTERS.declare_list(
    "sluice:filters:list",
    "list_registered_filters",
    "List every keyword of DO SET with its activation URL, also keywords that this cluster cannot enforce",
)
_FILTERS.declare_create(
    Rule("sluice:activations:register", ADMIN, "register the service of a filter"),
    "register_activation",
    "Register the federated service that activates a filter",
    404,
)


_FILTERS.declare_show("sluice:filters:show", "show_activation", "Show a keyword and its activation URL")
_FILTERS.declare_update(
    Rule("sluice:activations:update", ADMIN, "change the service of a filter"),
    "update_activation",
    "Change the federated service that activates a filter, or register one",
)
_FILTERS.declare_delete(
    Rule("sluice:activations:delete", ADMIN, "remove the service of a filter"),
    "delete_activation",
    "Remove the federated service of a filter; Sluice then activates it with its own deploy call",
    FORCE,
)


_METRICS.declare_list(Rule("sluice:metrics:list", READER, "list metrics"), "list_metrics", "List workload metrics")
_METRICS.declare_create(
    Rule("sluice:metrics:register", ADMIN, "register a metric"),
    "register_metric",
    "Register a metric that an external program publishes",
)


_METRICS.declare_show(Rule("sluice:metrics:show", READER, "show a metric"), "show_metric", "Show a metric")
_METRICS.declare_update(
    Rule("sluice:metrics:update", ADMIN, "describe a metric anew"), "update_metric", "Describe a registered metric anew"
)
_METRICS.declare_delete(
    Rule("sluice:metrics:delete", ADMIN, "delete a metric"), "delete_metric", "Delete a registered metric", FORCE
)


_TERMS.declare_list(
    Rule("sluice:terms:list", READER, "list coined terms"), "list_terms", "List coined terms such as DOCS"
)
_TERMS.declare_create(Rule("sluice:terms:create", ADMIN, "coin a term"), "coin_term", "Coin a term")


_TERMS.declare_show(Rule("sluice:terms:show", READER, "show a coined term"), "show_term", "Show a coined term")
_TERMS.declare_update(
    Rule("sluice:terms:update", ADMIN, "change a coined term"),
    "update_term",
    "Change the types that a term stands for; built-in terms cannot be changed",
    FORCE,
)
_TERMS.declare_delete(Rule("sluice:terms:delete", ADMIN, "delete a term"), "delete_term", "Delete a term", FORCE)


_ALIASES.declare_list(
    Rule("sluice:aliases:list", READER, "list aliases"), "list_aliases", "List aliases of filters, metrics and targets"
)
_ALIASES.declare_create(
    Rule("sluice:aliases:create", ADMIN, "create an alias"),
    "create_alias",
    "Create an alias of a filter with parameters, a metric at a granularity, or a target",
)


_ALIASES.declare_show(Rule("sluice:aliases:show", READER, "show an alias"), "show_alias", "Show an alias")
_ALIASES.declare_update(
    Rule("sluice:aliases:update", ADMIN, "change an alias"),
    "update_alias",
    "Change an alias, to something of the same kind",
    FORCE,
)
_ALIASES.declare_delete(
    Rule("sluice:aliases:delete", ADMIN, "delete an alias"), "delete_alias", "Delete an alias", FORCE
)
