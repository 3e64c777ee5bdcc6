"""``/registry/terms`` and ``/registry/aliases``: coined terms, and further words for what there is."""

from __future__ import annotations

from typing import Final

from sluice_controller.api.openapi import FORCE, in_path
from sluice_controller.api.serializers import registry as shapes
from sluice_controller.api.views.resources import CollectionView, EntryView, Resource
from sluice_controller.registry import aliases, terms

_TERMS: Final = Resource(
    terms,
    ("registry", "terms"),
    in_path("term", "the coined word"),
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


@_TERMS.declare(
    get=_TERMS.list_operation("sluice:terms:list", "list_terms", "List coined terms such as DOCS"),
    post=_TERMS.create_operation("sluice:terms:create", "coin_term", "Coin a term"),
)
class RegistryTermsView(CollectionView):
    """Coined words."""


@_TERMS.declare(
    get=_TERMS.show_operation("sluice:terms:show", "show_term", "Show a coined term"),
    put=_TERMS.update_operation(
        "sluice:terms:update",
        "update_term",
        "Let a coined term stand for other types; built-in ones cannot be changed",
        FORCE,
    ),
    delete=_TERMS.delete_operation("sluice:terms:delete", "delete_term", "Forget a coined term", FORCE),
)
class RegistryTermView(EntryView):
    """One coined word."""


@_ALIASES.declare(
    get=_ALIASES.list_operation("sluice:aliases:list", "list_aliases", "List aliases of filters, metrics and targets"),
    post=_ALIASES.create_operation(
        "sluice:aliases:create",
        "create_alias",
        "Give a filter with parameters, a metric at a granularity, or a target another name",
    ),
)
class AliasesView(CollectionView):
    """Further words."""


@_ALIASES.declare(
    get=_ALIASES.show_operation("sluice:aliases:show", "show_alias", "Show an alias"),
    put=_ALIASES.update_operation(
        "sluice:aliases:update", "update_alias", "Let an alias stand for something else of its sort", FORCE
    ),
    delete=_ALIASES.delete_operation("sluice:aliases:delete", "delete_alias", "Forget an alias", FORCE),
)
class AliasView(EntryView):
    """One further word."""
