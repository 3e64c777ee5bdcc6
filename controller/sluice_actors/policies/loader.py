"""Policies read from the store, with all that an actor needs to go on; only those that are asked for."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sluice_core.messages.policies import Assignment, Policy, PolicyState, policy_of_assignment
from sluice_core.store import fencing
from sluice_core.store.store import AsyncStore

_SLOTS_PER_STEP: Final = 8


@dataclass(frozen=True, slots=True)
class StoredPolicy:
    """One policy: its document with the version, what its actor wrote, and what is in force for it."""

    policy: Policy
    version: int
    state: PolicyState | None
    assignments: Sequence[Assignment]


@dataclass(frozen=True, slots=True)
class PolicyNames:
    """What there is to read: slot → ids of policies, and policy id → ids of its assignments."""

    policies: Mapping[str, Sequence[str]]
    assigned: Mapping[str, Sequence[str]]


def steps(slots: Collection[str]) -> Iterator[set[str]]:
    """``slots`` in parts, after each of which a host looks whether it is still to have the rest."""
    for at in range(0, fencing.SLOTS, _SLOTS_PER_STEP):
        yield set(slots).intersection(map(str, range(at, at + _SLOTS_PER_STEP)))


async def read_names(store: AsyncStore, wanted: Callable[[str], bool]) -> PolicyNames:
    """The policies whose slot is ``wanted``.

    :raises PeerError: when Redis is away
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

    :raises PeerError: when Redis is away
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
