"""``/filters/dependencies``: files that registered filters need beside their code."""

from __future__ import annotations

from django.conf import settings
from django.http import StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from sluice_controller.api.openapi import REQUEST_ID, WAIT, WITH_BODY, answers
from sluice_controller.api.parsers import RawParser
from sluice_controller.api.permissions import authorize, target_of
from sluice_controller.api.serializers.filters import (
    DEPENDENCY,
    AttachmentSerializer,
    DependencyPageSerializer,
    DependencySerializer,
    DeployedDependencyPageSerializer,
    NewDependencySerializer,
)
from sluice_controller.api.views.base import View, expected_version
from sluice_controller.api.views.code.code import SHA256, content_length
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
from sluice_controller.api.views.policies.deployments import TARGET
from sluice_controller.catalog.waiting import LONGEST, wait_acknowledged
from sluice_controller.policies import deployments
from sluice_controller.registry import dependencies
from sluice_dsl.plan import Plan

_NAME = in_path("dependency", "the file's name")


class DependenciesView(View):
    """All dependencies."""

    rules = {"get": "sluice:dependencies:list", "post": "sluice:dependencies:create"}

    @extend_schema(
        operation_id="list_dependencies",
        summary="List files that registered filters may need",
        parameters=LIST,
        responses=answers({200: DependencyPageSerializer}, 400),
    )
    def get(self, request: Request) -> Response:
        """A page of dependencies."""
        return page(self, request, "dependencies", dependencies.list_all(self.backend), DependencySerializer.show)

    @extend_schema(
        operation_id="create_dependency",
        summary="Describe a file; its data follow",
        parameters=[REQUEST_ID, ETAG, LOCATION],
        request=NewDependencySerializer,
        responses=answers({201: DependencySerializer}, 409, *WITH_BODY),
        examples=DEPENDENCY,
    )
    def post(self, request: Request) -> Response:
        """The new dependency."""
        self.query(request)
        one = dependencies.create(self.backend, request.data, request.user.name)
        where = url("filters", "dependencies", one.found.record.name)
        return shown(DependencySerializer.show(one), one.found.version, where)


class DependencyView(View):
    """One dependency."""

    http_method_names = ("get", "put", "delete", "head")
    rules = {
        "get": "sluice:dependencies:show",
        "put": "sluice:dependencies:update",
        "delete": "sluice:dependencies:delete",
    }

    @extend_schema(
        operation_id="show_dependency",
        summary="Show a file and the filters that use it",
        parameters=[_NAME, REQUEST_ID, ETAG],
        responses=answers({200: DependencySerializer}, 400, 404),
    )
    def get(self, request: Request, dependency: str) -> Response:
        """The dependency."""
        self.query(request)
        one = dependencies.find(self.backend, dependency)
        return shown(DependencySerializer.show(one), one.found.version)

    @extend_schema(
        operation_id="update_dependency",
        summary="Describe a file anew",
        parameters=[_NAME, IF_MATCH, REQUEST_ID, ETAG],
        request=NewDependencySerializer,
        responses=answers({200: DependencySerializer}, 404, 409, 412, *WITH_BODY),
    )
    def put(self, request: Request, dependency: str) -> Response:
        """The dependency as it is now."""
        self.query(request)
        expected = expected_version(request)
        one = dependencies.update(self.backend, dependency, request.data, request.user.name, expected)
        return shown(DependencySerializer.show(one), one.found.version)

    @extend_schema(
        operation_id="delete_dependency",
        summary="Forget a file",
        parameters=[_NAME, FORCE, IF_MATCH, REQUEST_ID],
        responses=answers(GONE, 400, 404, 409, 412),
    )
    def delete(self, request: Request, dependency: str) -> Response:
        """204."""
        force = self.query(request, "force").flag("force")
        dependencies.delete(self.backend, dependency, request.user.name, force, expected_version(request))
        return gone()


class DependencyDataView(View):
    """The data of one dependency."""

    http_method_names = ("get", "put", "head")
    parser_classes = (RawParser,)
    rules = {"get": "sluice:dependencies:download", "put": "sluice:dependencies:upload"}

    @extend_schema(
        operation_id="download_dependency",
        summary="Give the data of a file",
        parameters=[_NAME, REQUEST_ID],
        responses=answers({(200, "application/octet-stream"): OpenApiTypes.BINARY}, 400, 404),
    )
    def get(self, request: Request, dependency: str) -> StreamingHttpResponse:
        """The data."""
        self.query(request)
        one, data = dependencies.get_data(self.backend, dependency)
        headers = {"Content-Length": str(one.size), "X-Content-Sha256": one.sha256}
        return StreamingHttpResponse(data, content_type="application/octet-stream", headers=headers)

    @extend_schema(
        operation_id="upload_dependency",
        summary="Give a file its data, or other ones; filters that use it have them with the same change",
        parameters=[_NAME, WAIT, SHA256, IF_MATCH, REQUEST_ID, ETAG],
        request={"application/octet-stream": OpenApiTypes.BINARY},
        responses=answers({200: DependencySerializer}, 404, 409, 412, 422, *WITH_BODY),
    )
    def put(self, request: Request, dependency: str) -> Response:
        """The dependency with its new data."""
        seconds = self.query(request, "wait").number("wait", 0.0, 0.0, LONGEST)
        one = dependencies.put_data(
            self.backend,
            dependency,
            request.stream or request._request,
            content_length(request),
            request.headers.get("X-Content-Sha256", "").lower(),
            request.user.name,
            expected_version(request),
        )
        wait_acknowledged(self.backend, self.backend.store.head().epoch, seconds)
        return shown(DependencySerializer.show(one), one.found.version)


class DeployedDependenciesView(View):
    """The files that filters at one target use."""

    http_method_names = ("get", "head")
    rules = {"get": "sluice:deployments:list"}

    @extend_schema(
        operation_id="list_deployed_dependencies",
        summary="List the files that filters deployed at a target use",
        parameters=[TARGET, *LIST],
        responses=answers({200: DeployedDependencyPageSerializer}, 400),
    )
    def get(self, request: Request, target: str) -> Response:
        """A page of dependencies."""
        where = deployments.target_of(target, self.backend.catalogue)
        authorize(request, self.rules["get"], target_of(Plan(where, ()), settings.SLUICE, {}))
        found = dependencies.deployed(self.backend, where)
        known = {name: {"name": name, "filters": list(filters)} for name, filters in found.items()}
        return page(self, request, "dependencies", known, dict, target=where.name)


class DeployDependencyView(View):
    """One file for the filters at one target."""

    http_method_names = ("put",)
    rules = {"put": "sluice:dependencies:deploy"}

    @extend_schema(
        operation_id="deploy_dependency",
        summary="Attach a file to the named filters, or to those registered ones that are deployed at the target",
        parameters=[TARGET, _NAME, WAIT, REQUEST_ID, ETAG],
        request=AttachmentSerializer,
        responses=answers({200: DependencySerializer}, 404, 409, *WITH_BODY),
    )
    def put(self, request: Request, target: str, dependency: str) -> Response:
        """The dependency and all filters that use it."""
        seconds = self.query(request, "wait").number("wait", 0.0, 0.0, LONGEST)
        where = deployments.target_of(target, self.backend.catalogue)
        one = dependencies.deploy(self.backend, where, dependency, request.data, request.user.name)
        wait_acknowledged(self.backend, self.backend.store.head().epoch, seconds)
        return shown(DependencySerializer.show(one), one.found.version)


class UndeployDependencyView(View):
    """One file, detached from the filters at one target."""

    http_method_names = ("put",)
    rules = {"put": "sluice:dependencies:undeploy"}

    @extend_schema(
        operation_id="undeploy_dependency",
        summary="Detach a file from the named filters, or from those that are deployed at the target",
        parameters=[TARGET, _NAME, WAIT, REQUEST_ID, ETAG],
        request=AttachmentSerializer,
        responses=answers({200: DependencySerializer}, 404, 409, *WITH_BODY),
    )
    def put(self, request: Request, target: str, dependency: str) -> Response:
        """The dependency and the filters that still use it."""
        seconds = self.query(request, "wait").number("wait", 0.0, 0.0, LONGEST)
        where = deployments.target_of(target, self.backend.catalogue)
        one = dependencies.undeploy(self.backend, where, dependency, request.data, request.user.name)
        wait_acknowledged(self.backend, self.backend.store.head().epoch, seconds)
        return shown(DependencySerializer.show(one), one.found.version)
