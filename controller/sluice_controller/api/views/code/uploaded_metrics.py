"""``/registry/metrics/{NAME}/…``: metrics whose code is uploaded."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Final

from rest_framework.request import Request
from rest_framework.response import Response

from sluice_controller.api.openapi import LIST, LOCATION, in_path, operation, operations, query_flag
from sluice_controller.api.serializers.code.controllers import MetricInstancesSerializer
from sluice_controller.api.serializers.registry import MeasuredSerializer
from sluice_controller.api.views.base import View
from sluice_controller.api.views.code import base
from sluice_controller.api.views.resources import render_page
from sluice_controller.code import metrics as code_metrics
from sluice_controller.code.revisions import RegisteredCode
from sluice_controller.registry import metrics

_METRIC: Final = in_path("metric", "the metric's name")
_INSISTING: Final = query_flag("force", "even while policies watch it, which then see silence")


class MetricBase(base.CodeView):
    """What the views of one uploaded metric share."""

    service, path = code_metrics, ("registry", "metrics")

    def render(self, found: RegisteredCode) -> dict[str, Any]:
        """The metric as the registry shows it."""
        return MeasuredSerializer.render(metrics.uploaded_metric(found.upload, found.version))


@operations(
    get=base.download_operation(
        "sluice:metrics:download", "download_metric", "Give the code of an uploaded metric", _METRIC
    ),
    put=base.upload_operation(
        "sluice:metrics:upload",
        "upload_metric",
        "Upload a workload metric, which is stopped then, or another revision of one",
        "It counts inside Swift's proxies, and must be quick.",
        {200: MeasuredSerializer, 201: MeasuredSerializer},
        _METRIC,
        LOCATION,
    ),
)
class MetricDataView(MetricBase, base.CodeDataView):
    """The code of one uploaded metric."""


class MetricStartView(MetricBase):
    """Measuring."""

    @base.command_operation("sluice:metrics:start", "start_metric", MeasuredSerializer, _METRIC)
    def post(self, request: Request, metric: str) -> Response:
        """Have an uploaded metric measured; from then on sentences know it.

        The metric.
        """
        found = code_metrics.start(self.backend, metric, request.user.name, **self.given)
        return self.respond_settled(found)


class MetricStopView(MetricBase):
    """Not measuring."""

    @base.command_operation("sluice:metrics:stop", "stop_metric", MeasuredSerializer, _METRIC, _INSISTING)
    def post(self, request: Request, metric: str) -> Response:
        """Measure an uploaded metric no more.

        The metric.
        """
        found = code_metrics.stop(self.backend, metric, request.user.name, **self.given)
        self.wait_acknowledged(found.epoch)
        return self.respond(found)


@operations(
    post=base.rollback_operation(
        "sluice:metrics:rollback",
        "roll_back_metric",
        "Give an uploaded metric the code of an earlier revision again, as a new revision",
        "The metric with the code that it had.",
        MeasuredSerializer,
        _METRIC,
    )
)
class MetricRollbackView(MetricBase, base.CodeRollbackView):
    """An earlier revision of a metric's code."""


class MetricInstancesView(View):
    """Where a metric is measured."""

    @operation(
        "sluice:metrics:instances", "list_metric_instances", MetricInstancesSerializer, _METRIC, *LIST, errors=(404,)
    )
    def get(self, request: Request, metric: str) -> Response:
        """List the nodes with the revision of an uploaded metric that each can run.

        A page of nodes.
        """
        found = {one.node: one for one in code_metrics.instances(self.backend, metric)}
        return render_page(self.given, "instances", found, asdict)
