"""``/bw/slo``: Crystal's service level objectives, promises to tenants over the whole cluster."""

from __future__ import annotations

from typing import Any, Final

from django.conf import settings
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from sluice_controller.api.openapi import REQUEST_ID, WAIT, WITH_BODY, answers, query
from sluice_controller.api.permissions import authorize, project_of, seen
from sluice_controller.api.serializers.bandwidth import (
    VALUES,
    ObjectivePageSerializer,
    ObjectiveResultSerializer,
    ObjectiveSerializer,
    ObjectiveValueSerializer,
)
from sluice_controller.api.views.bandwidth.iostack import ACCOUNT, POLICY
from sluice_controller.api.views.base import View
from sluice_controller.api.views.listing import ETAG, GONE, LIST, gone, page, shown
from sluice_controller.bandwidth import services
from sluice_controller.bandwidth.services import NAMES, Objective
from sluice_controller.catalog import bandwidth_report
from sluice_controller.catalog.waiting import LONGEST, wait_acknowledged
from sluice_controller.validation.bodies import Body
from sluice_core.messages.bandwidth_report import BandwidthReport

_NAME: Final = OpenApiParameter(
    "name", OpenApiTypes.STR, OpenApiParameter.PATH, description="what is promised", enum=NAMES
)
_TOGETHER: Final = (
    "The objectives of a tenant under one storage policy (without one: under all) stand in one policy of origin "
    "`slo/…`, which this changes or makes."
)


def objective_data(one: Objective, report: BandwidthReport | None) -> dict[str, Any]:
    """An objective."""
    infeasible = bandwidth_report.shortfall(report, one.policy.policy.id, one.name)
    return ObjectiveSerializer.show(one, infeasible=infeasible)


class ObjectivesView(View):
    """All objectives."""

    http_method_names = ("get", "head")
    rules = {"get": "sluice:slos:list"}

    @extend_schema(
        operation_id="list_slo",
        summary="List the service level objectives of tenants",
        description="Those that were set here; what policies promise besides is among the policies.",
        parameters=[
            query("account", OpenApiTypes.STR, "only of this account"),
            query("name", OpenApiTypes.STR, "only of this name", enum=NAMES),
            *LIST,
        ],
        responses=answers({200: ObjectivePageSerializer}, 400),
    )
    def get(self, request: Request) -> Response:
        """A page of objectives."""
        given = self.query(request, "limit", "marker", "prefix", "account", "name")
        account, name = given.text("account"), given.one_of("name", NAMES)
        accounts = seen(request, self.rules["get"])
        known = {
            " ".join((one.account, one.name, one.storage_policy, one.policy.policy.id)): one
            for one in services.objectives(self.backend.policy_cache.contents())
            if account in ("", one.account) and name in ("", one.name) and (accounts is None or one.account in accounts)
        }
        report = bandwidth_report.current_report(self.backend)
        return page(self, request, "slos", known, lambda one: objective_data(one, report), "account", "name")


class OneView(View):
    """A call about one objective."""

    http_method_names = ("get", "put", "delete", "head")
    rules = {"get": "sluice:slos:show", "put": "sluice:slos:set", "delete": "sluice:slos:delete"}

    def show(self, request: Request, account: str, name: str, policy: str = "") -> Response:
        """The objective."""
        self.query(request)
        where = services.scope(self.backend, account, policy)
        authorize(request, self.rules["get"], project_of(where.target.name, settings.SLUICE.reseller_prefix))
        found = services.find_objective(self.backend.policy_cache.contents(), where, name)
        return shown(objective_data(found, bandwidth_report.current_report(self.backend)), found.policy.version)

    def set(self, request: Request, account: str, name: str, policy: str = "") -> Response:
        """The objective as it is now."""
        seconds = self.query(request, "wait").number("wait", 0.0, 0.0, LONGEST)
        value = Body(request.data, "value").value("value")
        where = services.scope(self.backend, account, policy)
        done = services.set_objective(self.backend, where, name, value, request.user.name)
        wait_acknowledged(self.backend, done.epoch, seconds)
        found = services.find_objective(self.backend.policy_cache.contents(), where, name)
        data = objective_data(found, bandwidth_report.current_report(self.backend))
        return shown({**data, **done.to_data()}, found.policy.version)

    def take_back(self, request: Request, account: str, name: str, policy: str = "") -> Response:
        """204."""
        seconds = self.query(request, "wait").number("wait", 0.0, 0.0, LONGEST)
        where = services.scope(self.backend, account, policy)
        done = services.delete_objective(self.backend, where, name, request.user.name)
        wait_acknowledged(self.backend, done.epoch, seconds)
        return gone()


def _shown(name: str, summary: str, *parameters: Any) -> Any:
    found = answers({200: ObjectiveSerializer}, 400, 404)
    return extend_schema(
        operation_id=name, summary=summary, parameters=[*parameters, REQUEST_ID, ETAG], responses=found
    )


def _set(name: str, summary: str, *parameters: Any) -> Any:
    return extend_schema(
        operation_id=name,
        summary=summary,
        description=_TOGETHER,
        parameters=[*parameters, WAIT, REQUEST_ID, ETAG],
        request=ObjectiveValueSerializer,
        responses=answers({200: ObjectiveResultSerializer}, 404, 409, *WITH_BODY),
        examples=VALUES,
    )


def _taken_back(name: str, summary: str, *parameters: Any) -> Any:
    found = answers(GONE, 400, 404, 409)
    return extend_schema(
        operation_id=name, summary=summary, parameters=[*parameters, WAIT, REQUEST_ID], responses=found
    )


class ObjectiveView(OneView):
    """One objective, for all storage policies."""

    @_shown("show_slo", "Show an objective of a tenant", ACCOUNT, _NAME)
    def get(self, request: Request, account: str, name: str) -> Response:
        """The objective."""
        return self.show(request, account, name)

    @_set("update_slo", "Promise a tenant a rate over the whole cluster, or hold it to one", ACCOUNT, _NAME)
    def put(self, request: Request, account: str, name: str) -> Response:
        """The objective as it is now."""
        return self.set(request, account, name)

    @_taken_back("delete_slo", "Take an objective of a tenant back", ACCOUNT, _NAME)
    def delete(self, request: Request, account: str, name: str) -> Response:
        """204."""
        return self.take_back(request, account, name)


class PolicyObjectiveView(OneView):
    """One objective, for one storage policy."""

    @_shown("show_slo_of_policy", "Show an objective of a tenant under a storage policy", ACCOUNT, _NAME, POLICY)
    def get(self, request: Request, account: str, name: str, policy: str) -> Response:
        """The objective."""
        return self.show(request, account, name, policy)

    @_set(
        "update_slo_of_policy",
        "Promise a tenant a rate over the whole cluster under a storage policy, or hold it to one",
        ACCOUNT,
        _NAME,
        POLICY,
    )
    def put(self, request: Request, account: str, name: str, policy: str) -> Response:
        """The objective as it is now."""
        return self.set(request, account, name, policy)

    @_taken_back(
        "delete_slo_of_policy", "Take an objective of a tenant under a storage policy back", ACCOUNT, _NAME, POLICY
    )
    def delete(self, request: Request, account: str, name: str, policy: str) -> Response:
        """204."""
        return self.take_back(request, account, name, policy)
