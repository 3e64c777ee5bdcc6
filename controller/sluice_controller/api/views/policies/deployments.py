"""``/filters/{target}/deploy`` and ``/undeploy``: filters set for a tenant, a container or an object."""

from __future__ import annotations

from django.conf import settings
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from sluice_controller.api.openapi import REQUEST_ID, WAIT, WITH_BODY, answers
from sluice_controller.api.permissions import authorize, target_of
from sluice_controller.api.serializers.filters import (
    DEPLOYMENT,
    DeployedPageSerializer,
    DeployedSerializer,
    DeploymentResultSerializer,
    DeploymentSerializer,
)
from sluice_controller.api.views.base import View
from sluice_controller.api.views.listing import ETAG, LIST, in_path, page, shown
from sluice_controller.catalog.waiting import LONGEST, wait_acknowledged
from sluice_controller.policies import deployments
from sluice_controller.validation.parameters import empty_body
from sluice_dsl.plan import Plan

TARGET = in_path("target", "`account`, `account/container` or `account/container/object`")
_KEYWORD = in_path("keyword", "the filter")


class DeploymentsView(View):
    """What is set for one target."""

    http_method_names = ("get", "head")
    rules = {"get": "sluice:deployments:list"}

    @extend_schema(
        operation_id="list_deployments",
        summary="List the filters that are set for just this target by policies without metrics",
        parameters=[TARGET, *LIST],
        responses=answers({200: DeployedPageSerializer}, 400),
    )
    def get(self, request: Request, target: str) -> Response:
        """A page of filters, by keyword."""
        where = deployments.target_of(target, self.backend.catalogue)
        contents = self.backend.policy_cache.contents()
        authorize(request, self.rules["get"], target_of(Plan(where, ()), settings.SLUICE, contents.uploads))
        known = {one.action.keyword: one for one in deployments.list_deployed(contents, where)}
        return page(self, request, "filters", known, DeployedSerializer.show, target=where.name, level=where.level)


class DeployView(View):
    """One filter for one target."""

    http_method_names = ("put",)
    rules = {"put": "sluice:deployments:deploy"}

    @extend_schema(
        operation_id="deploy_filter",
        summary="Set a filter for a target; the same again changes nothing, other parameters replace it",
        parameters=[TARGET, _KEYWORD, WAIT, REQUEST_ID, ETAG],
        request=DeploymentSerializer,
        responses=answers({200: DeploymentResultSerializer}, 404, 409, *WITH_BODY),
        examples=DEPLOYMENT,
    )
    def put(self, request: Request, target: str, keyword: str) -> Response:
        """The deployment."""
        seconds = self.query(request, "wait").number("wait", 0.0, 0.0, LONGEST)
        where = deployments.target_of(target, self.backend.catalogue)
        allow = self.allowing(request)
        done = deployments.deploy(self.backend, where, keyword, request.data, request.user.name, allow)
        wait_acknowledged(self.backend, done.epoch, seconds)
        one = deployments.find_deployment(self.backend, done.policies[0].id)
        return shown({**DeployedSerializer.show(one), "changed": done.changed}, one.policy.version)


class UndeployView(View):
    """One filter for one target, taken back."""

    http_method_names = ("put",)
    rules = {"put": "sluice:deployments:undeploy"}

    @extend_schema(
        operation_id="undeploy_filter",
        summary="Take back what deploying a filter has set",
        parameters=[TARGET, _KEYWORD, WAIT, REQUEST_ID],
        request=None,
        responses=answers({200: DeployedPageSerializer}, 404, 409, *WITH_BODY),
    )
    def put(self, request: Request, target: str, keyword: str) -> Response:
        """What is still deployed there."""
        seconds = self.query(request, "wait").number("wait", 0.0, 0.0, LONGEST)
        empty_body(request.data)
        where = deployments.target_of(target, self.backend.catalogue)
        done = deployments.undeploy(self.backend, where, keyword, request.user.name, self.allowing(request))
        wait_acknowledged(self.backend, done.epoch, seconds)
        left = deployments.list_deployed(self.backend.policy_cache.contents(), where)
        data = {"target": where.name, "level": where.level, "filters": [DeployedSerializer.show(one) for one in left]}
        return Response({**data, "next_marker": None})
