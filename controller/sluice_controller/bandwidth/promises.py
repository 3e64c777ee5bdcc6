"""Policies that promise bandwidth to a tenant, as IOStack's values or as service level objectives, and their scopes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from sluice_controller.catalog.backend import Backend
from sluice_controller.catalog.policy_cache import CacheContents, CachedPolicy
from sluice_controller.policies import deployments
from sluice_controller.validation.parameters import refuse_unknown
from sluice_core.describe import Scalar
from sluice_core.errors import NotFound
from sluice_core.messages.bandwidth import CEILINGS, FLOORS, NODE_FLOORS, STORAGE_POLICY
from sluice_core.messages.policies import NAME, TENANT, Target
from sluice_dsl.bandwidth_doubts import bandwidth_actions
from sluice_dsl.plan import PlannedAction

#: What the policies' origins begin with.
BW: Final = "bw"
SLO: Final = "slo"
#: The objectives that a tenant can have over the whole cluster.
NAMES: Final = (*FLOORS.values(), *CEILINGS.values())
#: What IOStack's values are.
NODE_FLOOR: Final = NODE_FLOORS["GET"]
RATES: Final = (*NAMES, NODE_FLOOR)


@dataclass(frozen=True, slots=True)
class Scope:
    """Whose promises: of a tenant, under one storage policy, or (empty) under all."""

    target: Target
    storage_policy: str = ""

    def origin(self, sort: str) -> str:
        """What the policy with the promises carries."""
        return "/".join(filter(None, (sort, self.target.name, self.storage_policy)))

    def covers(self, account: str, storage_policy: str) -> bool:
        """Whether a promise to ``account`` under ``storage_policy`` is one of these."""
        return account == self.target.name and same_storage_policy(storage_policy, self.storage_policy)


@dataclass(frozen=True, slots=True)
class Objective:
    """A service level objective: ``value`` bytes per second, in one policy with its neighbours."""

    name: str
    value: float
    storage_policy: str
    policy: CachedPolicy

    @property
    def account(self) -> str:
        """Whose it is."""
        return self.policy.plan.target.name


def read_scope(backend: Backend, account: str, storage_policy: str = "") -> Scope:
    """The scope of a tenant, which may be called by its project's name.

    :raises CallerError: when it can be none
    """
    return Scope(deployments.target_of(account, backend.catalogue), storage_policy)


def list_objectives(contents: CacheContents) -> Iterator[Objective]:
    """All service level objectives that were set here, oldest first."""
    for one in policies_by_sort(contents, SLO):
        params = bandwidth_action(one).params
        for name in NAMES:
            value = params.get(name)
            if isinstance(value, int | float):
                yield Objective(name, float(value), storage_policy_of(one), one)


def find_objective(contents: CacheContents, where: Scope, name: str) -> Objective:
    """One objective.

    :raises CallerError: when there can be none of this name
    :raises NotFound: when the tenant has it not
    """
    refuse_unknown([name], NAMES, "objective")
    for one in list_objectives(contents):
        if one.name == name and where.covers(one.account, one.storage_policy):
            return one
    under = f" under storage policy `{where.storage_policy}`" if where.storage_policy else ""
    raise NotFound(f"tenant `{where.target.name}` has no objective `{name}`{under}")


def storage_policy_of(one: CachedPolicy) -> str:
    """The storage policy that a promise is about; empty for all."""
    return storage_policy_in(bandwidth_action(one))


def policies_by_sort(contents: CacheContents, sort: str) -> list[CachedPolicy]:
    """The policies of one sort that still promise something to one tenant, whatever somebody made of them since."""
    return [
        one
        for one in contents.ordered
        if one.policy.origin.startswith(f"{sort}/")
        and (one.plan.target.level, one.plan.target.select) == (TENANT, NAME)
        and bandwidth_actions(one.plan)
    ]


def promises_of_scope(contents: CacheContents, sort: str, where: Scope) -> list[CachedPolicy]:
    """The policies of one sort that promise something within a scope."""
    return [
        one for one in policies_by_sort(contents, sort) if where.covers(one.plan.target.name, storage_policy_of(one))
    ]


def bandwidth_action(one: CachedPolicy) -> PlannedAction:
    """The action that makes the promise."""
    return bandwidth_actions(one.plan)[0]


def storage_policy_in(action: PlannedAction) -> str:
    """The storage policy that an action names; empty for all."""
    return str(action.params.get(STORAGE_POLICY, ""))


def parameters(old: list[CachedPolicy]) -> dict[str, Scalar]:
    """What all of ``old`` promise together."""
    return {name: value for one in old for name, value in bandwidth_action(one).params.items()}


def same_storage_policy(one: str, other: str) -> bool:
    """Whether both are one storage policy; Swift does not look at the case of their names."""
    return one.casefold() == other.casefold()
