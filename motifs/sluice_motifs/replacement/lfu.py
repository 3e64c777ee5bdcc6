"""Least frequently used, with ageing.

Theory of operation

* Each slot has a counter of opens, from 1 to 255.  Slots with the same counter are in one list, in the order in which
  they were appended: among equally frequent slots, the one that was opened last is contracted last.  ``touch`` moves a
  slot to the end of the next list.
* *Ageing*: after eight opens for each slot, at least 255, all counters are halved, as TinyLFU does
  in its reset (Einziger, Friedman, Manes: "TinyLFU", ACM Transactions on Storage 13, 2017); otherwise formerly popular
  items would stay forever.
* Halving is cheap.  Counters are bytes, and a table translates all of them at once in C.  Lists 2k and 2k + 1, in this
  order, become list k, by a few links; 1 stays 1.  So the order of victims is the same before and after.

A halving costs at most 254 joins and a pass over one byte a slot, less than a step for each open before it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final

from sluice_motifs.replacement.api import ReplacementPolicy
from sluice_motifs.replacement.linked_lists import LinkedLists

MOST: Final = 255
#: Opens for each slot between two halvings.
OPENS_A_SLOT: Final = 8
_HALF: Final = bytes(max(count // 2, min(count, 1)) for count in range(MOST + 1))


class Lfu(ReplacementPolicy):
    """Items that were opened least often are contracted first.  10 bytes a slot: lists by counter, and the counter."""

    keyword: ClassVar[str] = "lfu"
    help: ClassVar[str] = "items opened least often are contracted first; old opens count less"
    slot_bytes: ClassVar[int] = 10

    def __init__(self) -> None:
        super().__init__()
        self._lists = LinkedLists(MOST + 1)
        self._counter = bytearray()
        self._opens = 0

    def _grow(self, slots: int) -> None:
        self._lists.grow(slots)
        self._counter.extend(bytes(slots - len(self._counter)))

    def _insert(self, slot: int) -> None:
        self._counter[slot] = 1
        self._lists.append(slot, 1)

    def _touch(self, slot: int) -> None:
        counter = self._counter[slot]
        self._lists.remove(slot, counter)
        counter = min(counter + 1, MOST)
        self._counter[slot] = counter
        self._lists.append(slot, counter)
        self._opens += 1
        if self._opens >= max(OPENS_A_SLOT * len(self), MOST):
            self._age()

    def _remove(self, slot: int) -> None:
        self._lists.remove(slot, self._counter[slot])

    def _victims(self) -> Iterator[int]:
        for counter in range(1, MOST + 1):
            yield from self._lists.slots(counter)

    def _age(self) -> None:
        self._opens = 0
        self._counter = self._counter.translate(_HALF)
        for counter in range(2, MOST + 1):
            self._lists.move_all(counter, counter // 2)
