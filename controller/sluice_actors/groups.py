"""Who belongs to which group: the members in the registry, followed with everything else."""

from __future__ import annotations

from collections.abc import Iterable

from sluice_core.messages import CONTAINER, TENANT, Change, Entry
from sluice_core.registry import CONTAINER_MEMBER, TENANT_MEMBER, is_member

_KINDS = {TENANT: TENANT_MEMBER, CONTAINER: CONTAINER_MEMBER}


class Groups:
    """All groups of one store; a group that is not there has no member."""

    def __init__(self) -> None:
        #: ``kind/group/path`` of every member.
        self._members: set[str] = set()

    def contains(self, level: str, group: str, path: str) -> bool:
        """True when ``path`` is a member of the ``group`` of tenants or containers (``level``) now."""
        return f"{_KINDS.get(level)}/{group}/{path}" in self._members

    def replace(self, entries: Iterable[Entry]) -> None:
        """Know exactly the members among ``entries``."""
        self._members = {entry.key for entry in entries if is_member(entry.key)}

    def apply(self, change: Change) -> None:
        """What ``change`` says of members; the cost is that of the change, not of the groups."""
        self._members.difference_update(change.entry_drops)
        self._members.update(entry.key for entry in change.entries if is_member(entry.key))
