"""Which assignments concern a place, by the keys under which nodes file and find them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from sluice_controller.catalog.backend import Backend
from sluice_controller.catalog.policy_cache import CacheContents
from sluice_core.errors import CallerError
from sluice_core.messages.policies import (
    CONTAINER,
    GROUP,
    LEVELS,
    NAME,
    TENANT,
    VOLUME,
    Assignment,
    Entry,
    Target,
    policy_of_assignment,
)
from sluice_core.messages.registry import CONTAINER_GROUP, MEMBER_KINDS
from sluice_core.snapshot.keys import snapshot_group_key, snapshot_key, snapshot_keys
from sluice_core.snapshot.records import record_key
from sluice_core.store.fencing import assignments, chunks, hash_fields

_DEPTHS: Final = {TENANT: 1, CONTAINER: 2, "object": 3}


@dataclass(frozen=True, slots=True)
class ResourcePath:
    """One account, container or object, and the keys of all records that concern it."""

    account: str
    container: str
    object: str
    keys: frozenset[bytes]

    @classmethod
    def read(cls, text: str, entries: Mapping[str, Entry]) -> ResourcePath:
        """The place called ``account[/container[/object]]``, with the groups in ``entries`` that it is in.

        :raises CallerError: when there is no account in it, or half a surrogate pair
        """
        account, _, rest = text.partition("/")
        container, _, obj = rest.partition("/")
        if not account or (obj and not container):
            raise CallerError(f"`target` is `{text}`, expected account[/container[/object]]")
        try:
            text.encode()
        except UnicodeEncodeError:
            raise CallerError("`target` holds half a surrogate pair, which is no character") from None
        keys = set(snapshot_keys(account, container, obj))
        paths = {TENANT: account, CONTAINER: f"{account}/{container}" if container else ""}
        for entry in entries.values():
            member = MEMBER_KINDS.get(entry.kind)
            level = CONTAINER if entry.kind == CONTAINER_GROUP else TENANT
            if member and paths[level] and f"{member}/{entry.name}/{paths[level]}" in entries:
                keys.add(snapshot_group_key(level, entry.name))
        return cls(account, container, obj, frozenset(keys))

    def matches(self, target: Target) -> bool:
        """Whether a policy about ``target`` may set something that concerns this place."""
        if target.level not in LEVELS:
            return False
        if target.select == NAME and target.name:
            return snapshot_key(target.level, target.name) in self.keys
        if target.select == GROUP:
            return snapshot_group_key(target.level, target.name) in self.keys
        return True

    def path_at(self, level: str) -> str:
        """The path of what this place is in at ``level``; empty for the cluster."""
        parts = (self.account, self.container, self.object)[: _DEPTHS.get(level, 0)]
        return "/".join(part for part in parts if part)

    @property
    def members(self) -> frozenset[str]:
        """All paths by which an actor may have set something for this place alone."""
        return frozenset(self.path_at(level) for level in _DEPTHS)

    @property
    def level(self) -> str:
        """tenant, container or object."""
        return "object" if self.object else CONTAINER if self.container else TENANT


def affected_assignments(backend: Backend, contents: CacheContents, place: ResourcePath) -> list[Assignment]:
    """The assignments that a node would find for ``place``; of all others only the ids are read."""
    store = backend.store
    ids = store.run(hash_fields(store.keys.assignments))
    wanted = [name for name in sorted(ids) if _may_concern(name, contents, place)]
    found = [one for some in chunks(wanted) for one in store.run(assignments(store.keys, some))]
    return [one for one in found if record_key(one) in place.keys and one.target.level != VOLUME]


def _may_concern(name: str, contents: CacheContents, place: ResourcePath) -> bool:
    _, at, member = name.partition("@")
    if at and member not in place.members:
        return False
    cached = contents.policies.get(policy_of_assignment(name))
    return cached is None or place.matches(cached.plan.target)
