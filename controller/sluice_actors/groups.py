"""Who belongs to which group: the registry's groups, followed with everything else."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from sluice_core.errors import DecodeError
from sluice_core.messages import CONTAINER, TENANT, Change, Entry
from sluice_core.registry import CONTAINER_GROUP, GROUP, Group

log = logging.getLogger(__name__)

_KINDS = {TENANT: GROUP, CONTAINER: CONTAINER_GROUP}


class Groups:
    """All groups of one store; a group that is not there has no member."""

    def __init__(self) -> None:
        self._members: dict[str, frozenset[str]] = {}

    def contains(self, level: str, group: str, path: str) -> bool:
        """True when ``path`` is a member of the ``group`` of tenants or containers (``level``) now."""
        return path in self._members.get(f"{_KINDS.get(level)}/{group}", ())

    def replace(self, entries: Iterable[Entry]) -> None:
        """Know exactly the groups among ``entries``."""
        self._members.clear()
        for entry in entries:
            self._learn(entry)

    def apply(self, change: Change) -> None:
        """What ``change`` says of groups."""
        for key in change.entry_drops:
            self._members.pop(key, None)
        for entry in change.entries:
            self._learn(entry)

    def _learn(self, entry: Entry) -> None:
        if entry.kind not in Group.kinds:
            return
        try:
            self._members[entry.key] = frozenset(Group.read(entry).members)
        except DecodeError as error:
            log.error("group `%s` is taken as empty: %s", entry.name, error)
            self._members[entry.key] = frozenset()
