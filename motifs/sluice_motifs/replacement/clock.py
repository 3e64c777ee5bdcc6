"""CLOCK: second chances (Corbató 1968, "A paging experiment with the Multics system").

Theory of operation

* Slots form a ring, each with a bit that ``touch`` sets.  A *hand* points at one of them.
* A victim is searched from the hand on.  A slot whose bit is set loses the bit and is skipped, which is its second
  chance; a slot without the bit is the victim, and the hand moves behind it.  A new slot is inserted right before the
  hand.
* So the order of victims is known beforehand: from the hand on those without the bit, then, a turn later, the others.
* ``victims`` yields this order and does not change hand and bits, since the caller may skip slots.  ``evict``
  then moves the hand to the victim as the search would have done.  Slots that the caller skipped wait
  for the hand's next turn.

``evict`` costs a step for each slot that the hand passes.  A step clears a bit that a ``touch`` has set, or
passes a slot that the caller has skipped.  ``victims`` keeps the slots with a bit that it passed, 4 bytes each,
until it ends.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import ClassVar

from sluice_motifs.replacement.api import ReplacementPolicy
from sluice_motifs.replacement.linked_lists import LinkedLists


class Clock(ReplacementPolicy):
    """The items that were not opened since the hand passed them are contracted first.  10 bytes a slot: a ring and the
    bit in a byte."""

    keyword: ClassVar[str] = "clock"
    help: ClassVar[str] = "items not opened since the hand last passed them are contracted first"
    slot_bytes: ClassVar[int] = 10

    def __init__(self) -> None:
        super().__init__()
        self._ring = LinkedLists()  # its first slot is where the hand points
        self._opened = bytearray()

    def _grow(self, slots: int) -> None:
        self._ring.grow(slots)
        self._opened.extend(bytes(slots - len(self._opened)))

    def _insert(self, slot: int) -> None:
        self._opened[slot] = 0
        self._ring.append(slot)

    def _touch(self, slot: int) -> None:
        self._opened[slot] = 1

    def _remove(self, slot: int) -> None:
        self._ring.remove(slot)

    def _evict(self, slot: int) -> None:
        hand = self._ring.first()
        while hand != slot or self._opened[hand]:
            self._opened[hand] = 0
            hand = self._ring.after(hand)
        self._ring.turn(hand)
        self._ring.remove(slot)

    def _victims(self) -> Iterator[int]:
        passed = array("i")
        for slot in self._ring.slots():
            if self._opened[slot]:
                passed.append(slot)
            else:
                yield slot
        yield from passed
