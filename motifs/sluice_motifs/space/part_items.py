"""The items of one part of a space: those with bytes in the order of a replacement policy, the others by contraction.

Slots of the item table are numbered anew here, without gaps, so that a thousand spaces cost no more than one.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final

from sluice_core.messages.elasticity import SpacePart
from sluice_motifs.items import ItemState
from sluice_motifs.replacement.api import ReplacementPolicy
from sluice_motifs.replacement.linked_lists import LinkedLists
from sluice_motifs.replacement.registry import create_policy

#: The most victims, and contracted items, that one plan checks.
LOOKED_AT: Final = 10_000
REFILLS_LOOKED_AT: Final = 64

#: The place of an item: in the order of the policy; parked; in one of two lists of contracted items.
_FREE, _ORDERED, _PARKED, _REFILLABLE, _KEPT_OUT = range(5)
_LISTS: Final = {_REFILLABLE: 0, _KEPT_OUT: 1}


@dataclass(slots=True)
class SpaceUsage:
    """Plain bytes and number of items by their state, kept by changes.

    An item is subtracted with the values with which it was added, so that sums cannot drift.
    """

    expanded_bytes: int = 0
    contracted_bytes: int = 0
    expanded_items: int = 0
    contracted_items: int = 0

    def count(self, item: ItemState, times: int) -> None:
        """Count an item in (1) or out (-1)."""
        if item.expanded:
            self.expanded_bytes += times * item.size
            self.expanded_items += times
        else:
            self.contracted_bytes += times * item.size
            self.contracted_items += times


class PartItems:
    """Implements ``planner.Victims`` in the numbering of this part.

    :param keyword: of the replacement policy
    """

    def __init__(self, part: SpacePart, keyword: str) -> None:
        self.part = part
        self.usage = SpaceUsage()
        self._keyword = keyword
        self._policy = create_policy(keyword)
        self._contracted = LinkedLists(len(_LISTS))
        self._slots = array("I")
        self._state = bytearray()
        self._free = array("I")

    def __len__(self) -> int:
        return len(self._slots) - len(self._free)

    def add(self, slot: int, item: ItemState) -> int:
        """Add a new item; return its number here."""
        if self._free:
            number = self._free.pop()
            self._slots[number] = slot
        else:
            number = len(self._slots)
            self._slots.append(slot)
            self._state.append(_FREE)
            self._contracted.grow(number + 1)
        self.usage.count(item, 1)
        self._enter(number, _ORDERED if item.expanded else _REFILLABLE)
        return number

    def remove(self, number: int, item: ItemState) -> None:
        """Remove an item that was deleted, or belongs to another space."""
        self.usage.count(item, -1)
        self._leave(number, evicted=False)
        self._state[number] = _FREE
        self._free.append(number)

    def slot(self, number: int) -> int:
        """The slot in the item table."""
        return self._slots[number]

    def change(self, number: int, before: ItemState, after: ItemState, as_victim: bool) -> None:
        """Replace the state of an item; one that was contracted by hand is not filled again before it is read.

        :param as_victim: whether it was contracted in its turn
        """
        self.usage.count(before, -1)
        self.usage.count(after, 1)
        if before.expanded and not after.expanded:
            self._leave(number, evicted=as_victim)
            self._enter(number, _REFILLABLE if as_victim else _KEPT_OUT)
        elif after.expanded and not before.expanded:
            self._leave(number, evicted=False)
            self._enter(number, _ORDERED)

    def open(self, number: int) -> None:
        """Note that an item was opened."""
        state = self._state[number]
        if state == _ORDERED:
            self._policy.touch(number)
        elif state in _LISTS:
            self._leave(number, evicted=False)
            self._enter(number, _REFILLABLE)

    def keep_out(self, number: int) -> None:
        """Do not fill the item again before it is read."""
        if self._state[number] == _REFILLABLE:
            self._leave(number, evicted=False)
            self._enter(number, _KEPT_OUT)

    def park(self, number: int) -> bool:
        """Remove an item from the order; return whether it was in it."""
        if self._state[number] != _ORDERED:
            return False
        self._leave(number, evicted=False)
        self._state[number] = _PARKED
        return True

    def unpark(self, number: int) -> None:
        """Put the item at the end of the order, if it is still parked."""
        if self._state[number] == _PARKED:
            self._enter(number, _ORDERED)

    def touch(self, number: int) -> None:
        """Move the item to a better place without an open."""
        if self._state[number] == _ORDERED:
            self._policy.touch(number)

    def victims(self) -> Iterator[int]:
        """The first ones of the order."""
        return islice(self._policy.victims(), LOOKED_AT)

    def recent(self) -> Iterator[int]:
        """Contracted items that may be filled again, the most recent contraction first."""
        first = self._contracted.first()
        if first < 0:
            return
        number = self._contracted.before(first)
        for _ in range(REFILLS_LOOKED_AT):
            before = self._contracted.before(number)
            yield number
            if number == first:
                return
            number = before

    def use_policy(self, keyword: str) -> None:
        """Order by another policy, which starts with the present order."""
        if keyword == self._keyword:
            return
        fresh: ReplacementPolicy = create_policy(keyword)
        for number in self._policy.victims():
            fresh.insert(number)
        self._keyword, self._policy = keyword, fresh

    def _enter(self, number: int, state: int) -> None:
        self._state[number] = state
        if state == _ORDERED:
            self._policy.insert(number)
        else:
            self._contracted.append(number, _LISTS[state])

    def _leave(self, number: int, evicted: bool) -> None:
        state = self._state[number]
        if state == _ORDERED and evicted:
            self._policy.evict(number)
        elif state == _ORDERED:
            self._policy.remove(number)
        elif state in _LISTS:
            self._contracted.remove(number, _LISTS[state])
