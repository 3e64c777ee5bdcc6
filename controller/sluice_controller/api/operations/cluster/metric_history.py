"""``/metrics/history`` and ``/metrics/{metric}/history``: past values of metrics, and the list of kept series."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from drf_spectacular.types import OpenApiTypes
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from sluice_controller.api.openapi import LIST, in_path, operation, query_text, query_word
from sluice_controller.api.permissions import visible_accounts
from sluice_controller.api.prometheus.history import expression_of
from sluice_controller.api.renderers import CSV, CsvRenderer, NonJSONView
from sluice_controller.api.resources import render_page
from sluice_controller.api.serializers import cluster as shapes
from sluice_controller.api.view import View
from sluice_controller.identity.rules import ADMIN, READS_OWN, THING, Rule
from sluice_controller.metric_history import reading
from sluice_controller.metric_history.prometheus_client import PrometheusClient
from sluice_controller.metric_history.selection import read_range, select
from sluice_core.messages.policies import Target
from sluice_metric_history.records import OWNED, SeriesRecord

#: One client for each process, which keeps its connections.
open_prometheus = lru_cache(maxsize=8)(PrometheusClient)


class PointsRenderer(CsvRenderer):
    """Points as CSV, for spreadsheets."""

    field = "points"
    titles = ("time", "mean", "min", "max", "p95")


class MetricHistoryView(NonJSONView):
    """One metric of one target."""

    renderer_classes = (JSONRenderer, PointsRenderer)


@operation(
    "GET /metrics/<name:metric>/history",
    Rule("sluice:metrics:history", READS_OWN, "show the history of a metric", about=THING),
    {(200, "application/json"): shapes.MetricHistorySerializer, (200, CSV): OpenApiTypes.STR},
    in_path("metric", "its name"),
    query_text("target", "tenant, tenant/container, tenant/volume id, node, pool …; the cluster when empty"),
    query_word("rest", "instead of a target: the sum of the targets of this level without series of their own", OWNED),
    query_text("from", "ISO 8601, Unix seconds, or negative seconds before now; ten minutes ago when empty"),
    query_text("to", "in the same forms; now when empty"),
    query_text("step", "seconds: 1, 10, 60 or a multiple; chosen by the range when empty"),
)
def show_metric_history(view: MetricHistoryView, request: Request, metric: str) -> Response:
    """Show past values of a metric.

    For the busiest targets, seconds are kept for ten minutes, tens of seconds for six hours, minutes for a week.
    Values that were not measured are null. With `Accept: text/csv` the points are rows of a table.
    """
    given = view.given
    wanted = read_range(given["from"], given["to"], given["step"], view.backend.now())
    selection = select(view.backend, metric, given["target"], given["rest"])
    view.authorize_target(request, Target(selection.level, name=selection.path))
    expression = expression_of(selection.series[0], view.backend.config.reseller_prefix)
    url = view.backend.config.history_url
    if url and expression:
        client = open_prometheus(url)
        history = reading.query_history(client, expression, view.backend, selection, wanted)
    else:
        history = reading.read_history(view.backend, selection, wanted)
    return Response(shapes.MetricHistorySerializer.render(history))


class MetricSeriesView(View):
    """The kept series."""

    def _row(self, series: SeriesRecord) -> dict[str, Any]:
        label = self.backend.label(series.path) if series.key.owner else ""
        return shapes.MetricSeriesSerializer.render(series, label=label)


@operation(
    "GET /metrics/history",
    Rule(
        "sluice:metrics:series",
        READS_OWN,
        "list the series with history",
        everybody="list the series of all projects",
    ),
    shapes.MetricSeriesPageSerializer,
    query_text("metric", "only of this metric"),
    query_text("target", "only of this target, as an account rather than the name of a project"),
    *LIST,
)
def list_metric_series(view: MetricSeriesView, request: Request) -> Response:
    """List the series with history.

    Those of the caller's project, or of all projects with the rule for that. Series that a Prometheus keeps are not
    listed. `prefix` and `marker` are a metric, a level and a target with blanks between them.
    """
    accounts = visible_accounts(request, view.rule)
    known = reading.list_series(view.backend, accounts, view.given["metric"].upper(), view.given["target"])
    return render_page(view.given, "series", known, view._row)


@operation(
    "DELETE /metrics/history",
    Rule("sluice:metrics:forget", ADMIN, "delete the history of a target"),
    shapes.ForgottenSerializer,
    query_text(
        "target", "an account or its project, a container, a volume, a node, …, with everything in it", required=True
    ),
    errors=(),
)
def forget_metric_history(view: MetricSeriesView, request: Request) -> Response:
    """Delete the history of a target, for example of a deleted project.

    A target that still has values gets a new series, which begins then.
    """
    return Response({"series": len(reading.forget(view.backend, view.given["target"]))})
