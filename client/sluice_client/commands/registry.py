"""``metric``, ``term`` and ``alias``: words of the language."""

from __future__ import annotations

from typing import Final

from sluice_client import resources
from sluice_client import resources_registry as registry
from sluice_client.command import Argument, pairs, repeated, seconds
from sluice_client.standard import CreateIt, DeleteThem, ListAll, Resource, SetIt, ShowIt

_FORCE: Final = "even while policies use it, which keep what it meant"
METRIC: Final = Resource(
    "metric",
    "/registry/metrics",
    "metrics",
    resources.METRIC_LIST,
    registry.METRIC,
    fields=(
        Argument("--unit", "of its values"),
        Argument("--type", "gauge, counter or rate"),
        repeated(
            "--granularity", "what it is measured per: object, container, tenant, cluster or node", "granularities"
        ),
        seconds("--period", "the length of a window", None),
        Argument("--location", "exchange and routing key of its batches"),
        Argument("--help-text", "what it says", {"dest": "help", "metavar": "TEXT"}),
    ),
    force=_FORCE,
)
TERM: Final = Resource(
    "term",
    "/registry/terms",
    "terms",
    registry.TERM_LIST,
    registry.TERM,
    key="term",
    fields=(repeated("--pattern", "an extension or a media type: pdf, text/plain, image/*", "patterns"),),
    force=_FORCE,
    force_set=_FORCE,
)
ALIAS: Final = Resource(
    "alias",
    "/registry/aliases",
    "aliases",
    registry.ALIAS_LIST,
    registry.ALIAS,
    fields=(
        Argument("--of", "what it is a word for: filter, metric or target"),
        Argument("--text", "a keyword, a metric, or account[/container[/object]]"),
        Argument("--level", "of a metric: the targets that it is asked for"),
        pairs("--param", "of a filter: what it is set with", "params"),
    ),
    force=_FORCE,
    force_set=_FORCE,
)


class ListMetrics(ListAll):
    """List what policies can watch."""

    resource = METRIC


class ShowMetric(ShowIt):
    """Show a metric."""

    resource = METRIC


class CreateMetric(CreateIt):
    """Register a metric that no plugin of ours measures."""

    resource = METRIC


class SetMetric(SetIt):
    """Change a registered metric; what is not named stays."""

    resource = METRIC


class DeleteMetric(DeleteThem):
    """Forget registered metrics."""

    resource = METRIC


class ListTerms(ListAll):
    """List coined terms such as DOCS."""

    resource = TERM


class ShowTerm(ShowIt):
    """Show a term."""

    resource = TERM


class CreateTerm(CreateIt):
    """Coin a term for types of objects."""

    resource = TERM


class SetTerm(SetIt):
    """Let a coined term stand for other types."""

    resource = TERM


class DeleteTerm(DeleteThem):
    """Forget coined terms."""

    resource = TERM


class ListAliases(ListAll):
    """List further words for filters, metrics and targets."""

    resource = ALIAS


class ShowAlias(ShowIt):
    """Show an alias."""

    resource = ALIAS


class CreateAlias(CreateIt):
    """Give a filter with parameters, a metric at a level, or a target another name."""

    resource = ALIAS


class SetAlias(SetIt):
    """Let an alias stand for something else of its sort."""

    resource = ALIAS


class DeleteAlias(DeleteThem):
    """Forget aliases."""

    resource = ALIAS
