"""``/registry/metrics/{NAME}/…``: metrics whose code is uploaded."""

from __future__ import annotations

from dataclasses import asdict
from http import HTTPStatus

from django.http import StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from rest_framework.request import Request
from rest_framework.response import Response

from sluice_controller.api.openapi import (
    IF_MATCH,
    LIST,
    LOCATION,
    WAIT,
    in_path,
    operation,
    query,
)
from sluice_controller.api.parsers import RawParser
from sluice_controller.api.serializers.controllers import MetricInstancesSerializer
from sluice_controller.api.serializers.registry import MeasuredSerializer
from sluice_controller.api.serializers.uploads import ROLLBACKS, RollbackSerializer
from sluice_controller.api.views.base import View, expected_version
from sluice_controller.api.views.code.transfer import (
    BYTES,
    BYTES_OUT,
    MAIN,
    NATIVE_WARNING,
    SHA256,
    download,
    read_code,
)
from sluice_controller.api.views.resources import render_entry, render_page, url_path
from sluice_controller.catalog.waiting import LONGEST, wait_acknowledged
from sluice_controller.code import metrics as code_metrics
from sluice_controller.code import revisions
from sluice_controller.code.revisions import RegisteredCode
from sluice_controller.code.rollout import wait_rolled_out
from sluice_controller.registry import metrics
from sluice_controller.validation.bodies import empty_body

_METRIC = in_path("metric", "the metric's name")
_INSISTING = query("force", OpenApiTypes.BOOL, "even while policies watch it, which then see silence", default=False)
_OK = {200: MeasuredSerializer}


def _shown(found: RegisteredCode, location: str = "") -> Response:
    return render_entry(
        MeasuredSerializer.render(metrics.uploaded_metric(found.upload, found.version)), found.version, location
    )


class MetricDataView(View):
    """The code of one uploaded metric."""

    parser_classes = (RawParser,)

    @operation("sluice:metrics:download", "download_metric", BYTES_OUT, _METRIC, errors=(404,))
    def get(self, request: Request, metric: str) -> StreamingHttpResponse:
        """Give the code of an uploaded metric.

        The code.
        """
        self.query(request)
        upload = code_metrics.find(self.backend, metric).upload
        return download(self.backend, request, upload)

    @operation(
        "sluice:metrics:upload",
        "upload_metric",
        {**_OK, HTTPStatus.CREATED.value: MeasuredSerializer},
        _METRIC,
        MAIN,
        WAIT,
        SHA256,
        IF_MATCH,
        LOCATION,
        errors=(404, 409, 422),
        description=NATIVE_WARNING + " It counts inside Swift's proxies, and must be quick.",
        takes=BYTES,
    )
    def put(self, request: Request, metric: str) -> Response:
        """Upload a workload metric, which is stopped then, or another revision of one.

        The metric as its code describes it.
        """
        given_query = self.query(request, "wait", "main")
        seconds = given_query.number("wait", 0.0, 0.0, LONGEST)
        code = read_code(request, given_query.text("main"))
        found, new = code_metrics.put_code(self.backend, metric, code, request.user.name, expected_version(request))
        wait_rolled_out(self.backend, found, seconds)
        return _shown(found, url_path("registry", "metrics", found.upload.keyword) if new else "")


class MetricStartView(View):
    """Measuring."""

    @operation("sluice:metrics:start", "start_metric", _OK, _METRIC, WAIT, IF_MATCH, errors=(404, 409), takes=None)
    def post(self, request: Request, metric: str) -> Response:
        """Have an uploaded metric measured; from then on sentences know it.

        The metric.
        """
        seconds = self.wait_seconds(request)
        empty_body(request.data)
        found = code_metrics.start(self.backend, metric, request.user.name, expected_version(request))
        wait_rolled_out(self.backend, found, seconds)
        return _shown(found)


class MetricStopView(View):
    """Not measuring."""

    @operation(
        "sluice:metrics:stop", "stop_metric", _OK, _METRIC, _INSISTING, WAIT, IF_MATCH, errors=(404, 409), takes=None
    )
    def post(self, request: Request, metric: str) -> Response:
        """Measure an uploaded metric no more.

        The metric.
        """
        given_query = self.query(request, "wait", "force")
        seconds, force = given_query.number("wait", 0.0, 0.0, LONGEST), given_query.flag("force")
        empty_body(request.data)
        found = code_metrics.stop(self.backend, metric, request.user.name, force, expected_version(request))
        wait_acknowledged(self.backend, found.epoch, seconds)
        return _shown(found)


class MetricRollbackView(View):
    """An earlier revision of a metric's code."""

    @operation(
        "sluice:metrics:rollback",
        "roll_back_metric",
        _OK,
        _METRIC,
        WAIT,
        IF_MATCH,
        errors=(404, 409),
        takes=RollbackSerializer,
        examples=ROLLBACKS,
    )
    def post(self, request: Request, metric: str) -> Response:
        """Give an uploaded metric the code of an earlier revision again, as a new revision.

        The metric with the code that it had.
        """
        seconds = self.wait_seconds(request)
        number = revisions.requested_revision(request.data)
        found = code_metrics.roll_back(self.backend, metric, number, request.user.name, expected_version(request))
        wait_rolled_out(self.backend, found, seconds)
        return _shown(found)


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
        return render_page(self, request, "instances", found, asdict)
