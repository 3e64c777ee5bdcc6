"""``/filters``: what can be used, and filters that are registered at run time."""

from __future__ import annotations

from http import HTTPStatus

from django.http import StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from sluice_controller import render, serializers, uploads
from sluice_controller.openapi import REQUEST_ID, WAIT, WITH_BODY, answers, header, query
from sluice_controller.parsers import RawParser
from sluice_controller.serializers_deploy import FilterPageSerializer
from sluice_controller.views.base import View
from sluice_controller.views.listing import LIST, page
from sluice_controller.views.policies import etag, expected_version
from sluice_controller.waiting import LONGEST, wait_acknowledged
from sluice_core.describe import FILTER
from sluice_core.errors import CallerError
from sluice_core.messages import Upload

ETAG = header("ETag", "the registration's version, for `If-Match`", 200, 201)
IF_MATCH = header("If-Match", "the `ETag` that it must still have")
SHA256 = header("X-Content-Sha256", "SHA-256 of the code in hexadecimal; another digest refuses it")


def _shown(upload: Upload, version: int, status: int = HTTPStatus.OK) -> Response:
    headers = {"ETag": etag(version)}
    if status == HTTPStatus.CREATED:
        headers["Location"] = f"/filters/{upload.keyword}"
    return Response(render.upload_data(upload), status, headers=headers)


def content_length(request: Request) -> int:
    """Bytes of a body that the view reads by itself.

    :raises CallerError: when it says no number
    """
    length = request.META.get("CONTENT_LENGTH") or "0"
    if not length.isdigit():
        raise CallerError(f"`Content-Length` is `{length}`, expected a number")
    return int(length)


class FiltersView(View):
    """What can be used now."""

    rules = {"get": "sluice:filters:list", "post": "sluice:filters:register"}

    @extend_schema(
        operation_id="list_filters",
        summary="List the filters that this cluster can run",
        parameters=LIST,
        responses=answers({200: FilterPageSerializer}, 400),
    )
    def get(self, request: Request) -> Response:
        """A page of installed and registered filters."""
        known = self.backend.catalogue.actions.items()
        usable = {word: one for word, one in known if one.available and one.kind == FILTER}
        return page(self, request, "filters", usable, render.action_data)

    @extend_schema(
        operation_id="register_filter",
        summary="Register a filter for an isolated environment; its code follows",
        parameters=[REQUEST_ID, ETAG, header("Location", "path of the registration", 201)],
        request=serializers.RegistrationSerializer,
        responses=answers({201: serializers.UploadSerializer}, 409, *WITH_BODY),
        examples=serializers.REGISTRATIONS,
    )
    def post(self, request: Request) -> Response:
        """The registration."""
        self.query(request)
        upload, version = uploads.register(self.backend, request.data, request.user.name)
        return _shown(upload, version, HTTPStatus.CREATED)


class FilterView(View):
    """One registered filter."""

    http_method_names = ("get", "put", "delete", "head")
    rules = {
        "get": "sluice:filters:show",
        "put": "sluice:filters:update",
        "delete": "sluice:filters:unregister",
    }

    @extend_schema(
        operation_id="show_filter",
        summary="Show a registered filter",
        parameters=[REQUEST_ID, ETAG],
        responses=answers({200: serializers.UploadSerializer}, 400, 404),
    )
    def get(self, request: Request, keyword: str) -> Response:
        """The registration."""
        self.query(request)
        return _shown(*uploads.find(self.backend, keyword))

    @extend_schema(
        operation_id="update_filter",
        summary="Change the description of a registered filter; what is not named stays",
        parameters=[IF_MATCH, REQUEST_ID, ETAG],
        request=serializers.RegistrationSerializer,
        responses=answers({200: serializers.UploadSerializer}, 404, 409, 412, *WITH_BODY),
    )
    def put(self, request: Request, keyword: str) -> Response:
        """The registration as it is now."""
        self.query(request)
        expected = expected_version(request)
        return _shown(*uploads.describe_anew(self.backend, keyword, request.data, request.user.name, expected))

    @extend_schema(
        operation_id="unregister_filter",
        summary="Forget a registered filter",
        parameters=[
            query("force", OpenApiTypes.BOOL, "even if stored objects need it to be read", default=False),
            IF_MATCH,
            REQUEST_ID,
        ],
        responses=answers({204: OpenApiResponse(description="forgotten")}, 400, 404, 409, 412),
    )
    def delete(self, request: Request, keyword: str) -> Response:
        """Nothing."""
        force = self.query(request, "force").flag("force")
        uploads.unregister(self.backend, keyword, request.user.name, force, expected_version(request))
        return Response(status=HTTPStatus.NO_CONTENT)


class FilterDataView(View):
    """The code of one registered filter."""

    http_method_names = ("get", "put", "head")
    parser_classes = (RawParser,)
    rules = {"get": "sluice:filters:download", "put": "sluice:filters:upload"}

    @extend_schema(
        operation_id="download_filter",
        summary="Give the code of a registered filter",
        parameters=[REQUEST_ID],
        responses=answers({(200, "application/octet-stream"): OpenApiTypes.BINARY}, 400, 404),
    )
    def get(self, request: Request, keyword: str) -> StreamingHttpResponse:
        """The code."""
        self.query(request)
        upload, code = uploads.get_code(self.backend, keyword)
        headers = {"Content-Length": str(upload.size), "X-Content-Sha256": upload.sha256}
        return StreamingHttpResponse(code, content_type="application/octet-stream", headers=headers)

    @extend_schema(
        operation_id="upload_filter",
        summary="Give a registered filter its code, or another revision of it",
        parameters=[WAIT, SHA256, IF_MATCH, REQUEST_ID, ETAG],
        request={"application/octet-stream": OpenApiTypes.BINARY},
        responses=answers({200: serializers.UploadSerializer}, 404, 409, 412, 422, *WITH_BODY),
    )
    def put(self, request: Request, keyword: str) -> Response:
        """The registration with its new code."""
        seconds = self.query(request, "wait").number("wait", 0.0, 0.0, LONGEST)
        upload, version = uploads.put_code(
            self.backend,
            keyword,
            request.stream or request._request,
            content_length(request),
            request.headers.get("X-Content-Sha256", "").lower(),
            request.user.name,
            expected_version(request),
        )
        wait_acknowledged(self.backend, self.backend.store.head().epoch, seconds)
        return _shown(upload, version)
