"""``/permissions``: what the caller may do, decided by the rules and the targets by which all other views decide."""

from __future__ import annotations

from typing import Final

from rest_framework.request import Request
from rest_framework.response import Response

from sluice_controller.api.openapi import operation, query_text
from sluice_controller.api.permissions import allowed_operations, plan_target, self_service_target, thing_target
from sluice_controller.api.serializers.cluster.permissions import PermissionsSerializer
from sluice_controller.api.view import View
from sluice_controller.catalog.vocabulary_index import path_target
from sluice_controller.identity.rules import Rule, Target
from sluice_core.errors import CallerError
from sluice_core.messages.policies import ALL, CLUSTER, CONTAINER, GROUP, OBJECT, TENANT, VOLUME
from sluice_dsl.catalogue.base import Catalogue

#: Level → the least number of slashes in a path of it.
_SLASHES: Final = {TENANT: 0, CONTAINER: 1, OBJECT: 2, VOLUME: 1}
_FORM: Final = "account[/container[/object]], or what follows FOR in a sentence: `VOLUME account/id`, `GROUP name`"


class PermissionsView(View):
    """What the caller may do."""

    def _target(self) -> Target | None:
        """What rules see of the target or the policy in the query; None without either."""
        text, policy = self.given["target"], self.given["policy"]
        if text and policy:
            raise CallerError("expected `target` or `policy`, not both")
        if text:
            return read_target(text, self.backend.catalogue)
        if not policy:
            return None
        contents = self.backend.policy_cache.contents()
        found = contents.policies.get(policy)
        return plan_target(found.plan, contents.uploads) if found else thing_target(CONTAINER)


@operation(
    "GET /permissions",
    Rule("sluice:permissions:show", "@", "ask what one may do oneself; everybody with a token"),
    PermissionsSerializer,
    query_text("target", f"{_FORM}; only operations about things are answered"),
    query_text("policy", "the id of a policy, in place of a target"),
    query_text("filter", "the keyword of a filter that is set or deleted; without it one that is self-service"),
    query_text("stereotype", "the name of a stereotype that is applied"),
)
def show_permissions(view: PermissionsView, request: Request) -> Response:
    """Say what the caller may do, to a target or, without one, at all.

    Without a target, an operation about a thing or a list is allowed when it is to what is the caller's own. Of
    somebody else's target, and of one that does not exist, everything is answered alike.
    """
    target = view._target()
    known = {"stereotype": view.given["stereotype"]} if view.given["stereotype"] else {}
    if view.given["filter"]:
        uploads = view.backend.policy_cache.contents().uploads
        known |= self_service_target([view.given["filter"].lower()], uploads)
    return Response({"permissions": allowed_operations(request.user, target, known)})


def read_target(text: str, catalogue: Catalogue) -> Target:
    """What rules see of the target that is called ``text``; whether there is one is not looked at.

    :raises CallerError: when it is no target
    :raises PeerError: when Keystone, which knows the account of a project's name, is away
    """
    word, _, rest = text.partition(" ")
    level = word.lower()
    if level in (CLUSTER, ALL, GROUP):
        return thing_target(level)
    if level not in _SLASHES or not rest:
        level, rest = path_target(text).level, text
    parts = rest.split("/", max(1, _SLASHES[level]))
    if len(parts) <= _SLASHES[level] or not all(parts):
        raise CallerError(f"`target` is `{text}`, expected {_FORM}")
    try:
        return thing_target(level, catalogue.account(parts[0]))
    except CallerError:  # projects of several domains are called so: it is none of these
        return thing_target(level)
