"""Doubly linked lists of slots in two arrays, for policies that keep an order.

A slot is in at most one list.  Lists are rings: the slot before the first one is the last one, so a list needs only
its first slot, two lists are joined by four links, and turning a ring (CLOCK) means to choose another first slot.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import Final

#: The first slot of an empty list.
NONE: Final = -1


class LinkedLists:
    """8 bytes a slot, 4 a list.

    :param lists: how many, numbered from 0
    """

    def __init__(self, lists: int = 1) -> None:
        self._first = array("i", [NONE]) * lists
        self._after = array("i")
        self._before = array("i")

    def grow(self, slots: int) -> None:
        """Make room for so many slots, which are in no list."""
        more = array("i", [NONE]) * (slots - len(self._after))
        self._after.extend(more)
        self._before.extend(more)

    def first(self, number: int = 0) -> int:
        """The first slot of a list, or ``NONE``."""
        return self._first[number]

    def after(self, slot: int) -> int:
        """The slot that follows in the ring; the same one when it is alone."""
        return self._after[slot]

    def before(self, slot: int) -> int:
        """The slot that precedes in the ring; the same one when it is alone."""
        return self._before[slot]

    def append(self, slot: int, number: int = 0) -> None:
        """Append a slot that is in no list to a list."""
        first = self._first[number]
        if first == NONE:
            self._first[number] = self._after[slot] = self._before[slot] = slot
            return
        last = self._before[first]
        self._after[last] = self._before[first] = slot
        self._before[slot], self._after[slot] = last, first

    def remove(self, slot: int, number: int = 0) -> None:
        """Remove a slot from its list; if it was the first one, the next one becomes first."""
        before, after = self._before[slot], self._after[slot]
        if after == slot:
            self._first[number] = NONE
            return
        self._after[before], self._before[after] = after, before
        if self._first[number] == slot:
            self._first[number] = after

    def turn(self, slot: int, number: int = 0) -> None:
        """Make a slot of a list its first one; the slots before it become the last ones, in their order."""
        self._first[number] = slot

    def move_all(self, source: int, target: int) -> None:
        """Append all slots of one list to another, in their order; the first list is empty then."""
        moved, first = self._first[source], self._first[target]
        if moved == NONE or source == target:
            return
        self._first[source] = NONE
        if first == NONE:
            self._first[target] = moved
            return
        last, end = self._before[first], self._before[moved]
        self._after[last], self._before[moved] = moved, last
        self._after[end], self._before[first] = first, end

    def slots(self, number: int = 0) -> Iterator[int]:
        """The slots of a list in order; yielded slots may be removed meanwhile."""
        slot = self._first[number]
        if slot == NONE:
            return
        last = self._before[slot]
        while slot != last:
            after = self._after[slot]
            yield slot
            slot = after
        yield last
