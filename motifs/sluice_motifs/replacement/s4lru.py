"""Segmented LRU with four segments (Huang and others: "An analysis of Facebook photo caching", SOSP 2013).

Theory of operation

* Four lists in the order of opens.  A new slot is appended to the lowest one, an opened one to the
  next higher one, at most the highest.
* Each of the three higher lists holds at most a quarter of all slots, at least one.  From a list that is too long the
  slot that was not opened for the longest time moves to the end of the list below.  A quarter of the slots stands for
  the quarter of the bytes in the paper, since a policy knows no sizes.
* Victims come from the lowest list first.  A slot that moves down a list keeps its place in that order, so the time of
  these moves does not matter: after ``insert`` and ``touch``, never while victims are iterated.

``insert`` and ``touch`` move at most one slot down from each list, and at most six more for four slots removed before.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import ClassVar, Final

from sluice_motifs.replacement.api import ReplacementPolicy
from sluice_motifs.replacement.linked_lists import LinkedLists

SEGMENTS: Final = 4


class S4Lru(ReplacementPolicy):
    """Items opened once are contracted before those opened again.  10 bytes a slot: four lists, and the slot's list."""

    keyword: ClassVar[str] = "s4lru"
    help: ClassVar[str] = "items opened once are contracted before those opened again, in four steps"
    slot_bytes: ClassVar[int] = 10

    def __init__(self) -> None:
        super().__init__()
        self._lists = LinkedLists(SEGMENTS)
        self._lengths = array("q", [0]) * SEGMENTS
        self._segment = bytearray()

    def _grow(self, slots: int) -> None:
        self._lists.grow(slots)
        self._segment.extend(bytes(slots - len(self._segment)))

    def _insert(self, slot: int) -> None:
        self._append(slot, 0)
        self._cut()

    def _touch(self, slot: int) -> None:
        segment = self._segment[slot]
        self._remove(slot)
        self._append(slot, min(segment + 1, SEGMENTS - 1))
        self._cut()

    def _remove(self, slot: int) -> None:
        segment = self._segment[slot]
        self._lists.remove(slot, segment)
        self._lengths[segment] -= 1

    def _victims(self) -> Iterator[int]:
        for segment in range(SEGMENTS):
            yield from self._lists.slots(segment)

    def _append(self, slot: int, segment: int) -> None:
        self._segment[slot] = segment
        self._lists.append(slot, segment)
        self._lengths[segment] += 1

    def _cut(self) -> None:
        most = max(1, len(self) // SEGMENTS)
        for segment in range(SEGMENTS - 1, 0, -1):
            while self._lengths[segment] > most:
                slot = self._lists.first(segment)
                self._remove(slot)
                self._append(slot, segment - 1)
