"""``/registry/terms`` and ``/registry/aliases``: coined terms, and further words for what there is."""

from __future__ import annotations

from typing import Final

from sluice_controller.api.openapi import FORCE, in_path
from sluice_controller.api.resources import Resource
from sluice_controller.api.serializers import registry as shapes
from sluice_controller.identity.rules import ADMIN, READER, Rule
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


_TERMS.declare_list(
    Rule("sluice:terms:list", READER, "list coined terms"), "list_terms", "List coined terms such as DOCS"
)
_TERMS.declare_create(Rule("sluice:terms:create", ADMIN, "coin a term"), "coin_term", "Coin a term")


_TERMS.declare_show(Rule("sluice:terms:show", READER, "show a coined term"), "show_term", "Show a coined term")
_TERMS.declare_update(
    Rule("sluice:terms:update", ADMIN, "change a coined term"),
    "update_term",
    "Let a coined term stand for other types; built-in ones cannot be changed",
    FORCE,
)
_TERMS.declare_delete(
    Rule("sluice:terms:delete", ADMIN, "forget a coined term"), "delete_term", "Forget a coined term", FORCE
)


_ALIASES.declare_list(
    Rule("sluice:aliases:list", READER, "list aliases"), "list_aliases", "List aliases of filters, metrics and targets"
)
_ALIASES.declare_create(
    Rule("sluice:aliases:create", ADMIN, "make an alias"),
    "create_alias",
    "Give a filter with parameters, a metric at a granularity, or a target another name",
)


_ALIASES.declare_show(Rule("sluice:aliases:show", READER, "show an alias"), "show_alias", "Show an alias")
_ALIASES.declare_update(
    Rule("sluice:aliases:update", ADMIN, "change an alias"),
    "update_alias",
    "Let an alias stand for something else of its sort",
    FORCE,
)
_ALIASES.declare_delete(
    Rule("sluice:aliases:delete", ADMIN, "forget an alias"), "delete_alias", "Forget an alias", FORCE
)
