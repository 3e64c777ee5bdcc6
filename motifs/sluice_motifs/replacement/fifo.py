"""First in, first out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from sluice_motifs.replacement.api import ReplacementPolicy
from sluice_motifs.replacement.linked_lists import LinkedLists


class Fifo(ReplacementPolicy):
    """The items that were expanded first are contracted first, opened or not.  9 bytes a slot: one list."""

    keyword: ClassVar[str] = "fifo"
    help: ClassVar[str] = "items expanded first are contracted first"
    slot_bytes: ClassVar[int] = 9

    def __init__(self) -> None:
        super().__init__()
        self._order = LinkedLists()

    def _grow(self, slots: int) -> None:
        self._order.grow(slots)

    def _insert(self, slot: int) -> None:
        self._order.append(slot)

    def _remove(self, slot: int) -> None:
        self._order.remove(slot)

    def _victims(self) -> Iterator[int]:
        return self._order.slots()
