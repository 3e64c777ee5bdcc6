"""``/filters``: the filters of this cluster, and filters that are registered at run time.

A filter that is installed with the software of the nodes is shown like a registered one.  Requests that would change
it are refused with 405 before the method of the view is called (:meth:`RegistrationView.initial`).
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from drf_spectacular.utils import OpenApiResponse
from rest_framework.request import Request
from rest_framework.response import Response

from sluice_controller.api.openapi import ETAG, IF_MATCH, LIST, header, operation, query_flag
from sluice_controller.api.operations.code import base
from sluice_controller.api.permissions import authorize
from sluice_controller.api.resources import no_content, render_entry, render_page
from sluice_controller.api.serializers import code as shapes
from sluice_controller.api.serializers.filters import UsableFilterPageSerializer, UsableFilterSerializer
from sluice_controller.catalog.nodes import Cluster, cluster_now
from sluice_controller.catalog.policy_cache import CacheContents
from sluice_controller.code import filters
from sluice_controller.code.revisions import IncomingCode, RegisteredCode
from sluice_controller.code.rollout import rollout, rollout_now
from sluice_controller.config import Config
from sluice_controller.errors import Unchangeable
from sluice_controller.identity.rules import ADMIN, READER, Rule
from sluice_core.describe import TRIED, ActionInfo
from sluice_core.messages.uploads import FILTER_CODE, Upload

#: Checked besides the rule of the call if the code is native, or filters volumes.
_NATIVE: Final = Rule(
    base.NATIVE_RULES[FILTER_CODE],
    ADMIN,
    "change a filter that runs with all rights of Swift's processes, or filters volumes; checked besides the rule of "
    "the call",
)
_URL: Final = "/filters/<str:keyword>"
#: The methods that work for an installed filter.
_SAFE: Final = ("GET", "HEAD")
_ALLOW: Final = header("Allow", "the methods that work: those of an installed filter change nothing", 405)


class RegistrationView(base.CodeView):
    """The common part of the views of registrations."""

    service, path = filters, ("filters",)
    #: the installed filter in the path, None for any other filter
    installed: Upload | None = None

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Called by REST framework before the method.

        :raises Unchangeable: when the method would change an installed filter
        """
        super().initial(request, *args, **kwargs)
        keyword = kwargs.get("keyword", "")
        self.installed = filters.find_installed(self.backend, keyword) if keyword else None
        if self.installed is None or request.method == "OPTIONS":
            return
        safe = [method for method in self.allowed_methods if method in _SAFE]
        self.headers["Allow"] = ", ".join(safe)
        if request.method not in safe:
            raise Unchangeable(
                f"filter `{keyword}` is installed with the software of the nodes: it cannot be changed or deleted "
                "here, `POST /filters` registers another"
            )

    def render(self, registered: RegisteredCode) -> dict[str, Any]:
        """The registration, with the roll-out of its code."""
        rollout = shapes.RolloutSerializer.render(rollout_now(self.backend, registered))
        return shapes.UploadSerializer.render(registered.upload, installed=False, rollout=rollout)

    def authorize_native(self, request: Request, name: str) -> None:
        """Refuse a change of a native filter, or of one of volumes, by a caller that may not upload native code."""
        if filters.find(self.backend, name).upload.environment in TRIED:
            authorize(request, _NATIVE.name, {})


@operation("GET /filters", Rule("sluice:filters:list", READER, "list filters"), UsableFilterPageSerializer, *LIST)
def list_filters(view: RegistrationView, request: Request) -> Response:
    """List the filters that this cluster can run.

    A page of installed and registered filters.
    """
    usable = filters.list_usable(view.backend.catalogue)
    show = partial(_usable, view.backend.policy_cache.contents(), cluster_now(view.backend), view.backend.config)
    return render_page(view.given, "filters", usable, show)


@operation(
    "POST /filters",
    Rule("sluice:filters:register", ADMIN, "register a filter"),
    {201: shapes.UploadSerializer},
    ETAG,
    header("Location", "path of the registration", 201),
    takes=shapes.RegistrationSerializer,
    examples=shapes.REGISTRATIONS,
    further=(_NATIVE,),
)
def register_filter(view: RegistrationView, request: Request) -> Response:
    """Register a filter; its code is uploaded afterwards.

    A filter for an isolated environment is described by this request. A `native` one is described by its code:
    `reverse`, `capabilities`, `parameters` and `help` are refused. **Native code is for administrators
    only: it runs with all rights of Swift's processes.** So is code for `nbdkit`, shared objects that filter
    volumes: it is described by this request, and the nodes that use volumes check and confine it.
    """
    if filters.is_administrators(request.data):
        authorize(request, _NATIVE.name, {})
    return view.respond(filters.register(view.backend, request.data, request.user.name), new=True)


def _usable(contents: CacheContents, cluster: Cluster, config: Config, info: ActionInfo) -> dict[str, Any]:
    """A filter of the list; a registered one with the nodes that can run its newest revision."""
    word, upload = info.keyword, contents.uploads.get(info.keyword)
    mine = word in config.self_service_words or (upload is not None and upload.self_service)
    more: dict[str, Any] = {
        "installed": upload is None,
        "self_service": mine,
        "revision": info.version,
        "rollout": None,
    }
    if upload is not None:
        found = RegisteredCode(upload, 0, contents.upload_epochs.get(word, 0))
        more |= {"revision": upload.revision, "rollout": shapes.RolloutSerializer.render(rollout(found, cluster))}
    return UsableFilterSerializer.render(info, **more)


@operation(
    "GET /filters/<str:keyword>",
    Rule("sluice:filters:show", READER, "show a registered filter"),
    shapes.UploadSerializer,
    ETAG,
)
def show_filter(view: RegistrationView, request: Request, keyword: str) -> Response:
    """Show a filter; a registered one with its revisions, and with the roll-out of the newest one.

    The registration. An installed filter is shown without code, revisions and roll-out.
    """
    if view.installed is not None:
        return render_entry(shapes.UploadSerializer.render(view.installed, installed=True, rollout=None), 0)
    return view.respond(filters.find(view.backend, keyword))


@operation(
    "PUT /filters/<str:keyword>",
    Rule("sluice:filters:update", ADMIN, "change the description of a filter"),
    shapes.UploadSerializer,
    IF_MATCH,
    _ALLOW,
    errors=(404, 405, 409),
    takes=shapes.RegistrationSerializer,
    further=(_NATIVE,),
)
def update_filter(view: RegistrationView, request: Request, keyword: str) -> Response:
    """Change the description of a registered filter; fields that are not given stay.

    The changed registration.
    """
    view.authorize_native(request, keyword)
    if filters.is_administrators(request.data):
        authorize(request, _NATIVE.name, {})
    by = request.user.name
    return view.respond(filters.update_description(view.backend, keyword, request.data, by, **view.given))


@operation(
    "DELETE /filters/<str:keyword>",
    Rule("sluice:filters:unregister", ADMIN, "delete a filter"),
    {204: OpenApiResponse(description="forgotten")},
    query_flag("force", "even if stored objects cannot be read without it"),
    IF_MATCH,
    _ALLOW,
    errors=(404, 405, 409),
)
def unregister_filter(view: RegistrationView, request: Request, keyword: str) -> Response:
    """Delete a registered filter.

    The answer has no body.
    """
    filters.unregister(view.backend, keyword, request.user.name, **view.given)
    return no_content()


class FilterDataView(RegistrationView, base.CodeDataView):
    """The code of one registered filter."""

    def put_code(self, name: str, code: IncomingCode, by: str, expected: int | None) -> tuple[RegisteredCode, bool]:
        """Store the code; a filter is registered before its code is uploaded, so it is never new."""
        return filters.put_code(self.backend, name, code, by, expected), False


base.declare_download(
    FilterDataView,
    _URL,
    Rule("sluice:filters:download", ADMIN, "download a filter's code"),
    name="download_filter",
    summary="Download the code of a registered filter",
)
base.declare_upload(
    FilterDataView,
    _URL,
    Rule("sluice:filters:upload", ADMIN, "upload a filter's code"),
    shapes.UploadSerializer,
    _ALLOW,
    name="upload_filter",
    summary="Upload the code of a registered filter, or another revision of it",
    description="A revision of a reversible filter must be able to read what earlier ones have stored. With `wait` the "
    "answer comes when each live node can run the code, or has reported why not.",
    errors=(405,),
    further=(_NATIVE,),
)
base.declare_rollback(
    RegistrationView,
    _URL,
    Rule("sluice:filters:rollback", ADMIN, "roll back a filter to earlier code"),
    shapes.UploadSerializer,
    _ALLOW,
    name="roll_back_filter",
    summary="Roll back a filter to the code of an earlier revision, as a new revision",
    description="Native code restores its own description; the description of an isolated filter stays as it is. "
    "An earlier revision of a native filter must be able to read what newer ones have stored.",
    errors=(405,),
    further=(_NATIVE,),
)
