"""The assignments of one kind that are in force, read once and kept up to date with the change stream."""

from __future__ import annotations

from collections.abc import Callable, Collection

from sluice_core.messages.policies import Assignment, Change
from sluice_core.store import fencing
from sluice_core.store.store import AsyncStore


class KeptAssignments:
    """:param wanted: returns whether an assignment is kept"""

    def __init__(self, store: AsyncStore, wanted: Callable[[Assignment], bool]) -> None:
        self._store = store
        self._wanted = wanted
        self._by_id: dict[str, Assignment] = {}
        self._stale = True
        #: Changes that arrive while everything is read, which the read may not contain.
        self._changes: list[Change] | None = None

    def values(self) -> Collection[Assignment]:
        """The assignments in force, as far as they are known."""
        return self._by_id.values()

    def reload(self) -> None:
        """Read the assignments anew: the ones read before may be out of date."""
        self._stale = True

    def apply(self, change: Change) -> bool:
        """Follow a change; return whether it has assignments of this kind."""
        if self._changes is not None:
            self._changes.append(change)
        return self._follow(change)

    def _follow(self, change: Change) -> bool:
        dropped = [name for name in change.drops if self._by_id.pop(name, None) is not None]
        put = {one.id: one for one in change.puts if self._wanted(one)}
        self._by_id.update(put)
        return bool(dropped or put)

    async def read(self) -> bool:
        """Read the assignments if that is needed; return whether it was.

        :raises PeerError: when Redis is unreachable
        """
        if not self._stale:
            return False
        keys = self._store.keys
        changes: list[Change] = []
        self._changes = changes
        names = await self._store.run(fencing.hash_fields(keys.assignments))
        self._stale = False
        kept: list[Assignment] = []
        try:
            for chunk in fencing.chunks(names):
                some = await self._store.run(fencing.assignments(keys, chunk))
                kept += [one for one in some if self._wanted(one)]
        except BaseException:
            self._stale, self._changes = True, None
            raise
        self._by_id = {one.id: one for one in kept}
        self._changes = None
        for change in changes:
            self._follow(change)
        return True
