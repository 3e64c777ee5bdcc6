"""``/registry/terms`` and ``/registry/aliases``: coined terms, and further words for what there is."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from sluice_controller.api.openapi import REQUEST_ID, WITH_BODY, answers
from sluice_controller.api.serializers.registry import (
    ALIAS,
    TERM,
    AliasPageSerializer,
    AliasSerializer,
    CoinedTermPageSerializer,
    CoinedTermSerializer,
    NewAliasSerializer,
    NewTermSerializer,
)
from sluice_controller.api.views.base import View, expected_version
from sluice_controller.api.views.listing import (
    ETAG,
    FORCE,
    GONE,
    IF_MATCH,
    LIST,
    LOCATION,
    gone,
    in_path,
    page,
    shown,
    url,
)
from sluice_controller.registry import aliases, terms

_TERM = in_path("term", "the coined word")
_ALIAS = in_path("alias", "the alias")


class RegistryTermsView(View):
    """Coined words."""

    rules = {"get": "sluice:terms:list", "post": "sluice:terms:create"}

    @extend_schema(
        operation_id="list_terms",
        summary="List coined terms such as DOCS",
        parameters=LIST,
        responses=answers({200: CoinedTermPageSerializer}, 400),
    )
    def get(self, request: Request) -> Response:
        """A page of terms."""
        return page(self, request, "terms", terms.list_all(self.backend), CoinedTermSerializer.show)

    @extend_schema(
        operation_id="coin_term",
        summary="Coin a term",
        parameters=[REQUEST_ID, ETAG, LOCATION],
        request=NewTermSerializer,
        responses=answers({201: CoinedTermSerializer}, 409, *WITH_BODY),
        examples=TERM,
    )
    def post(self, request: Request) -> Response:
        """The new term."""
        self.query(request)
        found = terms.create(self.backend, request.data, request.user.name)
        return shown(CoinedTermSerializer.show(found), found.version, url("registry", "terms", found.record.name))


class RegistryTermView(View):
    """One coined word."""

    http_method_names = ("get", "put", "delete", "head")
    rules = {"get": "sluice:terms:show", "put": "sluice:terms:update", "delete": "sluice:terms:delete"}

    @extend_schema(
        operation_id="show_term",
        summary="Show a coined term",
        parameters=[_TERM, REQUEST_ID, ETAG],
        responses=answers({200: CoinedTermSerializer}, 400, 404),
    )
    def get(self, request: Request, term: str) -> Response:
        """The term."""
        self.query(request)
        found = terms.find(self.backend, term)
        return shown(CoinedTermSerializer.show(found), found.version)

    @extend_schema(
        operation_id="update_term",
        summary="Let a coined term stand for other types; built-in ones cannot be changed",
        parameters=[_TERM, FORCE, IF_MATCH, REQUEST_ID, ETAG],
        request=NewTermSerializer,
        responses=answers({200: CoinedTermSerializer}, 404, 409, 412, *WITH_BODY),
    )
    def put(self, request: Request, term: str) -> Response:
        """The term as it is now."""
        force = self.query(request, "force").flag("force")
        expected = expected_version(request)
        found = terms.update(self.backend, term, request.data, request.user.name, force, expected)
        return shown(CoinedTermSerializer.show(found), found.version)

    @extend_schema(
        operation_id="delete_term",
        summary="Forget a coined term",
        parameters=[_TERM, FORCE, IF_MATCH, REQUEST_ID],
        responses=answers(GONE, 400, 404, 409, 412),
    )
    def delete(self, request: Request, term: str) -> Response:
        """204."""
        force = self.query(request, "force").flag("force")
        terms.delete(self.backend, term, request.user.name, force, expected_version(request))
        return gone()


class AliasesView(View):
    """Further words."""

    rules = {"get": "sluice:aliases:list", "post": "sluice:aliases:create"}

    @extend_schema(
        operation_id="list_aliases",
        summary="List aliases of filters, metrics and targets",
        parameters=LIST,
        responses=answers({200: AliasPageSerializer}, 400),
    )
    def get(self, request: Request) -> Response:
        """A page of aliases."""
        return page(self, request, "aliases", aliases.list_all(self.backend), AliasSerializer.show)

    @extend_schema(
        operation_id="create_alias",
        summary="Give a filter with parameters, a metric at a granularity, or a target another name",
        parameters=[REQUEST_ID, ETAG, LOCATION],
        request=NewAliasSerializer,
        responses=answers({201: AliasSerializer}, 409, *WITH_BODY),
        examples=ALIAS,
    )
    def post(self, request: Request) -> Response:
        """The new alias."""
        self.query(request)
        found = aliases.create(self.backend, request.data, request.user.name)
        return shown(AliasSerializer.show(found), found.version, url("registry", "aliases", found.record.name))


class AliasView(View):
    """One further word."""

    http_method_names = ("get", "put", "delete", "head")
    rules = {"get": "sluice:aliases:show", "put": "sluice:aliases:update", "delete": "sluice:aliases:delete"}

    @extend_schema(
        operation_id="show_alias",
        summary="Show an alias",
        parameters=[_ALIAS, REQUEST_ID, ETAG],
        responses=answers({200: AliasSerializer}, 400, 404),
    )
    def get(self, request: Request, alias: str) -> Response:
        """The alias."""
        self.query(request)
        found = aliases.find(self.backend, alias)
        return shown(AliasSerializer.show(found), found.version)

    @extend_schema(
        operation_id="update_alias",
        summary="Let an alias stand for something else of its sort",
        parameters=[_ALIAS, FORCE, IF_MATCH, REQUEST_ID, ETAG],
        request=NewAliasSerializer,
        responses=answers({200: AliasSerializer}, 404, 409, 412, *WITH_BODY),
    )
    def put(self, request: Request, alias: str) -> Response:
        """The alias as it is now."""
        force = self.query(request, "force").flag("force")
        expected = expected_version(request)
        found = aliases.update(self.backend, alias, request.data, request.user.name, force, expected)
        return shown(AliasSerializer.show(found), found.version)

    @extend_schema(
        operation_id="delete_alias",
        summary="Forget an alias",
        parameters=[_ALIAS, FORCE, IF_MATCH, REQUEST_ID],
        responses=answers(GONE, 400, 404, 409, 412),
    )
    def delete(self, request: Request, alias: str) -> Response:
        """204."""
        force = self.query(request, "force").flag("force")
        aliases.delete(self.backend, alias, request.user.name, force, expected_version(request))
        return gone()
