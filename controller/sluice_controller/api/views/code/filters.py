"""``/filters``: what can be used, and filters that are registered at run time."""

from __future__ import annotations

from django.http import StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from sluice_controller.api.openapi import REQUEST_ID, WAIT, WITH_BODY, answers, header, query
from sluice_controller.api.parsers import RawParser
from sluice_controller.api.permissions import authorize
from sluice_controller.api.serializers.filters import FilterPageSerializer, FilterSerializer
from sluice_controller.api.serializers.uploads import (
    REGISTRATIONS,
    ROLLBACKS,
    RegistrationSerializer,
    RollbackSerializer,
    RolloutSerializer,
    UploadSerializer,
)
from sluice_controller.api.views.base import View, expected_version
from sluice_controller.api.views.code.code import (
    BYTES,
    BYTES_OUT,
    MAIN,
    NATIVE_RULES,
    NATIVE_WARNING,
    SHA256,
    download,
    given,
)
from sluice_controller.api.views.listing import ETAG, IF_MATCH, LIST, gone, page, shown, url
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

    further = (_NATIVE_RULE,)

    def answer(self, found: RegisteredCode, location: str = "") -> Response:
        """The registration and how far its code has come."""
        return shown(
            UploadSerializer.show(found.upload, rollout=RolloutSerializer.show(rollout_now(self.backend, found))),
            found.version,
            location,
        )

    def allow_native(self, request: Request, keyword: str) -> None:
        """Nobody touches a native filter who may not upload native code."""
        if filters.find(self.backend, keyword).upload.environment == NATIVE:
            authorize(request, _NATIVE_RULE, {})


class FiltersView(RegistrationView):
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
        return page(self, request, "filters", usable, FilterSerializer.show)

    @extend_schema(
        operation_id="register_filter",
        summary="Register a filter; its code follows",
        description=(
            "A filter for an isolated environment is described here. A `native` one says in its code what it is: "
            "`reverse`, `capabilities`, `parameters` and `help` are refused. **Native code is for administrators only: "
            "it runs with all rights of Swift's processes.**"
        ),
        parameters=[REQUEST_ID, ETAG, header("Location", "path of the registration", 201)],
        request=RegistrationSerializer,
        responses=answers({201: UploadSerializer}, 409, *WITH_BODY),
        examples=REGISTRATIONS,
    )
    def post(self, request: Request) -> Response:
        """The registration."""
        self.query(request)
        if filters.is_native(request.data):
            authorize(request, _NATIVE_RULE, {})
        found = filters.register(self.backend, request.data, request.user.name)
        return self.answer(found, url("filters", found.upload.keyword))


class FilterView(RegistrationView):
    """One registered filter."""

    http_method_names = ("get", "put", "delete", "head")
    rules = {
        "get": "sluice:filters:show",
        "put": "sluice:filters:update",
        "delete": "sluice:filters:unregister",
    }

    @extend_schema(
        operation_id="show_filter",
        summary="Show a registered filter, its revisions, and how far the newest one has come",
        parameters=[REQUEST_ID, ETAG],
        responses=answers({200: UploadSerializer}, 400, 404),
    )
    def get(self, request: Request, keyword: str) -> Response:
        """The registration."""
        self.query(request)
        return self.answer(filters.find(self.backend, keyword))

    @extend_schema(
        operation_id="update_filter",
        summary="Change the description of a registered filter; what is not named stays",
        parameters=[IF_MATCH, REQUEST_ID, ETAG],
        request=RegistrationSerializer,
        responses=answers({200: UploadSerializer}, 404, 409, 412, *WITH_BODY),
    )
    def put(self, request: Request, keyword: str) -> Response:
        """The registration as it is now."""
        self.query(request)
        expected = expected_version(request)
        self.allow_native(request, keyword)
        if filters.is_native(request.data):
            authorize(request, _NATIVE_RULE, {})
        return self.answer(filters.update_description(self.backend, keyword, request.data, request.user.name, expected))

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
        filters.unregister(self.backend, keyword, request.user.name, force, expected_version(request))
        return gone()


class FilterDataView(RegistrationView):
    """The code of one registered filter."""

    http_method_names = ("get", "put", "head")
    parser_classes = (RawParser,)
    rules = {"get": "sluice:filters:download", "put": "sluice:filters:upload"}

    @extend_schema(
        operation_id="download_filter",
        summary="Give the code of a registered filter",
        parameters=[REQUEST_ID],
        responses=BYTES_OUT,
    )
    def get(self, request: Request, keyword: str) -> StreamingHttpResponse:
        """The code."""
        self.query(request)
        upload = filters.find(self.backend, keyword).upload
        return download(self.backend, request, upload)

    @extend_schema(
        operation_id="upload_filter",
        summary="Give a registered filter its code, or another revision of it",
        description=(
            f"{NATIVE_WARNING} A revision of a reversible filter must be able to read what earlier ones have stored. "
            "With `wait` the answer comes when each live node can run the code, or has said why not."
        ),
        parameters=[MAIN, WAIT, SHA256, IF_MATCH, REQUEST_ID, ETAG],
        request=BYTES,
        responses=answers({200: UploadSerializer}, 404, 409, 412, 422, *WITH_BODY),
    )
    def put(self, request: Request, keyword: str) -> Response:
        """The registration with its new code."""
        query_ = self.query(request, "wait", "main")
        seconds = query_.number("wait", 0.0, 0.0, LONGEST)
        code = given(request, query_.text("main"))
        self.allow_native(request, keyword)
        found = filters.put_code(self.backend, keyword, code, request.user.name, expected_version(request))
        wait_rolled_out(self.backend, found, seconds)
        return self.answer(found)


class FilterRollbackView(RegistrationView):
    """An earlier revision of a filter's code."""

    http_method_names = ("post",)
    rules = {"post": "sluice:filters:rollback"}

    @extend_schema(
        operation_id="roll_back_filter",
        summary="Give a filter the code of an earlier revision again, as a new revision",
        description=(
            "Native code brings back what it says of itself; the description of an isolated filter stays as it is. "
            "An earlier revision of a native filter must be able to read what newer ones have stored."
        ),
        parameters=[WAIT, IF_MATCH, REQUEST_ID, ETAG],
        request=RollbackSerializer,
        responses=answers({200: UploadSerializer}, 404, 409, 412, *WITH_BODY),
        examples=ROLLBACKS,
    )
    def post(self, request: Request, keyword: str) -> Response:
        """The registration with the code that it had."""
        seconds = self.query(request, "wait").number("wait", 0.0, 0.0, LONGEST)
        number = revisions.requested_revision(request.data)
        self.allow_native(request, keyword)
        found = filters.roll_back(self.backend, keyword, number, request.user.name, expected_version(request))
        wait_rolled_out(self.backend, found, seconds)
        return self.answer(found)
