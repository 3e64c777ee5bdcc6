"""``/registry/terms`` and ``/registry/aliases``: coined terms, and further words for what there is."""

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
from sluice_controller.registry import aliases, terms

_TERM = in_path("term", "the coined word")
_ALIAS = in_path("alias", "the alias")


@operations(
    get=list_operation(
        "sluice:terms:list", "list_terms", "List coined terms such as DOCS", shapes.CoinedTermPageSerializer
    ),
    post=create_operation(
        "sluice:terms:create",
        "coin_term",
        "Coin a term",
        shapes.CoinedTermSerializer,
        shapes.NewTermSerializer,
        shapes.TERM,
    ),
)
class RegistryTermsView(CollectionView):
    """Coined words."""

    service, serializer = terms, shapes.CoinedTermSerializer
    path, name_field = ("registry", "terms"), "term"


@operations(
    get=show_operation("sluice:terms:show", "show_term", "Show a coined term", shapes.CoinedTermSerializer, _TERM),
    put=update_operation(
        "sluice:terms:update",
        "update_term",
        "Let a coined term stand for other types; built-in ones cannot be changed",
        shapes.CoinedTermSerializer,
        shapes.NewTermSerializer,
        _TERM,
        FORCE,
    ),
    delete=delete_operation("sluice:terms:delete", "delete_term", "Forget a coined term", _TERM, FORCE),
)
class RegistryTermView(EntryView):
    """One coined word."""

    service, serializer, forced = terms, shapes.CoinedTermSerializer, ("put", "delete")


@operations(
    get=list_operation(
        "sluice:aliases:list",
        "list_aliases",
        "List aliases of filters, metrics and targets",
        shapes.AliasPageSerializer,
    ),
    post=create_operation(
        "sluice:aliases:create",
        "create_alias",
        "Give a filter with parameters, a metric at a granularity, or a target another name",
        shapes.AliasSerializer,
        shapes.NewAliasSerializer,
        shapes.ALIAS,
    ),
)
class AliasesView(CollectionView):
    """Further words."""

    service, serializer, path = aliases, shapes.AliasSerializer, ("registry", "aliases")


@operations(
    get=show_operation("sluice:aliases:show", "show_alias", "Show an alias", shapes.AliasSerializer, _ALIAS),
    put=update_operation(
        "sluice:aliases:update",
        "update_alias",
        "Let an alias stand for something else of its sort",
        shapes.AliasSerializer,
        shapes.NewAliasSerializer,
        _ALIAS,
        FORCE,
    ),
    delete=delete_operation("sluice:aliases:delete", "delete_alias", "Forget an alias", _ALIAS, FORCE),
)
class AliasView(EntryView):
    """One further word."""

    service, serializer, forced = aliases, shapes.AliasSerializer, ("put", "delete")
