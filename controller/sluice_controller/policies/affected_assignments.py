"""Which assignments concern a place, by the keys under which nodes file and find them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from sluice_controller.catalog.backend import Backend
from sluice_controller.catalog.policy_cache import CacheContents
from sluice_core.describe import OBJECTS, VOLUMES
from sluice_core.errors import CallerError
from sluice_core.messages.policies import (
    CONTAINER,
    GROUP,
    LEVELS_ABOUT,
    NAME,
    OBJECT,
    TENANT,
    VOLUME,
    Assignment,
    Entry,
    Target,
    policy_of_assignment,
)
from sluice_core.messages.registry import GROUP_KINDS
from sluice_core.snapshot.keys import snapshot_group_key, snapshot_key, snapshot_keys, snapshot_volume_keys
from sluice_core.snapshot.records import record_key
from sluice_core.store.fencing import assignments, chunks, hash_fields

_DEPTHS: Final = {TENANT: 1, CONTAINER: 2, OBJECT: 3}


@dataclass(frozen=True, slots=True)
class ResourcePath:
    """One account, container or object, or one volume, and the keys of all records that concern it."""

    account: str
    container: str
    object: str
    keys: frozenset[bytes]
    volume: str = ""

    @classmethod
    def read(cls, text: str, entries: Mapping[str, Entry], account_of: Callable[[str], str] = str) -> ResourcePath:
        """The place called ``account[/container[/object]]``, with the groups in ``entries`` that it is in.

        :param account_of: the account of a tenant, which may be called by its project's name
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
        account = account_of(account)
        paths = {TENANT: account, CONTAINER: f"{account}/{container}" if container else ""}
        keys = {*snapshot_keys(account, container, obj), *_group_keys(paths, entries)}
        return cls(account, container, obj, frozenset(keys))

    @classmethod
    def read_volume(
        cls, text: str, entries: Mapping[str, Entry], account_of: Callable[[str], str] = str
    ) -> ResourcePath:
        """The volume called ``account/volume id``, with the groups in ``entries`` that it is in.

        :param account_of: the account of a tenant, which may be called by its project's name
        :raises CallerError: when it is not called so
        """
        account, _, volume = text.partition("/")
        if not account or not volume or "/" in volume or not text.isprintable():
            raise CallerError(f"`volume` is `{text}`, expected `account/volume id`")
        account = account_of(account)
        groups = _group_keys({TENANT: account, VOLUME: f"{account}/{volume}"}, entries)
        return cls(account, "", "", frozenset((*snapshot_volume_keys(account, volume), *groups)), volume)

    def matches(self, target: Target) -> bool:
        """Whether a policy about ``target`` may set something that concerns this place."""
        if LEVELS_ABOUT.get(target.level, self.about) != self.about:
            return False
        if target.select == NAME and target.name:
            return snapshot_key(target.level, target.name) in self.keys
        if target.select == GROUP:
            return snapshot_group_key(target.level, target.name) in self.keys
        return True

    def path_at(self, level: str) -> str:
        """The path of what this place is in at ``level``; empty for the cluster."""
        if level == VOLUME:
            return f"{self.account}/{self.volume}" if self.volume else ""
        parts = (self.account, self.container, self.object)[: _DEPTHS.get(level, 0)]
        return "/".join(part for part in parts if part)

    @property
    def members(self) -> frozenset[str]:
        """All paths by which an actor may have set something for this place alone."""
        return frozenset(filter(None, map(self.path_at, (*_DEPTHS, VOLUME))))

    @property
    def about(self) -> str:
        """Whether it is a volume, or else of objects."""
        return VOLUMES if self.volume else OBJECTS

    @property
    def level(self) -> str:
        """tenant, container, object or volume."""
        if self.volume:
            return VOLUME
        return OBJECT if self.object else CONTAINER if self.container else TENANT


def _group_keys(paths: Mapping[str, str], entries: Mapping[str, Entry]) -> Iterator[bytes]:
    """The keys of the groups' records, by the paths at the levels that groups may be of."""
    kinds = {GROUP_KINDS[level].group: level for level in paths}
    for entry in entries.values():
        level = kinds.get(entry.kind, "")
        path = paths.get(level, "")
        if path and f"{GROUP_KINDS[level].member}/{entry.name}/{path}" in entries:
            yield snapshot_group_key(level, entry.name)


def affected_assignments(backend: Backend, contents: CacheContents, place: ResourcePath) -> list[Assignment]:
    """The assignments that a node would find for ``place``; of all others only the ids are read."""
    store = backend.store
    ids = store.run(hash_fields(store.keys.assignments))
    wanted = [name for name in sorted(ids) if _may_concern(name, contents, place)]
    found = [one for some in chunks(wanted) for one in store.run(assignments(store.keys, some))]
    return [one for one in found if record_key(one) in place.keys and one.concerns(place.about)]


def _may_concern(name: str, contents: CacheContents, place: ResourcePath) -> bool:
    _, at, member = name.partition("@")
    if at and member not in place.members:
        return False
    cached = contents.policies.get(policy_of_assignment(name))
    return cached is None or place.matches(cached.plan.target)
