"""``/filters/dependencies``: files that registered filters need beside their code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.http import StreamingHttpResponse
from rest_framework.request import Request
from rest_framework.response import Response

from sluice_controller.api.openapi import (
    ETAG,
    FORCE,
    IF_MATCH,
    LIST,
    WAIT,
    create_operation,
    delete_operation,
    in_path,
    list_operation,
    operation,
    operations,
    show_operation,
    update_operation,
)
from sluice_controller.api.parsers import RawParser
from sluice_controller.api.permissions import authorize, plan_target
from sluice_controller.api.serializers import filters as shapes
from sluice_controller.api.views.base import View, expected_version
from sluice_controller.api.views.code.transfer import BYTES, BYTES_OUT, MEDIA_TYPE, SHA256, content_length
from sluice_controller.api.views.policies.deployments import TARGET
from sluice_controller.api.views.resources import CollectionView, EntryView, render_entry, render_page
from sluice_controller.catalog.waiting import wait_acknowledged
from sluice_controller.policies import deployments
from sluice_controller.registry import dependencies
from sluice_controller.registry.dependencies import UsedDependency
from sluice_dsl.plan import Plan

_NAME = in_path("dependency", "the file's name")


@operations(
    get=list_operation(
        "sluice:dependencies:list",
        "list_dependencies",
        "List files that registered filters may need",
        shapes.DependencyPageSerializer,
    ),
    post=create_operation(
        "sluice:dependencies:create",
        "create_dependency",
        "Describe a file; its data follow",
        shapes.DependencySerializer,
        shapes.NewDependencySerializer,
        shapes.DEPENDENCY,
    ),
)
class DependenciesView(CollectionView):
    """All dependencies."""

    service, serializer, path = dependencies, shapes.DependencySerializer, ("filters", "dependencies")


@operations(
    get=show_operation(
        "sluice:dependencies:show",
        "show_dependency",
        "Show a file and the filters that use it",
        shapes.DependencySerializer,
        _NAME,
    ),
    put=update_operation(
        "sluice:dependencies:update",
        "update_dependency",
        "Describe a file anew",
        shapes.DependencySerializer,
        shapes.NewDependencySerializer,
        _NAME,
    ),
    delete=delete_operation("sluice:dependencies:delete", "delete_dependency", "Forget a file", _NAME, FORCE),
)
class DependencyView(EntryView):
    """One dependency."""

    service, serializer = dependencies, shapes.DependencySerializer


class DependencyDataView(View):
    """The data of one dependency."""

    parser_classes = (RawParser,)

    @operation(
        "sluice:dependencies:download",
        "download_dependency",
        BYTES_OUT,
        _NAME,
        errors=(404,),
    )
    def get(self, request: Request, dependency: str) -> StreamingHttpResponse:
        """Give the data of a file.

        The data.
        """
        self.query(request)
        one, data = dependencies.get_data(self.backend, dependency)
        headers = {"Content-Length": str(one.size), "X-Content-Sha256": one.sha256}
        return StreamingHttpResponse(data, content_type=MEDIA_TYPE, headers=headers)

    @operation(
        "sluice:dependencies:upload",
        "upload_dependency",
        shapes.DependencySerializer,
        _NAME,
        WAIT,
        SHA256,
        IF_MATCH,
        errors=(404, 409, 422),
        takes=BYTES,
    )
    def put(self, request: Request, dependency: str) -> Response:
        """Give a file its data, or other ones; filters that use it have them with the same change.

        The dependency with its new data.
        """
        seconds = self.wait_seconds(request)
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
        return render_entry(shapes.DependencySerializer.render(one), one.version)


class DeployedDependenciesView(View):
    """The files that filters at one target use."""

    @operation(
        "sluice:deployments:list", "list_deployed_dependencies", shapes.DeployedDependencyPageSerializer, TARGET, *LIST
    )
    def get(self, request: Request, target: str) -> Response:
        """List the files that filters deployed at a target use.

        A page of dependencies.
        """
        where = deployments.target_of(target, self.backend.catalogue)
        authorize(request, self.rules["get"], plan_target(Plan(where, ()), settings.SLUICE, {}))
        found = dependencies.deployed(self.backend, where)
        known = {name: {"name": name, "filters": list(filters)} for name, filters in found.items()}
        return render_page(self, request, "dependencies", known, dict, target=where.name)


class _AttachmentView(View):
    """A file and the filters at one target."""

    def _attach(self, request: Request, change: Callable[..., UsedDependency], target: str, name: str) -> Response:
        seconds = self.wait_seconds(request)
        where = deployments.target_of(target, self.backend.catalogue)
        one = change(self.backend, where, name, request.data, request.user.name)
        wait_acknowledged(self.backend, self.backend.store.head().epoch, seconds)
        return render_entry(shapes.DependencySerializer.render(one), one.version)


def _attachment(rule: str, name: str) -> Callable[[Any], Any]:
    shape, takes = shapes.DependencySerializer, shapes.AttachmentSerializer
    return operation(rule, name, shape, TARGET, _NAME, WAIT, ETAG, errors=(404, 409), takes=takes)


class DeployDependencyView(_AttachmentView):
    """One file for the filters at one target."""

    @_attachment("sluice:dependencies:deploy", "deploy_dependency")
    def put(self, request: Request, target: str, dependency: str) -> Response:
        """Attach a file to the named filters, or to those registered ones that are deployed at the target.

        The dependency and all filters that use it.
        """
        return self._attach(request, dependencies.deploy, target, dependency)


class UndeployDependencyView(_AttachmentView):
    """One file, detached from the filters at one target."""

    @_attachment("sluice:dependencies:undeploy", "undeploy_dependency")
    def put(self, request: Request, target: str, dependency: str) -> Response:
        """Detach a file from the named filters, or from those that are deployed at the target.

        The dependency and the filters that still use it.
        """
        return self._attach(request, dependencies.undeploy, target, dependency)
