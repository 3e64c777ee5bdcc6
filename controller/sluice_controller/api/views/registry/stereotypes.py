"""``/stereotypes``: named sets of sentences, and the tenants that they are applied to."""

from __future__ import annotations

from collections.abc import Mapping

from django.conf import settings
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from sluice_controller.api.openapi import REQUEST_ID, WAIT, WITH_BODY, answers
from sluice_controller.api.permissions import authorize, target_of
from sluice_controller.api.serializers.stereotypes import (
    STEREOTYPE,
    ApplicationSerializer,
    AppliedPageSerializer,
    AppliedSerializer,
    NewStereotypeSerializer,
    ShownStereotypeSerializer,
    StereotypePageSerializer,
    StereotypeSerializer,
)
from sluice_controller.api.views.base import View, expected_version
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
from sluice_controller.catalog.waiting import LONGEST, wait_acknowledged
from sluice_controller.policies import deployments
from sluice_controller.registry import stereotypes
from sluice_controller.validation.parameters import empty_body
from sluice_core.errors import CallerError
from sluice_core.messages.policies import CONTAINER, TENANT, Target
from sluice_dsl.plan import Plan

_NAME = in_path("stereotype", "the stereotype's name")
_TARGET = in_path("target", "a tenant, or `account/container`")


class StereotypesView(View):
    """All stereotypes."""

    rules = {"get": "sluice:stereotypes:list", "post": "sluice:stereotypes:create"}

    @extend_schema(
        operation_id="list_stereotypes",
        summary="List stereotypes",
        parameters=LIST,
        responses=answers({200: StereotypePageSerializer}, 400),
    )
    def get(self, request: Request) -> Response:
        """A page of stereotypes."""
        return page(self, request, "stereotypes", stereotypes.list_all(self.backend), StereotypeSerializer.show)

    @extend_schema(
        operation_id="create_stereotype",
        summary="Name a set of sentences with a hole for the target",
        parameters=[REQUEST_ID, ETAG, LOCATION],
        request=NewStereotypeSerializer,
        responses=answers({201: StereotypeSerializer}, 409, *WITH_BODY),
        examples=STEREOTYPE,
    )
    def post(self, request: Request) -> Response:
        """The new stereotype."""
        self.query(request)
        found = stereotypes.create(self.backend, request.data, request.user.name, settings.SLUICE.text_limit)
        return shown(StereotypeSerializer.show(found), found.version, url("stereotypes", found.record.name))


class StereotypeView(View):
    """One stereotype."""

    http_method_names = ("get", "put", "delete", "head")
    rules = {
        "get": "sluice:stereotypes:show",
        "put": "sluice:stereotypes:update",
        "delete": "sluice:stereotypes:delete",
    }

    @extend_schema(
        operation_id="show_stereotype",
        summary="Show a stereotype",
        parameters=[_NAME, REQUEST_ID, ETAG],
        responses=answers({200: ShownStereotypeSerializer}, 400, 404),
    )
    def get(self, request: Request, stereotype: str) -> Response:
        """The stereotype."""
        self.query(request)
        found = stereotypes.find(self.backend, stereotype)
        places = stereotypes.applications(self.backend.policy_cache.contents(), stereotype)
        return shown({**StereotypeSerializer.show(found), "applied": len(places)}, found.version)

    @extend_schema(
        operation_id="update_stereotype",
        summary="Change a stereotype, and with it every target that it is applied to; in one change, or not at all",
        parameters=[_NAME, WAIT, IF_MATCH, REQUEST_ID, ETAG],
        request=NewStereotypeSerializer,
        responses=answers({200: ShownStereotypeSerializer}, 404, 409, 412, *WITH_BODY),
    )
    def put(self, request: Request, stereotype: str) -> Response:
        """The stereotype as it is now."""
        seconds = self.query(request, "wait").number("wait", 0.0, 0.0, LONGEST)
        found, done = stereotypes.update(
            self.backend,
            stereotype,
            request.data,
            request.user.name,
            settings.SLUICE.text_limit,
            expected_version(request),
        )
        wait_acknowledged(self.backend, done.epoch, seconds)
        places = stereotypes.applications(self.backend.policy_cache.contents(), stereotype)
        return shown({**StereotypeSerializer.show(found), "applied": len(places)}, found.version)

    @extend_schema(
        operation_id="delete_stereotype",
        summary="Forget a stereotype",
        parameters=[_NAME, FORCE, IF_MATCH, REQUEST_ID],
        responses=answers(GONE, 400, 404, 409, 412),
    )
    def delete(self, request: Request, stereotype: str) -> Response:
        """204."""
        force = self.query(request, "force").flag("force")
        stereotypes.delete(self.backend, stereotype, request.user.name, force, expected_version(request))
        return gone()


class StereotypeTargetsView(View):
    """Where one stereotype is applied."""

    http_method_names = ("get", "head")
    rules = {"get": "sluice:stereotypes:targets"}

    @extend_schema(
        operation_id="list_stereotype_targets",
        summary="List the tenants and containers that a stereotype is applied to",
        parameters=[_NAME, ETAG, *LIST],
        responses=answers({200: AppliedPageSerializer}, 400, 404),
    )
    def get(self, request: Request, stereotype: str) -> Response:
        """A page of targets, by path."""
        found = stereotypes.find(self.backend, stereotype)
        places = stereotypes.applications(self.backend.policy_cache.contents(), stereotype)
        known = {path: policies for (_, path), policies in places.items()}
        answer = page(self, request, "targets", known, AppliedSerializer.show)
        answer["ETag"] = f'"{found.version}"'
        return answer


class StereotypeTargetView(View):
    """One stereotype at one tenant or container."""

    http_method_names = ("get", "put", "delete", "head")
    rules = {
        "get": "sluice:stereotypes:applied",
        "put": "sluice:stereotypes:apply",
        "delete": "sluice:stereotypes:take_back",
    }

    def foreknown(self) -> Mapping[str, str]:
        """What rules see before the target is looked at."""
        return {"stereotype": self.kwargs["stereotype"]}

    @extend_schema(
        operation_id="show_stereotype_target",
        summary="Show what a stereotype has set for a target",
        parameters=[_NAME, _TARGET, REQUEST_ID, ETAG],
        responses=answers({200: AppliedSerializer}, 400, 404),
    )
    def get(self, request: Request, stereotype: str, target: str) -> Response:
        """The target."""
        self.query(request)
        policies = stereotypes.policies_applied_at(self.backend, stereotype, self._target(request, stereotype, target))
        return shown(AppliedSerializer.show(policies), max(one.version for one in policies))

    @extend_schema(
        operation_id="apply_stereotype",
        summary="Apply a stereotype to a tenant or a container: all of its sentences, or none",
        parameters=[_NAME, _TARGET, WAIT, REQUEST_ID, ETAG],
        request=None,
        responses=answers({200: ApplicationSerializer}, 404, 409, *WITH_BODY),
    )
    def put(self, request: Request, stereotype: str, target: str) -> Response:
        """The target; the same again changes nothing."""
        seconds = self.query(request, "wait").number("wait", 0.0, 0.0, LONGEST)
        empty_body(request.data)
        where = self._target(request, stereotype, target)
        done = stereotypes.apply(self.backend, stereotype, where, request.user.name)
        wait_acknowledged(self.backend, done.epoch, seconds)
        policies = stereotypes.policies_applied_at(self.backend, stereotype, where)
        data = {**AppliedSerializer.show(policies), "changed": done.changed}
        return shown(data, max(one.version for one in policies))

    @extend_schema(
        operation_id="take_back_stereotype",
        summary="Take back what a stereotype has set for a target",
        parameters=[_NAME, _TARGET, WAIT, REQUEST_ID],
        responses=answers(GONE, 400, 404, 409),
    )
    def delete(self, request: Request, stereotype: str, target: str) -> Response:
        """204."""
        seconds = self.query(request, "wait").number("wait", 0.0, 0.0, LONGEST)
        where = self._target(request, stereotype, target)
        done = stereotypes.withdraw(self.backend, stereotype, where, request.user.name)
        wait_acknowledged(self.backend, done.epoch, seconds)
        return gone()

    def _target(self, request: Request, stereotype: str, path: str) -> Target:
        """What ``path`` names, once the rule allows it."""
        target = deployments.target_of(path, self.backend.catalogue)
        known = target_of(Plan(target, ()), settings.SLUICE, {})
        authorize(request, self.rules[request.method.lower().replace("head", "get")], {**known, **self.foreknown()})
        if target.level not in (TENANT, CONTAINER):
            raise CallerError(f"`{path}` is an {target.level}, expected a tenant or a container")
        return target
