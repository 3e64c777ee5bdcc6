"""``term`` and ``alias``: words of the language."""

from __future__ import annotations

from typing import Final

from sluice_client.command_base import crud
from sluice_client.command_base.arguments import Argument, force_option, pair_option, repeated_option
from sluice_client.resources import registry

_FORCE: Final = (force_option("even while policies use it, which keep its meaning"),)
TERM: Final = crud.Resource(
    "term",
    "/registry/terms",
    registry.TERM_LIST,
    registry.TERM,
    key="term",
    fields=(repeated_option("--pattern", "an extension or a media type: pdf, text/plain, image/*", "patterns"),),
    set_options=_FORCE,
    delete_options=_FORCE,
)
ALIAS: Final = crud.Resource(
    "alias",
    "/registry/aliases",
    registry.ALIAS_LIST,
    registry.ALIAS,
    fields=(
        Argument("--of", "the type of the named thing: filter, metric or target"),
        Argument("--text", "a keyword, a metric, or account[/container[/object]]"),
        Argument("--level", "of a metric: the level of its targets"),
        pair_option("--param", "of a filter: a parameter and its value", "params"),
    ),
    set_options=_FORCE,
    delete_options=_FORCE,
)


class ListTerms(crud.ListResources, resource=TERM, words="term list"):
    """List terms such as DOCS."""


class ShowTerm(crud.ShowResource, resource=TERM, words="term show"):
    """Show a term."""

    examples = ("DOCS",)


class CreateTerm(crud.CreateResource, resource=TERM, words="term create"):
    """Create a term for types of objects."""

    examples = ("SHEETS --pattern ods --pattern text/csv",)


class SetTerm(crud.UpdateResource, resource=TERM, words="term set"):
    """Change the types that a term stands for."""

    examples = ("SHEETS --pattern ods --force",)


class DeleteTerm(crud.DeleteResources, resource=TERM, words="term delete"):
    """Delete terms."""

    examples = ("SHEETS",)


class ListAliases(crud.ListResources, resource=ALIAS, words="alias list"):
    """List further words for filters, metrics and targets."""


class ShowAlias(crud.ShowResource, resource=ALIAS, words="alias show"):
    """Show an alias."""

    examples = ("tight",)


class CreateAlias(crud.CreateResource, resource=ALIAS, words="alias create"):
    """Name a filter with parameters, a metric at a level, or a target by another word."""

    examples = (
        "tight --of filter --text compression --param engine=zstd",
        "C1 --of target --text AUTH_acme/logs",
        "GET_SEC_TENANT --of metric --text GETS_SEC --level tenant",
    )


class SetAlias(crud.UpdateResource, resource=ALIAS, words="alias set"):
    """Change the filter, metric or target that an alias stands for."""

    examples = ("C1 --text AUTH_acme/archive",)


class DeleteAlias(crud.DeleteResources, resource=ALIAS, words="alias delete"):
    """Delete aliases."""

    examples = ("C1 tight",)
