"""``/registry/metrics/{NAME}/…``: metrics whose code is uploaded."""

from __future__ import annotations

from http import HTTPStatus

from django.http import StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from sluice_controller.api.openapi import REQUEST_ID, WAIT, WITH_BODY, answers, query
from sluice_controller.api.parsers import RawParser
from sluice_controller.api.serializers.controllers import MetricInstancesSerializer
from sluice_controller.api.serializers.registry import MeasuredSerializer
from sluice_controller.api.serializers.uploads import ROLLBACKS, RollbackSerializer
from sluice_controller.api.views.base import View, expected_version
from sluice_controller.api.views.code.code import BYTES, BYTES_OUT, MAIN, NATIVE_WARNING, SHA256, download, given
from sluice_controller.api.views.listing import ETAG, IF_MATCH, LIST, LOCATION, in_path, page, shown, url
from sluice_controller.catalog.waiting import LONGEST, wait_acknowledged
from sluice_controller.code import metrics as code_metrics
from sluice_controller.code import revisions
from sluice_controller.code.revisions import RegisteredCode
from sluice_controller.code.rollout import wait_rolled_out
from sluice_controller.registry import metrics
from sluice_controller.validation.parameters import empty_body

_METRIC = in_path("metric", "the metric's name")
_INSISTING = query("force", OpenApiTypes.BOOL, "even while policies watch it, which then see silence", default=False)
_OK = {200: MeasuredSerializer}


def _shown(found: RegisteredCode, location: str = "") -> Response:
    return shown(MeasuredSerializer.show(metrics.uploaded_metric(found.upload, found.version)), found.version, location)


class MetricDataView(View):
    """The code of one uploaded metric."""

    http_method_names = ("get", "put", "head")
    parser_classes = (RawParser,)
    rules = {"get": "sluice:metrics:download", "put": "sluice:metrics:upload"}

    @extend_schema(
        operation_id="download_metric",
        summary="Give the code of an uploaded metric",
        parameters=[_METRIC, REQUEST_ID],
        responses=BYTES_OUT,
    )
    def get(self, request: Request, metric: str) -> StreamingHttpResponse:
        """The code."""
        self.query(request)
        upload = code_metrics.find(self.backend, metric).upload
        return download(self.backend, request, upload)

    @extend_schema(
        operation_id="upload_metric",
        summary="Upload a workload metric, which is stopped then, or another revision of one",
        description=f"{NATIVE_WARNING} It counts inside Swift's proxies, and must be quick.",
        parameters=[_METRIC, MAIN, WAIT, SHA256, IF_MATCH, REQUEST_ID, ETAG, LOCATION],
        request=BYTES,
        responses=answers({**_OK, HTTPStatus.CREATED.value: MeasuredSerializer}, 404, 409, 412, 422, *WITH_BODY),
    )
    def put(self, request: Request, metric: str) -> Response:
        """The metric as its code describes it."""
        given_query = self.query(request, "wait", "main")
        seconds = given_query.number("wait", 0.0, 0.0, LONGEST)
        code = given(request, given_query.text("main"))
        found, new = code_metrics.put_code(self.backend, metric, code, request.user.name, expected_version(request))
        wait_rolled_out(self.backend, found, seconds)
        return _shown(found, url("registry", "metrics", found.upload.keyword) if new else "")


class MetricStartView(View):
    """Measuring."""

    http_method_names = ("post",)
    rules = {"post": "sluice:metrics:start"}

    @extend_schema(
        operation_id="start_metric",
        summary="Have an uploaded metric measured; from then on sentences know it",
        parameters=[_METRIC, WAIT, IF_MATCH, REQUEST_ID, ETAG],
        request=None,
        responses=answers(_OK, 404, 409, 412, *WITH_BODY),
    )
    def post(self, request: Request, metric: str) -> Response:
        """The metric."""
        seconds = self.query(request, "wait").number("wait", 0.0, 0.0, LONGEST)
        empty_body(request.data)
        found = code_metrics.start(self.backend, metric, request.user.name, expected_version(request))
        wait_rolled_out(self.backend, found, seconds)
        return _shown(found)


class MetricStopView(View):
    """Not measuring."""

    http_method_names = ("post",)
    rules = {"post": "sluice:metrics:stop"}

    @extend_schema(
        operation_id="stop_metric",
        summary="Measure an uploaded metric no more",
        parameters=[_METRIC, _INSISTING, WAIT, IF_MATCH, REQUEST_ID, ETAG],
        request=None,
        responses=answers(_OK, 404, 409, 412, *WITH_BODY),
    )
    def post(self, request: Request, metric: str) -> Response:
        """The metric."""
        given_query = self.query(request, "wait", "force")
        seconds, force = given_query.number("wait", 0.0, 0.0, LONGEST), given_query.flag("force")
        empty_body(request.data)
        found = code_metrics.stop(self.backend, metric, request.user.name, force, expected_version(request))
        wait_acknowledged(self.backend, found.epoch, seconds)
        return _shown(found)


class MetricRollbackView(View):
    """An earlier revision of a metric's code."""

    http_method_names = ("post",)
    rules = {"post": "sluice:metrics:rollback"}

    @extend_schema(
        operation_id="roll_back_metric",
        summary="Give an uploaded metric the code of an earlier revision again, as a new revision",
        parameters=[_METRIC, WAIT, IF_MATCH, REQUEST_ID, ETAG],
        request=RollbackSerializer,
        responses=answers(_OK, 404, 409, 412, *WITH_BODY),
        examples=ROLLBACKS,
    )
    def post(self, request: Request, metric: str) -> Response:
        """The metric with the code that it had."""
        seconds = self.query(request, "wait").number("wait", 0.0, 0.0, LONGEST)
        number = revisions.requested_revision(request.data)
        found = code_metrics.roll_back(self.backend, metric, number, request.user.name, expected_version(request))
        wait_rolled_out(self.backend, found, seconds)
        return _shown(found)


class MetricInstancesView(View):
    """Where a metric is measured."""

    rules = {"get": "sluice:metrics:instances"}
    http_method_names = ("get", "head")

    @extend_schema(
        operation_id="list_metric_instances",
        summary="List the nodes with the revision of an uploaded metric that each can run",
        parameters=[_METRIC, *LIST],
        responses=answers({200: MetricInstancesSerializer}, 400, 404),
    )
    def get(self, request: Request, metric: str) -> Response:
        """A page of nodes."""
        found = {one.node: one for one in code_metrics.instances(self.backend, metric)}
        return page(self, request, "instances", found, lambda one: one.to_data())
