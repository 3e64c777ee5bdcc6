"""Expansions under way in this process: one an item, which all who open the item share."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from sluice_motifs.records import ItemView
from sluice_motifs.stream import SharedStream


@dataclass(slots=True, eq=False)
class ActiveExpansion:
    """One expansion; ``view`` is what it makes again, ``users`` are its maker and all who read it."""

    view: ItemView
    stream: SharedStream = field(default_factory=SharedStream)
    users: int = 1


class ActiveExpansions:
    """All of them, by item."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._active: dict[str, ActiveExpansion] = {}

    def join(self, name: str) -> ActiveExpansion | None:
        """The expansion of an item that is under way; :meth:`leave` it when it is read."""
        with self._mutex:
            active = self._active.get(name)
            if active is not None:
                active.users += 1
            return active

    def begin(self, view: ItemView) -> ActiveExpansion:
        """Take note of a new one, for its maker and one reader."""
        active = ActiveExpansion(view, users=2)
        with self._mutex:
            self._active[view.name] = active
        return active

    def end(self, active: ActiveExpansion) -> None:
        """It is made: who opens the item from now on looks at it anew."""
        with self._mutex:
            if self._active.get(active.view.name) is active:
                del self._active[active.view.name]
        self.leave(active)

    def leave(self, active: ActiveExpansion) -> None:
        """One who makes or reads it less; the last one closes it."""
        with self._mutex:
            active.users -= 1
            last = active.users == 0
        if last:
            active.stream.close()
