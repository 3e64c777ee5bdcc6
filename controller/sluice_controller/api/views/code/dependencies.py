"""``/filters/dependencies``: files that registered filters need beside their code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from django.http import StreamingHttpResponse
from rest_framework.request import Request
from rest_framework.response import Response

from sluice_controller.api.openapi import ETAG, FORCE, IF_MATCH, LIST, WAIT, in_path, operation
from sluice_controller.api.parsers import RawParser
from sluice_controller.api.serializers import filters as shapes
from sluice_controller.api.views.base import View
from sluice_controller.api.views.code.base import BYTES, BYTES_OUT, MEDIA_TYPE, SHA256, read_code
from sluice_controller.api.views.policies.deployments import TARGET
from sluice_controller.api.views.resources import CollectionView, EntryView, Resource, render_entry, render_page
from sluice_controller.policies import deployments
from sluice_controller.registry import dependencies
from sluice_controller.registry.dependencies import UsedDependency

_DEPENDENCIES: Final = Resource(
    dependencies,
    ("filters", "dependencies"),
    in_path("dependency", "the file's name"),
    "Dependencies by name.",
    shapes.DependencySerializer,
    shapes.NewDependencySerializer,
    shapes.DEPENDENCY,
)
_NAME: Final = _DEPENDENCIES.entry


@_DEPENDENCIES.declare(
    get=_DEPENDENCIES.list_operation(
        "sluice:dependencies:list", "list_dependencies", "List files that registered filters may need"
    ),
    post=_DEPENDENCIES.create_operation(
        "sluice:dependencies:create", "create_dependency", "Describe a file; its data follow"
    ),
)
class DependenciesView(CollectionView):
    """All dependencies."""


@_DEPENDENCIES.declare(
    get=_DEPENDENCIES.show_operation(
        "sluice:dependencies:show", "show_dependency", "Show a file and the filters that use it"
    ),
    put=_DEPENDENCIES.update_operation("sluice:dependencies:update", "update_dependency", "Describe a file anew"),
    delete=_DEPENDENCIES.delete_operation("sluice:dependencies:delete", "delete_dependency", "Forget a file", FORCE),
)
class DependencyView(EntryView):
    """One dependency."""


class DependencyDataView(View):
    """The data of one dependency."""

    parser_classes = (RawParser,)

    @operation("sluice:dependencies:download", "download_dependency", BYTES_OUT, _NAME, errors=(404,))
    def get(self, request: Request, dependency: str) -> StreamingHttpResponse:
        """Give the data of a file.

        The data.
        """
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
        data, by = read_code(request), request.user.name
        one = dependencies.put_data(self.backend, dependency, data.source, data.size, data.announced, by, **self.given)
        self.wait_acknowledged(self.backend.store.head().epoch)
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
        self.authorize_target(request, where)
        found = dependencies.deployed(self.backend, where)
        known = {name: {"name": name, "filters": list(filters)} for name, filters in found.items()}
        return render_page(self.given, "dependencies", known, dict, target=where.name)


class _AttachmentView(View):
    """A file and the filters at one target."""

    def _attach(self, request: Request, change: Callable[..., UsedDependency], target: str, name: str) -> Response:
        where = deployments.target_of(target, self.backend.catalogue)
        one = change(self.backend, where, name, request.data, request.user.name)
        self.wait_acknowledged(self.backend.store.head().epoch)
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
