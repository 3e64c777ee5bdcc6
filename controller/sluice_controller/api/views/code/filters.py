"""``/filters``: what can be used, and filters that are registered at run time."""

from __future__ import annotations

from django.http import StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse
from rest_framework.request import Request
from rest_framework.response import Response

from sluice_controller.api.openapi import (
    ETAG,
    IF_MATCH,
    LIST,
    WAIT,
    header,
    operation,
    query,
)
from sluice_controller.api.parsers import RawParser
from sluice_controller.api.permissions import authorize
from sluice_controller.api.serializers import uploads as shapes
from sluice_controller.api.serializers.filters import FilterPageSerializer, FilterSerializer
from sluice_controller.api.views.base import View, expected_version
from sluice_controller.api.views.code.transfer import (
    BYTES,
    BYTES_OUT,
    MAIN,
    NATIVE_RULES,
    NATIVE_WARNING,
    SHA256,
    download,
    read_code,
)
from sluice_controller.api.views.resources import no_content, render_entry, render_page, url_path
from sluice_controller.catalog.waiting import LONGEST
from sluice_controller.code import filters, revisions
from sluice_controller.code.revisions import RegisteredCode
from sluice_controller.code.rollout import rollout_now, wait_rolled_out
from sluice_core.describe import FILTER, NATIVE
from sluice_core.messages.uploads import FILTER_CODE

#: Asked besides the rule of the call where code is native.
_NATIVE_RULE = NATIVE_RULES[FILTER_CODE]


class RegistrationView(View):
    """What the views of registrations share."""

    further_rules = (_NATIVE_RULE,)

    def answer(self, found: RegisteredCode, location: str = "") -> Response:
        """The registration and how far its code has come."""
        return render_entry(
            shapes.UploadSerializer.render(
                found.upload, rollout=shapes.RolloutSerializer.render(rollout_now(self.backend, found))
            ),
            found.version,
            location,
        )

    def allow_native(self, request: Request, keyword: str) -> None:
        """Nobody touches a native filter who may not upload native code."""
        if filters.find(self.backend, keyword).upload.environment == NATIVE:
            authorize(request, _NATIVE_RULE, {})


class FiltersView(RegistrationView):
    """What can be used now."""

    @operation("sluice:filters:list", "list_filters", FilterPageSerializer, *LIST)
    def get(self, request: Request) -> Response:
        """List the filters that this cluster can run.

        A page of installed and registered filters.
        """
        known = self.backend.catalogue.actions.items()
        usable = {word: one for word, one in known if one.available and one.kind == FILTER}
        return render_page(self, request, "filters", usable, FilterSerializer.render)

    @operation(
        "sluice:filters:register",
        "register_filter",
        {201: shapes.UploadSerializer},
        ETAG,
        header("Location", "path of the registration", 201),
        errors=(409,),
        takes=shapes.RegistrationSerializer,
        examples=shapes.REGISTRATIONS,
    )
    def post(self, request: Request) -> Response:
        """Register a filter; its code follows.

        A filter for an isolated environment is described here. A `native` one says in its code what it is:
        `reverse`, `capabilities`, `parameters` and `help` are refused. **Native code is for administrators
        only: it runs with all rights of Swift's processes.**
        """
        self.query(request)
        if filters.is_native(request.data):
            authorize(request, _NATIVE_RULE, {})
        found = filters.register(self.backend, request.data, request.user.name)
        return self.answer(found, url_path("filters", found.upload.keyword))


class FilterView(RegistrationView):
    """One registered filter."""

    @operation("sluice:filters:show", "show_filter", shapes.UploadSerializer, ETAG, errors=(404,))
    def get(self, request: Request, keyword: str) -> Response:
        """Show a registered filter, its revisions, and how far the newest one has come.

        The registration.
        """
        self.query(request)
        return self.answer(filters.find(self.backend, keyword))

    @operation(
        "sluice:filters:update",
        "update_filter",
        shapes.UploadSerializer,
        IF_MATCH,
        errors=(404, 409),
        takes=shapes.RegistrationSerializer,
    )
    def put(self, request: Request, keyword: str) -> Response:
        """Change the description of a registered filter; what is not named stays.

        The registration as it is now.
        """
        self.query(request)
        expected = expected_version(request)
        self.allow_native(request, keyword)
        if filters.is_native(request.data):
            authorize(request, _NATIVE_RULE, {})
        return self.answer(filters.update_description(self.backend, keyword, request.data, request.user.name, expected))

    @operation(
        "sluice:filters:unregister",
        "unregister_filter",
        {204: OpenApiResponse(description="forgotten")},
        query("force", OpenApiTypes.BOOL, "even if stored objects need it to be read", default=False),
        IF_MATCH,
        errors=(404, 409),
    )
    def delete(self, request: Request, keyword: str) -> Response:
        """Forget a registered filter.

        Nothing.
        """
        force = self.query(request, "force").flag("force")
        filters.unregister(self.backend, keyword, request.user.name, force, expected_version(request))
        return no_content()


class FilterDataView(RegistrationView):
    """The code of one registered filter."""

    parser_classes = (RawParser,)

    @operation("sluice:filters:download", "download_filter", BYTES_OUT, errors=(404,))
    def get(self, request: Request, keyword: str) -> StreamingHttpResponse:
        """Give the code of a registered filter.

        The code.
        """
        self.query(request)
        upload = filters.find(self.backend, keyword).upload
        return download(self.backend, request, upload)

    @operation(
        "sluice:filters:upload",
        "upload_filter",
        shapes.UploadSerializer,
        MAIN,
        WAIT,
        SHA256,
        IF_MATCH,
        errors=(404, 409, 422),
        description=NATIVE_WARNING
        + " A revision of a reversible filter must be able to read what earlier ones have stored. "
        "With `wait` the answer comes when each live node can run the code, or has said why not.",
        takes=BYTES,
    )
    def put(self, request: Request, keyword: str) -> Response:
        """Give a registered filter its code, or another revision of it.

        The registration with its new code.
        """
        query_ = self.query(request, "wait", "main")
        seconds = query_.number("wait", 0.0, 0.0, LONGEST)
        code = read_code(request, query_.text("main"))
        self.allow_native(request, keyword)
        found = filters.put_code(self.backend, keyword, code, request.user.name, expected_version(request))
        wait_rolled_out(self.backend, found, seconds)
        return self.answer(found)


class FilterRollbackView(RegistrationView):
    """An earlier revision of a filter's code."""

    @operation(
        "sluice:filters:rollback",
        "roll_back_filter",
        shapes.UploadSerializer,
        WAIT,
        IF_MATCH,
        errors=(404, 409),
        takes=shapes.RollbackSerializer,
        examples=shapes.ROLLBACKS,
    )
    def post(self, request: Request, keyword: str) -> Response:
        """Give a filter the code of an earlier revision again, as a new revision.

        Native code brings back what it says of itself; the description of an isolated filter stays as it is. An
        earlier revision of a native filter must be able to read what newer ones have stored.
        """
        seconds = self.wait_seconds(request)
        number = revisions.requested_revision(request.data)
        self.allow_native(request, keyword)
        found = filters.roll_back(self.backend, keyword, number, request.user.name, expected_version(request))
        wait_rolled_out(self.backend, found, seconds)
        return self.answer(found)
