"""Deploying a filter: a static assignment, by a policy whose sentence is written here.

The policy has the origin ``deploy/<keyword>`` and is shown, counted and deleted like any other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from sluice_controller.catalog import reference_guards
from sluice_controller.catalog.backend import Backend
from sluice_controller.catalog.groups import resolve_member
from sluice_controller.catalog.policy_cache import CacheContents, CachedPolicy
from sluice_controller.catalog.vocabulary_index import parameter_text, path_target
from sluice_controller.policies import generated_policies
from sluice_controller.policies.generated_policies import GeneratedPolicies
from sluice_controller.policies.services import Authorize, allow_all
from sluice_controller.validation.bodies import Body
from sluice_controller.validation.names import near_miss
from sluice_controller.validation.parameters import refuse_unknown
from sluice_core.describe import FILTER, PLACES, ActionInfo
from sluice_core.errors import CallerError, Conflict, NotFound
from sluice_core.messages.policies import Target
from sluice_dsl.catalogue.base import Catalogue
from sluice_dsl.plan import PlannedAction

FIELDS: Final = ("params", "place")


@dataclass(frozen=True, slots=True)
class Deployment:
    """A filter that is set for a target without a condition on metrics."""

    policy: CachedPolicy
    action: PlannedAction


def origin_of(keyword: str) -> str:
    """The origin of the policies of deployments."""
    return f"deploy/{keyword}"


def target_of(path: str, catalogue: Catalogue) -> Target:
    """The target ``account[/container[/object]]``, or with a project's name first; its label is the given text.

    :raises CallerError: when it is not a valid target
    """
    target = path_target(path)
    found = resolve_member(target.level, path, catalogue)
    return Target(target.level, target.select, found.path, found.label)


def list_deployed(contents: CacheContents, target: Target) -> list[Deployment]:
    """The filters that static policies set for exactly this target, oldest first."""
    return [
        Deployment(cached, action)
        for cached in contents.ordered
        if not cached.policy.dynamic and same_target(cached.plan.target, target)
        for action in cached.plan.actions
        if action.verb == "set" and action.kind == FILTER
    ]


def same_target(one: Target, other: Target) -> bool:
    """Whether both are the same target, whatever their labels."""
    return (one.level, one.select, one.name) == (other.level, other.select, other.name)


def keep_label(target: Target, old: Sequence[CachedPolicy], catalogue: Catalogue) -> Target:
    """``target`` with the label of its policies ``old``, if that still has the same meaning.

    So a repeated request may use the project's name or its account.
    """
    label = old[0].plan.target.label if old else target.label
    if not label:
        return replace(target, label="")
    try:
        member = resolve_member(target.level, label, catalogue)
    except CallerError:
        return replace(target, label="")
    return replace(target, label=label if member.path == target.name else "")


def deployment_sentence(target: Target, info: ActionInfo, data: Any) -> str:
    """The sentence that deploys the filter ``info`` with the parameters in ``data``, a body.

    Fields of the body besides :data:`FIELDS` are parameters of the filter, as IOStack 3.2 writes them.  The sentence
    has parameters in the order of the filter's declaration, so that the order in the body makes no difference.

    :raises CallerError: when ``data`` is not valid
    """
    beside = [name for name in data if name not in FIELDS] if isinstance(data, Mapping) else []
    declared = [one.name for one in info.parameters]
    refuse_unknown([one for one in beside if info.parameter(one) is None], (*FIELDS, *declared), "field or parameter")
    body = Body(data, *FIELDS, *beside)
    place = body.one_of("place", PLACES) if body.has("place") else ""
    params = _parameters(body, beside)
    params.sort(key=lambda pair: declared.index(pair[0]) if pair[0] in declared else len(declared))
    return generated_policies.write_sentence(target, info.keyword, params, place)


def _parameters(body: Body, beside: Sequence[str]) -> list[tuple[str, str]]:
    """Names and values of ``params``, and of the fields ``beside`` it that it does not have.

    :raises CallerError: when both have a parameter with different values
    """
    named = [(name.lower(), parameter_text(value)) for name, value in body.scalars("params").items()]
    inside = dict(named)
    for field in beside:
        name, value = field.lower(), parameter_text(body.scalar(field))
        if inside.get(name, value) != value:
            raise CallerError(f"`{field}` is `{value}`, but `{inside[name]}` in `params`; expected it in one of both")
        if name not in inside:
            named.append((name, value))
    return named


def deploy(
    backend: Backend, target: Target, keyword: str, data: Any, by: str, allow: Authorize = allow_all
) -> GeneratedPolicies:
    """Set a filter for a target; repeating it changes nothing, other parameters replace the former ones.

    :raises NotFound: when there is no such filter
    :raises PolicyErrors: when the parameters are not valid, or another policy sets it already
    """
    info = _filter_info(backend, keyword)

    def change() -> GeneratedPolicies:
        contents = backend.policy_cache.contents()
        catalogue = backend.vocabulary(contents)
        old = list(_of(contents, target, info.keyword))
        text = deployment_sentence(keep_label(target, old, catalogue), info, data)
        others = generated_policies.policies_except(contents, old)
        settled = generated_policies.plan_changes(text, origin_of(info.keyword), old, others, catalogue, awake=True)
        return generated_policies.commit(backend, [settled], by, allow=allow, contents=contents)

    return reference_guards.retry_conflicts(change)


def undeploy(backend: Backend, target: Target, keyword: str, by: str, allow: Authorize) -> GeneratedPolicies:
    """Remove a deployment.

    :raises NotFound: when it is not deployed there; the message names the policy that sets it if there is one
    """
    keyword = _filter_info(backend, keyword).keyword
    contents = backend.policy_cache.contents()
    old = tuple(_of(contents, target, keyword))
    if not old:
        users = [one.policy.policy.id for one in list_deployed(contents, target) if one.action.keyword == keyword]
        hint = f"; policy `{users[0]}` sets it, delete that" if users else ""
        raise NotFound(f"filter `{keyword}` is not deployed at {target.level} `{target.name}`{hint}")
    return generated_policies.commit(
        backend, [generated_policies.PolicyChanges(origin_of(keyword), (), old, ())], by, allow=allow
    )


def _of(contents: CacheContents, target: Target, keyword: str) -> Iterator[CachedPolicy]:
    origin = origin_of(keyword)
    return (one for one in contents.ordered if one.policy.origin == origin and same_target(one.plan.target, target))


def _filter_info(backend: Backend, keyword: str) -> ActionInfo:
    catalogue = backend.catalogue
    alias = catalogue.actions_by_alias.get(keyword.lower())
    info = catalogue.action(alias.keyword if alias else keyword)
    if info is None:
        raise NotFound(f"there is no filter `{keyword}`{near_miss(keyword, catalogue.actions)}")
    if info.kind != FILTER:
        raise CallerError(f"`{info.keyword}` is not a filter, expected one; a policy can set it")
    if alias is not None:
        raise CallerError(f"`{keyword}` is an alias, deploy filter `{info.keyword}` with its parameters")
    return info


def find_deployment(backend: Backend, policy_id: str) -> Deployment:
    """The deployment of a policy.

    :raises Conflict: when it was deleted meanwhile
    """
    cached = backend.policy_cache.contents().policies.get(policy_id)
    if cached is None:
        raise Conflict(f"policy `{policy_id}` of this deployment was deleted meanwhile")
    return Deployment(cached, cached.plan.actions[0])
