"""``/registry/metrics/{NAME}/…``: metrics whose code is uploaded."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Final

from rest_framework.request import Request
from rest_framework.response import Response

from sluice_controller.api.openapi import LIST, LOCATION, in_path, operation, query_flag
from sluice_controller.api.operations.code import base
from sluice_controller.api.resources import render_page
from sluice_controller.api.serializers.code import MetricInstancesSerializer
from sluice_controller.api.serializers.registry import MeasuredSerializer
from sluice_controller.api.view import View
from sluice_controller.code import metrics as code_metrics
from sluice_controller.code.revisions import RegisteredCode
from sluice_controller.identity.rules import ADMIN, Rule
from sluice_controller.registry import metrics
from sluice_core.messages.uploads import METRIC_CODE

_METRIC: Final = in_path("metric", "the metric's name")
_URL: Final = "/registry/metrics/<name:metric>"
_INSISTING: Final = query_flag("force", "also while policies watch it; they then observe silence")


class MetricBase(base.CodeView):
    """The common part of the views of one uploaded metric."""

    service, path = code_metrics, ("registry", "metrics")

    def render(self, found: RegisteredCode) -> dict[str, Any]:
        """The metric in the form of the registry."""
        return MeasuredSerializer.render(metrics.uploaded_metric(found.upload, found.version))


class MetricDataView(MetricBase, base.CodeDataView):
    """The code of one uploaded metric."""


base.declare_download(
    MetricDataView,
    _URL,
    Rule("sluice:metrics:download", ADMIN, "download a metric's code"),
    _METRIC,
    name="download_metric",
    summary="Download the code of an uploaded metric",
)
base.declare_upload(
    MetricDataView,
    _URL,
    Rule(
        base.NATIVE_RULES[METRIC_CODE], ADMIN, "upload a metric's code, which runs with all rights of Swift's proxies"
    ),
    {200: MeasuredSerializer, 201: MeasuredSerializer},
    _METRIC,
    LOCATION,
    name="upload_metric",
    summary="Upload a workload metric, which is stopped at first, or another revision of one",
    description="It counts inside Swift's proxies, and must be quick.",
)


@base.command_operation(
    "POST /registry/metrics/<name:metric>/start",
    Rule("sluice:metrics:start", ADMIN, "start a metric"),
    MeasuredSerializer,
    _METRIC,
)
def start_metric(view: MetricBase, request: Request, metric: str) -> Response:
    """Start to measure an uploaded metric, so that sentences can use it.

    The metric.
    """
    found = code_metrics.start(view.backend, metric, request.user.name, **view.given)
    return view.respond_settled(found)


@base.command_operation(
    "POST /registry/metrics/<name:metric>/stop",
    Rule("sluice:metrics:stop", ADMIN, "stop a metric"),
    MeasuredSerializer,
    _METRIC,
    _INSISTING,
)
def stop_metric(view: MetricBase, request: Request, metric: str) -> Response:
    """Stop to measure an uploaded metric.

    The metric.
    """
    found = code_metrics.stop(view.backend, metric, request.user.name, **view.given)
    view.wait_acknowledged(found.epoch)
    return view.respond(found)


base.declare_rollback(
    MetricBase,
    _URL,
    Rule("sluice:metrics:rollback", ADMIN, "roll back a metric to earlier code"),
    MeasuredSerializer,
    _METRIC,
    name="roll_back_metric",
    summary="Roll back an uploaded metric to the code of an earlier revision, as a new revision",
    description="The metric with the restored code.",
)


@operation(
    "GET /registry/metrics/<name:metric>/instances",
    Rule("sluice:metrics:instances", ADMIN, "show which nodes measure a metric"),
    MetricInstancesSerializer,
    _METRIC,
    *LIST,
)
def list_metric_instances(view: View, request: Request, metric: str) -> Response:
    """List the nodes with the revision of an uploaded metric that each can run.

    A page of nodes.
    """
    found = {one.node: one for one in code_metrics.instances(view.backend, metric)}
    return render_page(view.given, "instances", found, asdict)
