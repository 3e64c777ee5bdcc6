"""``/registry``: the words that sentences may use."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from sluice_controller import render, serializers
from sluice_controller.openapi import REQUEST_ID, answers
from sluice_controller.views.base import View


class RegistryFiltersView(View):
    """What the language knows."""

    @extend_schema(
        operation_id="list_registered_filters",
        summary="List every keyword of DO SET, also those that this cluster cannot enforce",
        parameters=[REQUEST_ID],
        responses=answers({200: serializers.FilterListSerializer}, 400),
    )
    def get(self, request: Request) -> Response:
        """All keywords."""
        self.query(request)
        known = sorted(self.backend.catalogue.actions.items())
        return Response({"filters": [render.action_data(one) for _, one in known]})


class RegistryMetricsView(View):
    """What WHEN can ask for."""

    @extend_schema(
        operation_id="list_metrics",
        summary="List workload metrics",
        parameters=[REQUEST_ID],
        responses=answers({200: serializers.MetricListSerializer}, 400),
    )
    def get(self, request: Request) -> Response:
        """All metrics."""
        self.query(request)
        known = sorted(self.backend.native.metrics.items())
        return Response({"metrics": [render.metric_data(one) for _, one in known]})


class RegistryTermsView(View):
    """Coined words."""

    @extend_schema(
        operation_id="list_terms",
        summary="List coined terms such as DOCS",
        parameters=[REQUEST_ID],
        responses=answers({200: serializers.TermListSerializer}, 400),
    )
    def get(self, request: Request) -> Response:
        """All terms."""
        self.query(request)
        return Response({"terms": render.term_data(self.backend.native.terms)})
