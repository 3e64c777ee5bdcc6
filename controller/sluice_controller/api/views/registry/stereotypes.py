"""``/stereotypes``: named sets of sentences, and the tenants that they are applied to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from rest_framework.request import Request
from rest_framework.response import Response

from sluice_controller.api.openapi import (
    ETAG,
    FORCE,
    GONE,
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
from sluice_controller.api.permissions import authorize, plan_target
from sluice_controller.api.serializers import stereotypes as shapes
from sluice_controller.api.views.base import View, expected_version
from sluice_controller.api.views.resources import CollectionView, EntryView, no_content, render_entry, render_page
from sluice_controller.catalog.waiting import wait_acknowledged
from sluice_controller.policies import deployments
from sluice_controller.registry import stereotypes
from sluice_controller.validation.bodies import empty_body
from sluice_core.errors import CallerError
from sluice_core.messages.policies import CONTAINER, TENANT, Target
from sluice_dsl.plan import Plan

_NAME = in_path("stereotype", "the stereotype's name")
_TARGET = in_path("target", "a tenant, or `account/container`")


@operations(
    get=list_operation(
        "sluice:stereotypes:list", "list_stereotypes", "List stereotypes", shapes.StereotypePageSerializer
    ),
    post=create_operation(
        "sluice:stereotypes:create",
        "create_stereotype",
        "Name a set of sentences with a hole for the target",
        shapes.StereotypeSerializer,
        shapes.NewStereotypeSerializer,
        shapes.STEREOTYPE,
    ),
)
class StereotypesView(CollectionView):
    """All stereotypes."""

    service, serializer, path = stereotypes, shapes.StereotypeSerializer, ("stereotypes",)

    def create(self, data: Any, by: str) -> Any:
        """The new stereotype."""
        return stereotypes.create(self.backend, data, by, settings.SLUICE.text_limit)


@operations(
    get=show_operation(
        "sluice:stereotypes:show", "show_stereotype", "Show a stereotype", shapes.ShownStereotypeSerializer, _NAME
    ),
    delete=delete_operation("sluice:stereotypes:delete", "delete_stereotype", "Forget a stereotype", _NAME, FORCE),
)
class StereotypeView(EntryView):
    """One stereotype."""

    service = stereotypes

    @update_operation(
        "sluice:stereotypes:update",
        "update_stereotype",
        "Change a stereotype, and with it every target that it is applied to; in one change, or not at all",
        shapes.ShownStereotypeSerializer,
        shapes.NewStereotypeSerializer,
        _NAME,
        WAIT,
    )
    def put(self, request: Request, **path: str) -> Response:
        """The stereotype as it is now."""
        seconds, expected = self.wait_seconds(request), expected_version(request)
        found, done = stereotypes.update(
            self.backend, path["stereotype"], request.data, request.user.name, settings.SLUICE.text_limit, expected
        )
        wait_acknowledged(self.backend, done.epoch, seconds)
        return self.respond(found)

    def respond(self, found: Any) -> Response:
        """The stereotype, with the number of targets that it is applied to."""
        places = stereotypes.applications(self.backend.policy_cache.contents(), found.record.name)
        return render_entry(shapes.ShownStereotypeSerializer.render(found, applied=len(places)), found.version)


class StereotypeTargetsView(View):
    """Where one stereotype is applied."""

    @operation(
        "sluice:stereotypes:targets",
        "list_stereotype_targets",
        shapes.AppliedPageSerializer,
        _NAME,
        ETAG,
        *LIST,
        errors=(404,),
    )
    def get(self, request: Request, stereotype: str) -> Response:
        """List the tenants and containers that a stereotype is applied to.

        A page of targets, by path.
        """
        found = stereotypes.find(self.backend, stereotype)
        places = stereotypes.applications(self.backend.policy_cache.contents(), stereotype)
        known = {path: policies for (_, path), policies in places.items()}
        response = render_page(self, request, "targets", known, shapes.AppliedSerializer.render)
        response["ETag"] = f'"{found.version}"'
        return response


class StereotypeTargetView(View):
    """One stereotype at one tenant or container."""

    def known_target(self) -> Mapping[str, str]:
        """What rules see before the target is looked at."""
        return {"stereotype": self.kwargs["stereotype"]}

    @show_operation(
        "sluice:stereotypes:applied",
        "show_stereotype_target",
        "Show what a stereotype has set for a target",
        shapes.AppliedSerializer,
        _NAME,
        _TARGET,
    )
    def get(self, request: Request, stereotype: str, target: str) -> Response:
        """The target."""
        self.query(request)
        return self._rendered(stereotype, self._target(request, target))

    @operation(
        "sluice:stereotypes:apply",
        "apply_stereotype",
        shapes.ApplicationSerializer,
        _NAME,
        _TARGET,
        WAIT,
        ETAG,
        errors=(404, 409),
        takes=None,
    )
    def put(self, request: Request, stereotype: str, target: str) -> Response:
        """Apply a stereotype to a tenant or a container: all of its sentences, or none.

        The target; the same again changes nothing.
        """
        seconds = self.wait_seconds(request)
        empty_body(request.data)
        where = self._target(request, target)
        done = stereotypes.apply(self.backend, stereotype, where, request.user.name)
        wait_acknowledged(self.backend, done.epoch, seconds)
        return self._rendered(stereotype, where, changed=done.changed)

    @operation("sluice:stereotypes:take_back", "take_back_stereotype", GONE, _NAME, _TARGET, WAIT, errors=(404, 409))
    def delete(self, request: Request, stereotype: str, target: str) -> Response:
        """Take back what a stereotype has set for a target.

        204.
        """
        seconds = self.wait_seconds(request)
        done = stereotypes.withdraw(self.backend, stereotype, self._target(request, target), request.user.name)
        wait_acknowledged(self.backend, done.epoch, seconds)
        return no_content()

    def _rendered(self, stereotype: str, target: Target, **more: Any) -> Response:
        policies = stereotypes.policies_applied_at(self.backend, stereotype, target)
        data = {**shapes.AppliedSerializer.render(policies), **more}
        return render_entry(data, max(one.version for one in policies))

    def _target(self, request: Request, path: str) -> Target:
        """What ``path`` names, once the rule allows it."""
        target = deployments.target_of(path, self.backend.catalogue)
        known = plan_target(Plan(target, ()), settings.SLUICE, {})
        authorize(request, self.rule(request), {**known, **self.known_target()})
        if target.level not in (TENANT, CONTAINER):
            raise CallerError(f"`{path}` is an {target.level}, expected a tenant or a container")
        return target
