"""What actors wrote last of how each policy fares, kept in each worker process for filters and counts.

States hold what an actor continues from, and are large; of 10,000 of them a list of the failed ones needs one word
each.  Every commit counts up one number in Redis, and each state has the number of the commit that wrote it.  So one
look says that nothing changed, and otherwise only states with another number are read.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any, Final

from sluice_controller.catalog.policy_cache import CacheContents, CachedPolicy
from sluice_core.messages.policies import PolicyState
from sluice_core.store.fencing import chunks
from sluice_core.store.operation import Operation, decoded
from sluice_core.store.store import Store

ACTIVE: Final = "active"
WAITING: Final = "waiting"
FAILED: Final = "failed"
DISABLED: Final = "disabled"
STATES: Final = (ACTIVE, WAITING, FAILED, DISABLED)


class PolicyStatuses:
    """The statuses of all policies; safe to share between threads, does not connect when made."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._commit: tuple[str, int] = ("", -1)
        self._policies: Mapping[str, CachedPolicy] = {}
        self._versions: dict[str, int] = {}
        self._written: dict[str, str] = {}
        self._statuses: dict[str, str] = {}

    def current(self, contents: CacheContents) -> Mapping[str, str]:
        """Policy id → one of :data:`STATES`, of all policies in ``contents``.

        :raises PeerError: when Redis is away
        """
        with self._lock:
            commit = (contents.head.history, self._store.version("*"))
            if commit != self._commit or contents.policies is not self._policies:
                if commit[0] != self._commit[0]:
                    self._versions, self._written = {}, {}
                self._refresh(contents.policies)
                self._commit, self._policies = commit, contents.policies
            return self._statuses

    def _refresh(self, policies: Mapping[str, CachedPolicy]) -> None:
        """Read the states that were written since.

        The numbers are read before the states: a state that is newer than its number is read once more, never missed.
        """
        versions = state_versions(self._store, [name for name, one in policies.items() if one.policy.dynamic])
        changed = [name for name, version in versions.items() if version != self._versions.get(name)]
        written = {name: status for name, status in self._written.items() if name in versions}
        for some in chunks(changed):
            written |= {name: state.status for name, state in states_of(self._store, some).items()}
        self._versions, self._written = versions, written
        self._statuses = {name: policy_status(one, written.get(name)) for name, one in policies.items()}


def policy_status(cached: CachedPolicy, written: str | None) -> str:
    """A static policy is active; a dynamic one whose actor has written nothing yet is waiting."""
    if not cached.policy.enabled:
        return DISABLED
    if not cached.policy.dynamic:
        return ACTIVE
    return written or WAITING


def state_versions(store: Store, policies: Sequence[str]) -> dict[str, int]:
    """Policy id → the number of the commit that wrote its state, of some policies; those without one are left out.

    :raises PeerError: when Redis is away
    """
    if not policies:
        return {}
    fields = [f"state/{name}" for name in policies]

    def parse(replies: list[Any]) -> dict[str, int]:
        return {name: int(raw) for name, raw in zip(policies, replies[0], strict=True) if raw is not None}

    return store.run(Operation((("HMGET", store.keys.versions, *fields),), parse))


def states_of(store: Store, policies: Sequence[str]) -> dict[str, PolicyState]:
    """Policy id → what its actor wrote, of some policies; those of which nothing was written are left out.

    :raises PeerError: when Redis is away
    """
    if not policies:
        return {}

    def parse(replies: list[Any]) -> dict[str, PolicyState]:
        found = zip(policies, replies[0], strict=True)
        read = ((name, decoded(PolicyState, name, raw)) for name, raw in found)
        return {name: one for name, one in read if one is not None}

    return store.run(Operation((("HMGET", store.keys.states, *policies),), parse))
