"""Applies rules to requests: the permission class, and the functions that views call.

Each operation declares its rule, or :data:`OPEN` if it needs no token.  The permission class decides as far as it is
possible before the operation runs.  For a rule about an object or a list it refuses only callers that may access no
such object at all; the view then calls :func:`authorize` with the object, or :func:`visible_accounts` for the accounts
whose objects it may list.  A view that did neither has a bug: :func:`undecided_rule` withholds its answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Final

from django.conf import settings
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from sluice_controller.identity.caller import Identity
from sluice_controller.identity.rules import BY_NAME, PREFIX, THING, Rule, Rules, Target
from sluice_core.errors import Forbidden
from sluice_core.messages.policies import CONTAINER, NAME
from sluice_core.messages.uploads import Upload
from sluice_dsl.plan import Plan

#: In place of a rule's name: no token is needed.
OPEN: Final = "open"
_DECIDED: Final = "_sluice_decided"


@lru_cache(maxsize=8)
def load_rules(policy_file: str, operator_roles: str) -> Rules:
    """The rules with those of the file, read once per process."""
    return Rules(policy_file, operator_roles)


def current_rules() -> Rules:
    """The rules of this process."""
    return load_rules(settings.SLUICE.policy_file, settings.SLUICE.operator_roles)


def authorize(request: Request, rule: str, target: Target) -> None:
    """Check that the request may use ``rule`` on ``target``.

    :raises Forbidden: with the rule and the missing right
    """
    _decide(request.user, rule, target)
    _decided(request).add(rule)


def visible_accounts(request: Request, rule: str) -> frozenset[str] | None:
    """The accounts whose objects a list may show; None for all accounts."""
    _decided(request).add(rule)
    if current_rules().allows(request.user, f"{rule}_all", {}):
        return None
    project = request.user.project_id
    return frozenset({settings.SLUICE.reseller_prefix + project} if project else ())


def allowed_operations(identity: Identity, target: Target | None, known: Target) -> dict[str, bool]:
    """Whether ``identity`` may use each operation, by the names of rules without their prefix.

    :param target: an object, for the operations on objects; None for all operations, those on an object or a list
        with respect to the identity's own objects
    :param known: further values for rules about objects
    """
    rules = current_rules()
    return {
        name.removeprefix(PREFIX): rules.allows(
            identity, name, _first_target(identity, rule, known) if target is None else {**target, **known}
        )
        for name, rule in sorted(BY_NAME.items())
        if target is None or rule.about == THING
    }


def plan_target(plan: Plan, uploads: Mapping[str, Upload]) -> dict[str, str]:
    """The values of a plan for rules; only a target given by its name can belong to a project."""
    keywords = self_service_target((one.keyword for one in plan.actions), uploads)
    if plan.target.select == NAME:
        return {**thing_target(plan.target.level, plan.target.name.partition("/")[0]), **keywords}
    return {**thing_target(plan.target.select), **keywords}


def thing_target(level: str, account: str = "") -> dict[str, str]:
    """The values of an object without a filter for rules.

    ``project_id`` is that of the project that owns the account; it is missing for an account of no project.
    """
    project = account.removeprefix(settings.SLUICE.reseller_prefix)
    own = {"project_id": project} if project and project != account else {}
    return {"level": level, "self_service": "True", **own}


def self_service_target(keywords: Iterable[str], uploads: Mapping[str, Upload]) -> dict[str, str]:
    """The values for rules of the ``keywords`` that an object sets or deletes."""
    vetted = settings.SLUICE.self_service_words | {word for word, one in uploads.items() if one.self_service}
    others = dict.fromkeys(word for word in keywords if word not in vetted)
    return {"self_service": str(not others), "not_self_service": ", ".join(f"`{word}`" for word in others)}


class RulePermission(BasePermission):
    """Checks the rule of the operation that is called."""

    def has_permission(self, request: Request, view: Any) -> bool:
        """Called by REST framework before the view; False becomes 401.

        :raises Forbidden: when the rule does not allow it
        """
        if not isinstance(request.user, Identity):
            return False
        if view.operation is None:  # the path does not have this method: 405 follows
            return True
        rule = BY_NAME.get(view.operation.rule)
        if rule is None:
            raise Forbidden(f"`{view.operation.rule}` is not a rule of this API")
        _decide(request.user, rule.name, _first_target(request.user, rule, view.known_target()))
        if rule.needs_no_target:
            _decided(request).add(rule.name)
        return True


def undecided_rule(request: Request, view: Any) -> str:
    """The rule that an operation should have decided and did not; empty if it did."""
    rule = view.operation.rule if view.operation else OPEN
    return "" if rule == OPEN or rule in _decided(request) else str(rule)


def refusal_of(identity: Identity, rule: str, target: Target) -> str:
    """Why ``identity`` may not use ``rule`` on ``target``; empty if it may."""
    rules = current_rules()
    if rules.allows(identity, rule, target):
        return ""
    return f"`{rule}` is not allowed to `{identity.name}`, it takes {rules.missing_rights(identity, rule, target)}"


def _decide(identity: Identity, rule: str, target: Target) -> None:
    refusal = refusal_of(identity, rule, target)
    if refusal:
        raise Forbidden(refusal)


def _first_target(identity: Identity, rule: Rule, known: Target) -> Target:
    """The target of a rule before the object is known: the one to which the identity has the most rights."""
    if rule.needs_no_target:
        return {}
    own = {"project_id": identity.project_id} if identity.project_id else {}
    return {"level": CONTAINER, "self_service": "True", **own, **known}


def _decided(request: Request) -> set[str]:
    """The rules that were decided for this request."""
    found: set[str] = request._request.__dict__.setdefault(_DECIDED, set())
    return found
