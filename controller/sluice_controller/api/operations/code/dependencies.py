"""``/filters/dependencies``: files that registered filters need besides their code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from django.http import StreamingHttpResponse
from rest_framework.request import Request
from rest_framework.response import Response

from sluice_controller.api.openapi import ETAG, FORCE, IF_MATCH, LIST, WAIT, in_path, operation
from sluice_controller.api.operations.code.base import BYTES, BYTES_OUT, MEDIA_TYPE, SHA256, read_code
from sluice_controller.api.operations.policies.deployments import TARGET
from sluice_controller.api.parsers import RawParser
from sluice_controller.api.resources import Declare, Resource, render_entry, render_page
from sluice_controller.api.serializers import filters as shapes
from sluice_controller.api.view import View
from sluice_controller.identity.rules import ADMIN, READER, READS_OWN, THING, Rule
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


_DEPENDENCIES.declare_list(
    Rule("sluice:dependencies:list", READER, "list dependencies"),
    "list_dependencies",
    "List files that registered filters may need",
)
_DEPENDENCIES.declare_create(
    Rule("sluice:dependencies:create", ADMIN, "describe a dependency"),
    "create_dependency",
    "Describe a file; its data are uploaded afterwards",
)


_DEPENDENCIES.declare_show(
    Rule("sluice:dependencies:show", READER, "show one"), "show_dependency", "Show a file and the filters that use it"
)
_DEPENDENCIES.declare_update(
    Rule("sluice:dependencies:update", ADMIN, "describe one anew"), "update_dependency", "Describe a file anew"
)
_DEPENDENCIES.declare_delete(
    Rule("sluice:dependencies:delete", ADMIN, "delete one"), "delete_dependency", "Delete a file", FORCE
)


class DependencyDataView(View):
    """The data of one dependency."""

    parser_classes = (RawParser,)


@operation(
    "GET /filters/dependencies/<name:dependency>/data",
    Rule("sluice:dependencies:download", ADMIN, "download data"),
    BYTES_OUT,
    _NAME,
)
def download_dependency(view: DependencyDataView, request: Request, dependency: str) -> StreamingHttpResponse:
    """Download the data of a file.

    The data.
    """
    one, data = dependencies.get_data(view.backend, dependency)
    headers = {"Content-Length": str(one.size), "X-Content-Sha256": one.sha256}
    return StreamingHttpResponse(data, content_type=MEDIA_TYPE, headers=headers)


@operation(
    "PUT /filters/dependencies/<name:dependency>/data",
    Rule("sluice:dependencies:upload", ADMIN, "upload data"),
    shapes.DependencySerializer,
    _NAME,
    WAIT,
    SHA256,
    IF_MATCH,
    errors=(404, 409, 422),
    takes=BYTES,
)
def upload_dependency(view: DependencyDataView, request: Request, dependency: str) -> Response:
    """Upload the data of a file; filters that use it get them with the same change.

    The dependency with its new data.
    """
    data, by = read_code(request), request.user.name
    one = dependencies.put_data(view.backend, dependency, data.source, data.size, data.announced, by, **view.given)
    view.wait_acknowledged(view.backend.store.head().epoch)
    return render_entry(shapes.DependencySerializer.render(one), one.version)


@operation(
    "GET /filters/dependencies/<target:target>/deploy",
    Rule("sluice:deployments:list", READS_OWN, "list the deployments at a target", about=THING),
    shapes.DeployedDependencyPageSerializer,
    TARGET,
    *LIST,
    errors=(),
)
def list_deployed_dependencies(view: View, request: Request, target: str) -> Response:
    """List the files that the filters deployed at a target use.

    A page of dependencies.
    """
    where = deployments.target_of(target, view.backend.catalogue)
    view.authorize_target(request, where)
    found = dependencies.deployed(view.backend, where)
    known = {name: {"name": name, "filters": list(filters)} for name, filters in found.items()}
    return render_page(view.given, "dependencies", known, dict, target=where.name)


def _attach(view: View, request: Request, change: Callable[..., UsedDependency], target: str, name: str) -> Response:
    where = deployments.target_of(target, view.backend.catalogue)
    one = change(view.backend, where, name, request.data, request.user.name)
    view.wait_acknowledged(view.backend.store.head().epoch)
    return render_entry(shapes.DependencySerializer.render(one), one.version)


def _attachment(call: str, rule: Rule) -> Declare:
    shape, takes = shapes.DependencySerializer, shapes.AttachmentSerializer
    return operation(call, rule, shape, TARGET, _NAME, WAIT, ETAG, takes=takes)


@_attachment(
    "PUT /filters/dependencies/<target:target>/deploy/<name:dependency>",
    Rule("sluice:dependencies:deploy", ADMIN, "attach a dependency to filters"),
)
def deploy_dependency(view: View, request: Request, target: str, dependency: str) -> Response:
    """Attach a file to the named filters; by default to the registered filters that are deployed at the target.

    The dependency and all filters that use it.
    """
    return _attach(view, request, dependencies.deploy, target, dependency)


@_attachment(
    "PUT /filters/dependencies/<target:target>/undeploy/<name:dependency>",
    Rule("sluice:dependencies:undeploy", ADMIN, "detach a dependency from filters"),
)
def undeploy_dependency(view: View, request: Request, target: str, dependency: str) -> Response:
    """Detach a file from the named filters; by default from those that are deployed at the target.

    The dependency and the filters that still use it.
    """
    return _attach(view, request, dependencies.undeploy, target, dependency)
