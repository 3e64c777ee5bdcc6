"""The base of all views: the backend, the rule and the parameters of each method, and versions as ``ETag``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from http import HTTPStatus
from typing import Any, ClassVar

from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from sluice_controller.api.openapi import Operation
from sluice_controller.api.permissions import authorize, plan_target, undecided_rule
from sluice_controller.catalog.backend import Backend, current_backend
from sluice_controller.catalog.nodes import wait_acknowledged
from sluice_core.errors import CallerError
from sluice_core.messages.policies import Target
from sluice_dsl.plan import Plan


class View(APIView):
    """A resource; its attributes are those of the current request."""

    #: passed to services
    backend: Backend
    #: the values of the query by parameter and, if ``If-Match`` may be given, ``expected``, the version or None
    given: dict[str, Any]
    #: the time that the answer may wait, from the query; it is not in ``given``, which is passed to services
    seconds: float
    #: Method in lower case → its declaration
    operations: ClassVar[Mapping[str, Operation]] = {}
    #: OPTIONS is left out: ``/schema`` has more
    http_method_names: tuple[str, ...] = ("get", "post", "put", "delete", "head")

    @property
    def operation(self) -> Operation | None:
        """The called operation; None if the path does not have the method."""
        return self.operations.get((self.request.method or "").lower().replace("head", "get"))

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Called by REST framework before the method; sets the identity of the request, and reads its query."""
        super().initial(request, *args, **kwargs)
        self.backend = current_backend()
        if self.operation is not None:
            self.given = self.operation.read_query(request.query_params)
            self.seconds = self.given.pop("wait", 0.0)
            self.operation.check_body(request)
            if self.operation.guarded:
                self.given["expected"] = expected_version(request)

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        """Called by REST framework with the answer, which is withheld if its rule was never decided."""
        response = super().finalize_response(request, response, *args, **kwargs)
        if response.status_code < HTTPStatus.BAD_REQUEST and undecided_rule(request, self):
            error = AssertionError(f"rule `{undecided_rule(request, self)}` was never decided")
            withheld: Response = self.handle_exception(error)
            return super().finalize_response(request, withheld, *args, **kwargs)
        return response

    def plan_authorizer(self, request: Request) -> Callable[[Iterable[Plan]], None]:
        """Return a function that decides the method's rule for the plans that are shown, written or removed.

        It raises :class:`~sluice_controller.api.permissions.Forbidden` for the first one that is not allowed.
        """

        def authorize_plans(plans: Iterable[Plan]) -> None:
            uploads = self.backend.policy_cache.contents().uploads
            for plan in plans:
                authorize(request, self.rule, plan_target(plan, uploads))

        return authorize_plans

    def authorize_target(self, request: Request, target: Target) -> None:
        """Decide the method's rule for ``target``, whatever filter is set there.

        :raises Forbidden: when the rule does not allow it
        """
        authorize(request, self.rule, {**plan_target(Plan(target, ()), {}), **self.known_target()})

    @property
    def rule(self) -> str:
        """The name of the rule of the operation that is called."""
        return self.operation.rule if self.operation else ""

    def known_target(self) -> Mapping[str, str]:
        """The values of a rule about an object before the view has read it, besides the owner."""
        return {}

    def wait_acknowledged(self, epoch: int) -> None:
        """Wait until all live nodes have acknowledged ``epoch``, for up to the time in the query."""
        wait_acknowledged(self.backend, epoch, self.seconds)


def etag(version: int) -> str:
    """A policy's version as a header."""
    return f'"{version}"'


def expected_version(request: Request) -> int | None:
    """The version in ``If-Match``; None if it is missing or ``*``.

    :raises CallerError: when it is not a version
    """
    value = request.headers.get("If-Match", "*").strip()
    if value == "*":
        return None
    match = re.fullmatch(r'"([0-9]{1,15})"', value)
    if match is None:
        raise CallerError(f"`If-Match` is `{value}`, expected an `ETag` of this policy")
    return int(match[1])
