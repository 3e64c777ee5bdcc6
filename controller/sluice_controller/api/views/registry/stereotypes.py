"""``/stereotypes``: named sets of sentences, and the tenants that they are applied to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from django.conf import settings
from rest_framework.request import Request
from rest_framework.response import Response

from sluice_controller.api.openapi import ETAG, FORCE, GONE, LIST, WAIT, in_path, operation
from sluice_controller.api.serializers import stereotypes as shapes
from sluice_controller.api.views import resources
from sluice_controller.api.views.base import View, etag
from sluice_controller.api.views.resources import Resource, no_content, render_entry, render_page
from sluice_controller.policies import deployments
from sluice_controller.registry import stereotypes
from sluice_core.errors import CallerError
from sluice_core.messages.policies import CONTAINER, TENANT, Target

_STEREOTYPES: Final = Resource(
    stereotypes,
    ("stereotypes",),
    in_path("stereotype", "the stereotype's name"),
    "Stereotypes by name.",
    shapes.StereotypeSerializer,
    shapes.NewStereotypeSerializer,
    shapes.STEREOTYPE,
)
#: One that is shown by itself says where it is applied.
_SHOWN: Final = replace(_STEREOTYPES, shape=shapes.ShownStereotypeSerializer)
_NAME: Final = _STEREOTYPES.entry
_TARGET: Final = in_path("target", "a tenant, or `account/container`")


@_STEREOTYPES.declare(
    get=_STEREOTYPES.list_operation("sluice:stereotypes:list", "list_stereotypes", "List stereotypes"),
    post=_STEREOTYPES.create_operation(
        "sluice:stereotypes:create", "create_stereotype", "Name a set of sentences with a hole for the target"
    ),
)
class StereotypesView(resources.CollectionView):
    """All stereotypes."""

    def create(self, data: Any, by: str) -> Any:
        """The new stereotype."""
        return stereotypes.create(self.backend, data, by, settings.SLUICE.text_limit)


@_STEREOTYPES.declare(
    get=_SHOWN.show_operation("sluice:stereotypes:show", "show_stereotype", "Show a stereotype"),
    put=_SHOWN.update_operation(
        "sluice:stereotypes:update",
        "update_stereotype",
        "Change a stereotype, and with it every target that it is applied to; in one change, or not at all",
        WAIT,
    ),
    delete=_STEREOTYPES.delete_operation(
        "sluice:stereotypes:delete", "delete_stereotype", "Forget a stereotype", FORCE
    ),
)
class StereotypeView(resources.EntryView):
    """One stereotype."""

    def put(self, request: Request, **path: str) -> Response:
        """The stereotype as it is now."""
        by, limit, expected = request.user.name, settings.SLUICE.text_limit, self.given["expected"]
        found, done = stereotypes.update(self.backend, path["stereotype"], request.data, by, limit, expected)
        self.wait_acknowledged(done.epoch)
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
        response = render_page(self.given, "targets", known, shapes.AppliedSerializer.render)
        response["ETag"] = etag(found.version)
        return response


class StereotypeTargetView(View):
    """One stereotype at one tenant or container."""

    def known_target(self) -> Mapping[str, str]:
        """What rules see before the target is looked at."""
        return {"stereotype": self.kwargs["stereotype"]}

    @resources.show_operation(
        "sluice:stereotypes:applied",
        "show_stereotype_target",
        "Show what a stereotype has set for a target",
        shapes.AppliedSerializer,
        _NAME,
        _TARGET,
    )
    def get(self, request: Request, stereotype: str, target: str) -> Response:
        """The target."""
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
        where = self._target(request, target)
        done = stereotypes.apply(self.backend, stereotype, where, request.user.name)
        self.wait_acknowledged(done.epoch)
        return self._rendered(stereotype, where, changed=done.changed)

    @operation("sluice:stereotypes:take_back", "take_back_stereotype", GONE, _NAME, _TARGET, WAIT, errors=(404, 409))
    def delete(self, request: Request, stereotype: str, target: str) -> Response:
        """Take back what a stereotype has set for a target.

        204.
        """
        done = stereotypes.withdraw(self.backend, stereotype, self._target(request, target), request.user.name)
        self.wait_acknowledged(done.epoch)
        return no_content()

    def _rendered(self, stereotype: str, target: Target, **more: Any) -> Response:
        policies = stereotypes.policies_applied_at(self.backend, stereotype, target)
        data = {**shapes.AppliedSerializer.render(policies), **more}
        return render_entry(data, max(one.version for one in policies))

    def _target(self, request: Request, path: str) -> Target:
        """What ``path`` names, once the rule allows it."""
        target = deployments.target_of(path, self.backend.catalogue)
        self.authorize_target(request, target)
        if target.level not in (TENANT, CONTAINER):
            raise CallerError(f"`{path}` is an {target.level}, expected a tenant or a container")
        return target
