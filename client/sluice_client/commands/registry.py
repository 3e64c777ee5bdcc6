"""``term`` and ``alias``: words of the language."""

from __future__ import annotations

from typing import Final

from sluice_client.command_base.command import Argument, pair_option, repeated_option
from sluice_client.command_base.crud import (
    CreateResource,
    DeleteResources,
    ListResources,
    Resource,
    ShowResource,
    UpdateResource,
)
from sluice_client.resources import registry

_FORCE: Final = "even while policies use it, which keep what it meant"
TERM: Final = Resource(
    "term",
    "/registry/terms",
    "terms",
    registry.TERM_LIST,
    registry.TERM,
    key="term",
    fields=(repeated_option("--pattern", "an extension or a media type: pdf, text/plain, image/*", "patterns"),),
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
        pair_option("--param", "of a filter: what it is set with", "params"),
    ),
    force=_FORCE,
    force_set=_FORCE,
)


class ListTerms(ListResources):
    """List coined terms such as DOCS."""

    resource = TERM


class ShowTerm(ShowResource):
    """Show a term."""

    resource = TERM
    examples = ("DOCS",)


class CreateTerm(CreateResource):
    """Coin a term for types of objects."""

    resource = TERM
    examples = ("SHEETS --pattern ods --pattern text/csv",)


class SetTerm(UpdateResource):
    """Let a coined term stand for other types."""

    resource = TERM
    examples = ("SHEETS --pattern ods --force",)


class DeleteTerm(DeleteResources):
    """Forget coined terms."""

    resource = TERM
    examples = ("SHEETS",)


class ListAliases(ListResources):
    """List further words for filters, metrics and targets."""

    resource = ALIAS


class ShowAlias(ShowResource):
    """Show an alias."""

    resource = ALIAS
    examples = ("tight",)


class CreateAlias(CreateResource):
    """Give a filter with parameters, a metric at a level, or a target another name."""

    resource = ALIAS
    examples = (
        "tight --of filter --text compression --param engine=zstd",
        "C1 --of target --text AUTH_acme/logs",
        "GET_SEC_TENANT --of metric --text GETS_SEC --level tenant",
    )


class SetAlias(UpdateResource):
    """Let an alias stand for something else of its sort."""

    resource = ALIAS
    examples = ("C1 --text AUTH_acme/archive",)


class DeleteAlias(DeleteResources):
    """Forget aliases."""

    resource = ALIAS
    examples = ("C1 tight",)
