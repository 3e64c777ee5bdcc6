"""The members of groups, from the registry, kept up to date with the change stream."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from typing import Final

from sluice_core.messages.policies import Change, Entry
from sluice_core.messages.registry import GROUP_KINDS, is_member

_NOBODY: Final[Mapping[str, None]] = {}
_KINDS: Final = {level: one.member for level, one in GROUP_KINDS.items()}


class GroupIndex:
    """All groups of one store; an unknown group has no members."""

    def __init__(self) -> None:
        #: ``kind/group`` → the paths of its members, in the order in which they were added.
        self._members: dict[str, dict[str, None]] = {}

    def contains(self, level: str, group: str, path: str) -> bool:
        """True when ``path`` is a member of the ``group`` of tenants, containers or volumes (``level``) now."""
        return path in self._members.get(f"{_KINDS.get(level)}/{group}", ())

    def members(self, level: str, group: str) -> tuple[str, ...]:
        """Return the current paths of the members; safe in any thread."""
        return tuple(self._members.get(f"{_KINDS.get(level)}/{group}", ()))

    def among(self, level: str, group: str, paths: Set[str]) -> Set[str]:
        """Return those of ``paths`` that are members, at the cost of the smaller of both; safe in any thread."""
        return self._members.get(f"{_KINDS.get(level)}/{group}", _NOBODY).keys() & paths

    def replace(self, entries: Iterable[Entry]) -> None:
        """Replaces all members by those among ``entries``."""
        self._members = {}
        self._add(entries)

    def apply(self, change: Change) -> None:
        """Applies the changes of members in ``change``, at the cost of the change, not of the groups."""
        for group, path in map(_apart, filter(is_member, change.entry_drops)):
            known = self._members.get(group, {})
            known.pop(path, None)
            if not known:
                self._members.pop(group, None)
        self._add(change.entries)

    def _add(self, entries: Iterable[Entry]) -> None:
        for group, path in (_apart(entry.key) for entry in entries if is_member(entry.key)):
            self._members.setdefault(group, {})[path] = None


def _apart(key: str) -> tuple[str, str]:
    """Split ``kind/group/path`` into ``kind/group`` and the path, which may contain slashes."""
    kind, _, rest = key.partition("/")
    group, _, path = rest.partition("/")
    return f"{kind}/{group}", path
