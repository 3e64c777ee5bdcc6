"""Objectives of bandwidth whose sentences are written here: IOStack's values and Crystal's service level objectives.

A value of ``/bw`` is the floor of a tenant on each object server; an objective of ``/bw/slo`` holds over the whole
cluster.  Each becomes a policy like any other, of origin ``bw/…`` or ``slo/…``, one for each account and storage
policy: the objectives of a tenant are in one sentence, since two policies that set the same would contradict
each other.  The language checks the values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from sluice_controller.catalog import reference_guards
from sluice_controller.catalog.backend import Backend
from sluice_controller.catalog.policy_cache import CacheContents, CachedPolicy
from sluice_controller.catalog.vocabulary_index import parameter_text as as_word
from sluice_controller.policies import deployments, generated_policies
from sluice_controller.policies.bandwidth_checks import check_bandwidth
from sluice_controller.policies.generated_policies import GeneratedPolicies, PolicyChanges
from sluice_controller.validation.parameters import refuse_unknown
from sluice_core.describe import BANDWIDTH, STORAGE_NODE, Scalar
from sluice_core.errors import NotFound
from sluice_core.messages.bandwidth import CEILINGS, FLOORS, NODE_FLOORS, STORAGE_POLICY
from sluice_core.messages.policies import NAME, TENANT, Target
from sluice_dsl.bandwidth_doubts import bandwidth_actions
from sluice_dsl.catalogue.base import Catalogue
from sluice_dsl.compile import compile_text
from sluice_dsl.diagnostics import PolicyConflict, join_words
from sluice_dsl.plan import PlannedAction
from sluice_dsl.syntax.units import write_value

#: The prefixes of the policies' origins.
BW: Final = "bw"
SLO: Final = "slo"
#: The objectives that a tenant can have over the whole cluster.
NAMES: Final = (*FLOORS.values(), *CEILINGS.values())
#: The parameter of IOStack's values.
NODE_FLOOR: Final = NODE_FLOORS["GET"]
RATES: Final = (*NAMES, NODE_FLOOR)


@dataclass(frozen=True, slots=True)
class Scope:
    """The scope of objectives: a tenant, under one storage policy, or (empty) under all."""

    target: Target
    storage_policy: str = ""

    def origin(self, sort: str) -> str:
        """The origin of the policy with the objectives."""
        return "/".join(filter(None, (sort, self.target.name, self.storage_policy)))

    def covers(self, account: str, storage_policy: str) -> bool:
        """Whether an objective of ``account`` under ``storage_policy`` is in this scope."""
        return account == self.target.name and same_storage_policy(storage_policy, self.storage_policy)


@dataclass(frozen=True, slots=True)
class Objective:
    """A service level objective: ``value`` bytes per second, in one policy with the others of its scope."""

    name: str
    value: float
    storage_policy: str
    policy: CachedPolicy

    @property
    def account(self) -> str:
        """The account of its tenant."""
        return self.policy.plan.target.name


def read_scope(backend: Backend, account: str, storage_policy: str = "") -> Scope:
    """The scope of a tenant, which may be given by its project's name.

    :raises CallerError: when it is not a tenant
    """
    return Scope(deployments.target_of(account, backend.catalogue), storage_policy)


def list_objectives(contents: CacheContents) -> Iterator[Objective]:
    """All service level objectives that were set by ``/bw/slo``, oldest first."""
    for cached in policies_by_sort(contents, SLO):
        params = bandwidth_action(cached).params
        for name in NAMES:
            value = params.get(name)
            if isinstance(value, int | float):
                yield Objective(name, float(value), storage_policy_of(cached), cached)


def find_objective(contents: CacheContents, where: Scope, name: str) -> Objective:
    """One objective.

    :raises CallerError: when there is no objective of this name
    :raises NotFound: when the tenant does not have it
    """
    refuse_unknown([name], NAMES, "objective")
    for one in list_objectives(contents):
        if one.name == name and where.covers(one.account, one.storage_policy):
            return one
    under = f" under storage policy `{where.storage_policy}`" if where.storage_policy else ""
    raise NotFound(f"tenant `{where.target.name}` has no objective `{name}`{under}")


def storage_policy_of(one: CachedPolicy) -> str:
    """The storage policy of an objective; empty for all."""
    return storage_policy_in(bandwidth_action(one))


def policies_by_sort(contents: CacheContents, sort: str) -> list[CachedPolicy]:
    """The policies of one sort that still have objectives of one tenant, however they were changed since."""
    return [
        cached
        for cached in contents.ordered
        if cached.policy.origin.startswith(f"{sort}/")
        and (cached.plan.target.level, cached.plan.target.select) == (TENANT, NAME)
        and bandwidth_actions(cached.plan)
    ]


def promises_of_scope(contents: CacheContents, sort: str, where: Scope) -> list[CachedPolicy]:
    """The policies of one sort that have objectives in a scope."""
    return [
        one for one in policies_by_sort(contents, sort) if where.covers(one.plan.target.name, storage_policy_of(one))
    ]


def bandwidth_action(one: CachedPolicy) -> PlannedAction:
    """The action with the objectives."""
    return bandwidth_actions(one.plan)[0]


def storage_policy_in(action: PlannedAction) -> str:
    """The storage policy of an action; empty for all."""
    return str(action.params.get(STORAGE_POLICY, ""))


def parameters(old: list[CachedPolicy]) -> dict[str, Scalar]:
    """The objectives of all of ``old`` together."""
    return {name: value for one in old for name, value in bandwidth_action(one).params.items()}


def same_storage_policy(one: str, other: str) -> bool:
    """Whether both are one storage policy; Swift ignores the case of their names."""
    return one.casefold() == other.casefold()


def set_node_floor(backend: Backend, where: Scope, value: str, by: str) -> GeneratedPolicies:
    """Set the floor on each object server; the same value changes nothing, another value replaces it.

    :raises PolicyErrors: when ``value`` is not valid, or another policy sets this objective already
    """
    return _set(backend, BW, where, NODE_FLOOR, value, by)


def set_objective(backend: Backend, where: Scope, name: str, value: str, by: str) -> GeneratedPolicies:
    """Set one objective; the tenant's others stay, and are switched on with it if they were switched off.

    :raises CallerError: when there is no objective ``name``
    :raises PolicyErrors: when ``value`` is not valid, or another policy sets this objective already
    """
    refuse_unknown([name], NAMES, "objective")
    return _set(backend, SLO, where, name, value, by)


def clear_node_floors(backend: Backend, account: str, storage_policy: str, by: str) -> list[str]:
    """Delete IOStack's values: all, those of an account, or that under one storage policy; return the policies' ids."""
    name = read_scope(backend, account).target.name if account else ""

    def change() -> list[str]:
        old = [
            cached
            for cached in policies_by_sort(backend.policy_cache.contents(), BW)
            if name in ("", cached.plan.target.name)
            and (not storage_policy or same_storage_policy(storage_policy_of(cached), storage_policy))
        ]
        generated_policies.commit(backend, [PolicyChanges(BW, (), tuple(old), ())], by)
        return [one.policy.id for one in old]

    return reference_guards.retry_conflicts(change)


def delete_objective(backend: Backend, where: Scope, name: str, by: str) -> GeneratedPolicies:
    """Delete one objective; the tenant's others stay.

    :raises NotFound: when the tenant does not have it
    """

    def change() -> GeneratedPolicies:
        contents = backend.policy_cache.contents()
        find_objective(contents, where, name)
        old = promises_of_scope(contents, SLO, where)
        params = {key: value for key, value in parameters(old).items() if key != name}
        if not any(rate in params for rate in RATES):
            return generated_policies.commit(backend, [PolicyChanges(where.origin(SLO), (), tuple(old), ())], by)
        return _settle(backend, contents, SLO, where, old, params, by)

    return reference_guards.retry_conflicts(change)


def _set(backend: Backend, sort: str, where: Scope, name: str, value: str, by: str) -> GeneratedPolicies:
    def change() -> GeneratedPolicies:
        contents = backend.policy_cache.contents()
        catalogue = backend.vocabulary(contents)
        given = {name: value, **({STORAGE_POLICY: where.storage_policy} if where.storage_policy else {})}
        (asked,) = compile_text(_sentence(where.target, given, _place(sort)), catalogue)
        old = promises_of_scope(contents, sort, where)
        params = {**(parameters(old) if sort == SLO else {}), **asked.plan.actions[0].params}
        return _settle(backend, contents, sort, where, old, params, by)

    return reference_guards.retry_conflicts(change)


def _settle(
    backend: Backend,
    contents: CacheContents,
    sort: str,
    where: Scope,
    old: list[CachedPolicy],
    params: Mapping[str, Scalar],
    by: str,
) -> GeneratedPolicies:
    catalogue = backend.vocabulary(contents)
    target = deployments.keep_label(where.target, old, catalogue) if old else where.target
    place = bandwidth_action(old[0]).place if old and sort == SLO else _place(sort)
    usual = catalogue.actions[BANDWIDTH].default_place
    text = _sentence(target, _texts(params, catalogue), "" if place == usual else place)
    gone = {one.policy.id for one in old}
    others = [one for one in contents.ordered if one.policy.id not in gone]
    try:
        settled = generated_policies.plan_changes(
            text, where.origin(sort), old, [one.existing for one in others], catalogue, awake=True
        )
    except PolicyConflict as error:
        first = replace(error.problems[0], message=_in_the_way(error, where, others))
        raise PolicyConflict([first], error.warnings) from error
    settled = replace(settled, new=check_bandwidth(backend, text, settled.new, others))
    return generated_policies.commit(backend, [settled], by, contents=contents)


def _in_the_way(error: PolicyConflict, where: Scope, others: Iterable[CachedPolicy]) -> str:
    """The message that names the policy with this objective, and the call that removes it."""
    for other in others:
        target = other.plan.target
        under = [storage_policy_in(each) for each in bandwidth_actions(other.plan)]
        promises = not other.plan.dynamic and any(where.covers(target.name, each) for each in under)
        if promises and (target.level, target.select) == (TENANT, NAME):
            what = f"policy `{other.policy.id}` has an objective of this tenant already: `{other.policy.text}`"
            return f"{what}; {_take_back(other)} first"
    return error.problems[0].message


def _take_back(cached: CachedPolicy) -> str:
    """The call that removes the objectives of a policy."""
    sort, _, _ = cached.policy.origin.partition("/")
    account, policy = cached.plan.target.name, storage_policy_of(cached)
    under = f"/{policy}" if policy else ""
    if sort == BW:
        return f"unset it with `PUT /bw/clear/{account}{under}`"
    if sort == SLO:
        names = [name for name in NAMES if name in bandwidth_action(cached).params]
        return f"unset it with {join_words([f'`DELETE /bw/slo/{account}/{name}{under}`' for name in names], 'and')}"
    return f"delete it with `DELETE /policies/{cached.policy.id}`"


def _sentence(target: Target, params: Mapping[str, str], place: str) -> str:
    tenant = Target(TENANT, NAME, target.name, target.label)
    return generated_policies.write_sentence(tenant, BANDWIDTH, params.items(), place)


def _texts(params: Mapping[str, Scalar], catalogue: Catalogue) -> dict[str, str]:
    """Parameters in the form of a sentence, always in the same order and units."""
    info = catalogue.actions[BANDWIDTH]
    return {
        one.name: write_value(value, one.type) if one.type == "rate" else as_word(value)
        for one in info.parameters
        if (value := params.get(one.name)) is not None
    }


def _place(sort: str) -> str:
    """The server that throttles: for a rate of an object server, the object server itself."""
    return STORAGE_NODE if sort == BW else ""
