"""Reads policies from the store, and makes their actors; a policy that cannot run gets the state `failed`.

Thousands of sentences share their actions and conditions, so their plans are kept with one copy of each equal part.
"""

from __future__ import annotations

import contextlib
import json
import logging
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeVar

from sluice_actors.policies.actor import Context, PolicyActor, SingleActor
from sluice_actors.policies.decision_writer import DecisionWriter
from sluice_actors.policies.family_actor import FamilyActor, is_family
from sluice_core.errors import Conflict, DecodeError
from sluice_core.messages.events import POLICY_SUSPENDED
from sluice_core.messages.policies import Assignment, Policy, PolicyState, policy_of_assignment
from sluice_core.store import fencing
from sluice_core.store.records import Draft
from sluice_core.store.store import AsyncStore
from sluice_dsl.plan import Plan

log = logging.getLogger(__name__)

#: The number of slots after whose policies a host checks whether it still owns the rest.
_SLOTS_PER_STEP: Final = 8


@dataclass(frozen=True, slots=True)
class StoredPolicy:
    """One policy: its document with the version, the state that its actor wrote, and its assignments in force."""

    policy: Policy
    version: int
    state: PolicyState | None
    assignments: Sequence[Assignment]


@dataclass(frozen=True, slots=True)
class PolicyNames:
    """The names of the stored objects: slot → ids of policies, and policy id → ids of its assignments."""

    policies: Mapping[str, Sequence[str]]
    assigned: Mapping[str, Sequence[str]]


def steps(slots: Collection[str]) -> Iterator[set[str]]:
    """Split ``slots`` into parts; after each part a host checks whether it still owns the rest."""
    for at in range(0, fencing.SLOTS, _SLOTS_PER_STEP):
        yield set(slots).intersection(map(str, range(at, at + _SLOTS_PER_STEP)))


async def read_names(store: AsyncStore, wanted: Callable[[str], bool]) -> PolicyNames:
    """The policies whose slot is ``wanted``.

    :raises PeerError: when Redis is unreachable
    """
    policies: dict[str, list[str]] = defaultdict(list)
    assigned: dict[str, list[str]] = defaultdict(list)
    for name in await store.run(fencing.hash_fields(store.keys.policies)):
        slot = fencing.slot_of(name)
        if wanted(slot):
            policies[slot].append(name)
    for name in await store.run(fencing.hash_fields(store.keys.assignments)):
        policy = policy_of_assignment(name)
        if wanted(fencing.slot_of(policy)):
            assigned[policy].append(name)
    return PolicyNames(policies, assigned)


async def read_policies(
    store: AsyncStore, names: PolicyNames, slots: Iterable[str]
) -> AsyncIterator[list[StoredPolicy]]:
    """All policies in ``slots``, some hundred at a time.

    :raises PeerError: when Redis is unreachable
    """
    keys = store.keys
    for chunk in fencing.chunks([name for slot in slots for name in names.policies.get(slot, ())]):
        ids = [name for policy in chunk for name in names.assigned.get(policy, ())]
        stored: dict[str, list[Assignment]] = defaultdict(list)
        for part in fencing.chunks(ids):
            for one in await store.run(fencing.assignments(keys, part)):
                stored[one.policy].append(one)
        found = await store.run(fencing.policies(keys, chunk))
        yield [StoredPolicy(policy, version, state, stored[policy.id]) for policy, version, state in found]


T = TypeVar("T")

FAILED: Final = "failed"
_LIMIT: Final = 10_000


class PlanCache:
    """Decodes plans and keeps one copy of each equal part."""

    def __init__(self) -> None:
        self._shared: dict[str, Any] = {}

    def decode(self, data: Mapping[str, Any]) -> Plan:
        """The plan in a policy's ``plan``.

        :raises DecodeError: when it is not a plan, or has no metric
        """
        plan = Plan.from_data(data)
        if not plan.dynamic:
            raise DecodeError(f"plan without a metric: `{dict(data)!r}`")
        return replace(
            plan,
            actions=self._share("actions", data["actions"], lambda: plan.actions),
            condition=self._share("condition", data.get("condition", True), lambda: plan.condition),
            metrics=self._share("metrics", plan.metrics, lambda: plan.metrics),
            granularity=self._share("granularity", plan.granularity, lambda: plan.granularity),
            readings=self._share("readings", plan.readings, lambda: plan.readings),
        )

    def _share(self, kind: str, data: Any, make: Callable[[], T]) -> T:
        if len(self._shared) >= _LIMIT:
            self._shared.clear()  # actors keep the parts that they use; sharing starts again
        found: T = self._shared.setdefault(f"{kind}{json.dumps(data, sort_keys=True)}", make())
        return found


def policy_actor(
    context: Context, policy: str, plan: Plan, created: int, version: int, state: PolicyState | None = None
) -> PolicyActor:
    """The actor of ``plan``.

    :raises DecodeError: when ``state`` does not fit it
    """
    kind = FamilyActor if is_family(plan.target, plan.granularity) else SingleActor
    return kind(context, policy, plan, created, version, state)


@dataclass(slots=True)
class ActorFactory:
    """Makes the actors of one host, all of them in one ``context``; ``writer`` is its listener."""

    context: Context
    writer: DecisionWriter
    _plans: PlanCache = field(default_factory=PlanCache)

    async def create(self, stored: StoredPolicy) -> PolicyActor | None:
        """Create the actor of a policy, not started; None if it cannot run, which is then written to the store.

        :raises PeerError: when Redis is unreachable
        """
        try:
            return self._make(stored)
        except DecodeError as error:
            await self._refuse(stored, error)
            return None

    def _make(self, stored: StoredPolicy) -> PolicyActor:
        policy = stored.policy
        given = (self.context, policy.id, self._plans.decode(policy.plan), policy.created, stored.version)
        try:
            return policy_actor(*given, stored.state)
        except DecodeError as error:
            log.error("policy `%s` starts without its state, which cannot be used: %s", policy.id, error)
            return policy_actor(*given)

    async def _refuse(self, stored: StoredPolicy, error: DecodeError) -> None:
        """Record that no actor can run for a policy; its assignments stay in force."""
        name, state = stored.policy.id, stored.state
        log.error("policy `%s` cannot run: %s", name, error)
        members, firings = (state.members, state.firings) if state is not None else ({}, ())
        if state is None or (state.status, state.reason) != (FAILED, str(error)):
            self.writer.log_event(POLICY_SUSPENDED, f"policy `{name}` cannot run: {error}", policy=name)
        failed = PolicyState(name, FAILED, members, firings, str(error))
        fence = self.writer.ownership.fence((name,))
        draft = Draft(self.writer.by, states=(failed,), expect={f"policy/{name}": stored.version}, fence=fence)
        with contextlib.suppress(Conflict):  # the policy was replaced meanwhile; the stream brings that change next
            await self.writer.store.commit(draft)
