"""``/registry/filters`` and ``/registry/metrics``: keywords with their activation URLs, and what WHEN can ask for."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from sluice_controller.api.openapi import REQUEST_ID, WITH_BODY, answers
from sluice_controller.api.serializers.registry import (
    ACTIVATION,
    METRIC,
    MeasuredPageSerializer,
    MeasuredSerializer,
    NewActivationSerializer,
    NewMetricSerializer,
    RegisteredFilterPageSerializer,
    RegisteredFilterSerializer,
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
from sluice_controller.registry import activations, metrics

_KEYWORD = in_path("keyword", "what sentences call the filter")
_METRIC = in_path("metric", "the metric's name")


class RegistryFiltersView(View):
    """What the language knows behind SET."""

    rules = {"get": "sluice:filters:list", "post": "sluice:activations:register"}

    @extend_schema(
        operation_id="list_registered_filters",
        summary="List every keyword of DO SET with its activation URL, also those that this cluster cannot enforce",
        parameters=LIST,
        responses=answers({200: RegisteredFilterPageSerializer}, 400),
    )
    def get(self, request: Request) -> Response:
        """A page of keywords."""
        return page(self, request, "filters", activations.list_all(self.backend), RegisteredFilterSerializer.show)

    @extend_schema(
        operation_id="register_activation",
        summary="Name the federated service that activates a filter",
        parameters=[REQUEST_ID, ETAG, LOCATION],
        request=NewActivationSerializer,
        responses=answers({201: RegisteredFilterSerializer}, 404, 409, *WITH_BODY),
        examples=ACTIVATION,
    )
    def post(self, request: Request) -> Response:
        """The keyword with its service."""
        self.query(request)
        one = activations.create(self.backend, request.data, request.user.name)
        return shown(RegisteredFilterSerializer.show(one), one.version, url("registry", "filters", one.info.keyword))


class RegistryFilterView(View):
    """One keyword."""

    http_method_names = ("get", "put", "delete", "head")
    rules = {
        "get": "sluice:filters:show",
        "put": "sluice:activations:update",
        "delete": "sluice:activations:delete",
    }

    @extend_schema(
        operation_id="show_activation",
        summary="Show a keyword and its activation URL",
        parameters=[_KEYWORD, REQUEST_ID, ETAG],
        responses=answers({200: RegisteredFilterSerializer}, 400, 404),
    )
    def get(self, request: Request, keyword: str) -> Response:
        """The keyword."""
        self.query(request)
        one = activations.find(self.backend, keyword)
        return shown(RegisteredFilterSerializer.show(one), one.version)

    @extend_schema(
        operation_id="update_activation",
        summary="Name another service that activates a filter, or the first one",
        parameters=[_KEYWORD, IF_MATCH, REQUEST_ID, ETAG],
        request=NewActivationSerializer,
        responses=answers({200: RegisteredFilterSerializer}, 404, 409, 412, *WITH_BODY),
    )
    def put(self, request: Request, keyword: str) -> Response:
        """The keyword with its service."""
        self.query(request)
        one = activations.update(self.backend, keyword, request.data, request.user.name, expected_version(request))
        return shown(RegisteredFilterSerializer.show(one), one.version)

    @extend_schema(
        operation_id="delete_activation",
        summary="Let our own deploy call activate a filter again",
        parameters=[_KEYWORD, IF_MATCH, REQUEST_ID],
        responses=answers(GONE, 400, 404, 409, 412),
    )
    def delete(self, request: Request, keyword: str) -> Response:
        """204."""
        self.query(request)
        activations.delete(self.backend, keyword, request.user.name, expected_version(request))
        return gone()


class RegistryMetricsView(View):
    """What WHEN can ask for."""

    rules = {"get": "sluice:metrics:list", "post": "sluice:metrics:register"}

    @extend_schema(
        operation_id="list_metrics",
        summary="List workload metrics",
        parameters=LIST,
        responses=answers({200: MeasuredPageSerializer}, 400),
    )
    def get(self, request: Request) -> Response:
        """A page of metrics."""
        return page(self, request, "metrics", metrics.list_all(self.backend), MeasuredSerializer.show)

    @extend_schema(
        operation_id="register_metric",
        summary="Register a metric that something else than our plugins publishes",
        parameters=[REQUEST_ID, ETAG, LOCATION],
        request=NewMetricSerializer,
        responses=answers({201: MeasuredSerializer}, 409, *WITH_BODY),
        examples=METRIC,
    )
    def post(self, request: Request) -> Response:
        """The metric."""
        self.query(request)
        one = metrics.create(self.backend, request.data, request.user.name)
        return shown(MeasuredSerializer.show(one), one.version, url("registry", "metrics", one.info.name))


class RegistryMetricView(View):
    """One metric."""

    http_method_names = ("get", "put", "delete", "head")
    rules = {"get": "sluice:metrics:show", "put": "sluice:metrics:update", "delete": "sluice:metrics:delete"}

    @extend_schema(
        operation_id="show_metric",
        summary="Show a metric",
        parameters=[_METRIC, REQUEST_ID, ETAG],
        responses=answers({200: MeasuredSerializer}, 400, 404),
    )
    def get(self, request: Request, metric: str) -> Response:
        """The metric."""
        self.query(request)
        one = metrics.find(self.backend, metric)
        return shown(MeasuredSerializer.show(one), one.version)

    @extend_schema(
        operation_id="update_metric",
        summary="Describe a registered metric anew",
        parameters=[_METRIC, IF_MATCH, REQUEST_ID, ETAG],
        request=NewMetricSerializer,
        responses=answers({200: MeasuredSerializer}, 404, 409, 412, *WITH_BODY),
    )
    def put(self, request: Request, metric: str) -> Response:
        """The metric as it is now."""
        self.query(request)
        one = metrics.update(self.backend, metric, request.data, request.user.name, expected_version(request))
        return shown(MeasuredSerializer.show(one), one.version)

    @extend_schema(
        operation_id="delete_metric",
        summary="Forget a registered metric",
        parameters=[_METRIC, FORCE, IF_MATCH, REQUEST_ID],
        responses=answers(GONE, 400, 404, 409, 412),
    )
    def delete(self, request: Request, metric: str) -> Response:
        """204."""
        force = self.query(request, "force").flag("force")
        metrics.delete(self.backend, metric, request.user.name, force, expected_version(request))
        return gone()
