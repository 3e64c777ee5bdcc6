"""Least recently used."""

from __future__ import annotations

from typing import ClassVar

from sluice_motifs.replacement.fifo import Fifo


class Lru(Fifo):
    """The items that were not opened for the longest time are contracted first.  9 bytes a slot: one list, in the order
    of opens."""

    keyword: ClassVar[str] = "lru"
    help: ClassVar[str] = "items not opened for the longest time are contracted first"

    def _touch(self, slot: int) -> None:
        self._order.remove(slot)
        self._order.append(slot)
