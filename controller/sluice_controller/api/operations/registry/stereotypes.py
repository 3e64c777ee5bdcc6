"""``/stereotypes``: named sets of sentences, and the tenants that they are applied to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from django.conf import settings
from rest_framework.request import Request
from rest_framework.response import Response

from sluice_controller.api import resources
from sluice_controller.api.openapi import ETAG, FORCE, GONE, LIST, WAIT, in_path, operation
from sluice_controller.api.resources import Resource, no_content, render_entry, render_page
from sluice_controller.api.serializers import registry as shapes
from sluice_controller.api.view import View, etag
from sluice_controller.identity.rules import ADMIN, APPLIES, READER, READS_OWN, THING, Rule
from sluice_controller.policies import deployments
from sluice_controller.registry import stereotypes
from sluice_core.errors import CallerError
from sluice_core.messages.policies import CONTAINER, TENANT, Target


class _Stereotypes(Resource):
    """Stereotypes, whose texts have a maximum length."""

    def create(self, view: View, data: Any, by: str) -> Any:
        """The new stereotype."""
        return stereotypes.create(view.backend, data, by, settings.SLUICE.text_limit)

    def update(self, view: View, name: str, data: Any, by: str) -> Any:
        """The changed stereotype."""
        limit, expected = settings.SLUICE.text_limit, view.given["expected"]
        found, done = stereotypes.update(view.backend, name, data, by, limit, expected)
        view.wait_acknowledged(done.epoch)
        return found

    def respond(self, view: View, entry: Any) -> Response:
        """The stereotype, with the number of targets that it is applied to."""
        places = stereotypes.applications(view.backend.policy_cache.contents(), entry.record.name)
        return render_entry(shapes.ShownStereotypeSerializer.render(entry, applied=len(places)), entry.version)


_STEREOTYPES: Final = _Stereotypes(
    stereotypes,
    ("stereotypes",),
    in_path("stereotype", "the stereotype's name"),
    "Stereotypes by name.",
    shapes.StereotypeSerializer,
    shapes.NewStereotypeSerializer,
    shapes.STEREOTYPE,
)
#: The shape of a single stereotype, with its targets.
_SHOWN: Final = replace(_STEREOTYPES, shape=shapes.ShownStereotypeSerializer)
_NAME: Final = _STEREOTYPES.entry
_TARGET: Final = in_path("target", "a tenant, or `account/container`")

_STEREOTYPES.declare_list(
    Rule("sluice:stereotypes:list", READER, "list stereotypes"), "list_stereotypes", "List stereotypes"
)
_STEREOTYPES.declare_create(
    Rule("sluice:stereotypes:create", ADMIN, "create a stereotype"),
    "create_stereotype",
    "Create a stereotype: a named set of sentences with a placeholder for the target",
)
_SHOWN.declare_show(
    Rule("sluice:stereotypes:show", READER, "show a stereotype"), "show_stereotype", "Show a stereotype"
)
_SHOWN.declare_update(
    Rule("sluice:stereotypes:update", ADMIN, "change a stereotype"),
    "update_stereotype",
    "Change a stereotype, and with it every target that it is applied to, in one change or not at all",
    WAIT,
    description="The changed stereotype.",
)
_STEREOTYPES.declare_delete(
    Rule("sluice:stereotypes:delete", ADMIN, "delete a stereotype"), "delete_stereotype", "Delete a stereotype", FORCE
)


@operation(
    "GET /stereotypes/<name:stereotype>/tenants",
    Rule("sluice:stereotypes:targets", ADMIN, "list the targets of a stereotype"),
    shapes.AppliedPageSerializer,
    _NAME,
    ETAG,
    *LIST,
)
def list_stereotype_targets(view: View, request: Request, stereotype: str) -> Response:
    """List the tenants and containers that a stereotype is applied to.

    A page of targets, by path.
    """
    entry = stereotypes.find(view.backend, stereotype)
    places = stereotypes.applications(view.backend.policy_cache.contents(), stereotype)
    known = {path: policies for (_, path), policies in places.items()}
    response = render_page(view.given, "targets", known, shapes.AppliedSerializer.render)
    response["ETag"] = etag(entry.version)
    return response


class StereotypeTargetView(View):
    """One stereotype at one tenant or container."""

    def known_target(self) -> Mapping[str, str]:
        """The values of rules that are known before the target is read."""
        return {"stereotype": self.kwargs["stereotype"]}

    def render_application(self, stereotype: str, target: Target, **more: Any) -> Response:
        """The answer with the policies of the stereotype for ``target``."""
        policies = stereotypes.policies_applied_at(self.backend, stereotype, target)
        data = {**shapes.AppliedSerializer.render(policies), **more}
        return render_entry(data, max(one.version for one in policies))

    def find_target(self, request: Request, path: str) -> Target:
        """The target of ``path``, after the rule has allowed it."""
        target = deployments.target_of(path, self.backend.catalogue)
        self.authorize_target(request, target)
        if target.level not in (TENANT, CONTAINER):
            raise CallerError(f"`{path}` is an {target.level}, expected a tenant or a container")
        return target


@resources.show_operation(
    "GET /stereotypes/<name:stereotype>/tenants/<target:target>",
    Rule(
        "sluice:stereotypes:applied",
        f"{READS_OWN} or (rule:own and role:stereotype-%(stereotype)s)",
        "show the policies of a stereotype for a target",
        about=THING,
    ),
    shapes.AppliedSerializer,
    _NAME,
    _TARGET,
    summary="Show the policies of a stereotype for a target",
)
def show_stereotype_target(view: StereotypeTargetView, request: Request, stereotype: str, target: str) -> Response:
    """The target."""
    return view.render_application(stereotype, view.find_target(request, target))


@operation(
    "PUT /stereotypes/<name:stereotype>/tenants/<target:target>",
    Rule("sluice:stereotypes:apply", APPLIES, "apply a stereotype to a target", about=THING),
    shapes.ApplicationSerializer,
    _NAME,
    _TARGET,
    WAIT,
    ETAG,
    takes=None,
)
def apply_stereotype(view: StereotypeTargetView, request: Request, stereotype: str, target: str) -> Response:
    """Apply a stereotype to a tenant or a container: all of its sentences, or none.

    The target; repeating the call changes nothing.
    """
    where = view.find_target(request, target)
    done = stereotypes.apply(view.backend, stereotype, where, request.user.name)
    view.wait_acknowledged(done.epoch)
    return view.render_application(stereotype, where, changed=done.changed)


@operation(
    "DELETE /stereotypes/<name:stereotype>/tenants/<target:target>",
    Rule("sluice:stereotypes:take_back", APPLIES, "unapply a stereotype", about=THING),
    GONE,
    _NAME,
    _TARGET,
    WAIT,
)
def take_back_stereotype(view: StereotypeTargetView, request: Request, stereotype: str, target: str) -> Response:
    """Remove a stereotype from a target, and delete its policies.

    The answer has no body.
    """
    done = stereotypes.withdraw(view.backend, stereotype, view.find_target(request, target), request.user.name)
    view.wait_acknowledged(done.epoch)
    return no_content()
