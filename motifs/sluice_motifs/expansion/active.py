"""Expansions under way in this process: one an item, which all who open the item share."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from sluice_motifs.dependencies.freshness import SourceState
from sluice_motifs.expansion.stream import SharedStream
from sluice_motifs.storage.records import ItemView


@dataclass(slots=True, eq=False)
class ActiveExpansion:
    """One expansion; ``view`` is what it makes again, ``users`` are its maker and all who read it.

    :param state: its sources as they were before any of them was read
    """

    view: ItemView
    state: SourceState
    stream: SharedStream
    users: int = 2

    def serves(self, view: ItemView, state: SourceState) -> bool:
        """Whether a reader who has just looked may join it: nothing has changed since it began."""
        same = self.view.plain.version == view.plain.version and self.view.record.motifs == view.record.motifs
        return same and self.state.closure == state.closure and not self.stream.failed


class ActiveExpansions:
    """All of them, by item."""

    def __init__(self) -> None:
        self._mutex = threading.Condition()
        self._active: dict[str, ActiveExpansion] = {}

    def has(self, name: str) -> bool:
        """Whether an expansion of an item is under way."""
        with self._mutex:
            return name in self._active

    def join(self, name: str) -> ActiveExpansion | None:
        """The expansion of an item that is under way; :meth:`leave` it when it is read."""
        with self._mutex:
            active = self._active.get(name)
            if active is not None:
                active.users += 1
            return active

    def begin(self, active: ActiveExpansion) -> None:
        """Take note of a new one, for its maker and one reader."""
        with self._mutex:
            self._active[active.view.name] = active

    def end(self, active: ActiveExpansion) -> None:
        """Mark it as finished: who opens the item from now on looks at it anew."""
        self.forget(active)
        self.leave(active)

    def forget(self, active: ActiveExpansion) -> None:
        """Let nobody join it any more."""
        with self._mutex:
            if self._active.get(active.view.name) is active:
                del self._active[active.view.name]
                self._mutex.notify_all()

    def wait(self, active: ActiveExpansion) -> None:
        """Until nobody can join it any more: its bytes are in their place, or will not be."""
        with self._mutex:
            self._mutex.wait_for(lambda: self._active.get(active.view.name) is not active)

    def leave(self, active: ActiveExpansion) -> None:
        """Take away one user; the last one closes it."""
        with self._mutex:
            active.users -= 1
            last = active.users == 0
        if last:
            active.stream.close()
