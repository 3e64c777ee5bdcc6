"""The contract of replacement policies.

A policy orders the expanded items of one space: the first of ``victims`` is contracted first.  It knows neither names
nor sizes nor time.  Items are *slots*: places in the caller's item table, small integers that are used again after
``remove`` or ``evict``.  So the order is kept in typed arrays that grow with the highest slot, and costs some ten
bytes an item.

``victims`` changes nothing, so that a caller may skip items that must not be contracted.  An item leaves in one of two
ways:

* ``evict``: it was contracted as a victim.  A policy that moves on while it searches (CLOCK) moves here, and only here.
* ``remove``: it was deleted or overwritten, or contracted for another reason than its place in the order.

All operations take amortized constant time; an implementation documents its expensive cases.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import ClassVar


class ReplacementPolicy(ABC):
    """Base of all policies: keeps the set of slots, and calls the methods that an implementation overrides."""

    #: The policy's name in a sentence (``policy=lru``), in lower case.
    keyword: ClassVar[str]
    #: One line of help.
    help: ClassVar[str]
    #: Bytes kept for each slot, this class's one byte included, before the spare room of growing arrays.
    slot_bytes: ClassVar[int]

    def __init__(self) -> None:
        self._present = bytearray()
        self._count = 0
        self._changes = 0

    def __len__(self) -> int:
        return self._count

    def __contains__(self, slot: int) -> bool:
        return 0 <= slot < len(self._present) and self._present[slot] == 1

    def insert(self, slot: int) -> None:
        """Handle an item that was made or expanded.

        :raises ValueError: when the slot is in use, or negative
        """
        if slot < 0 or slot in self:
            raise ValueError(f"slot `{slot}` is {'negative' if slot < 0 else 'in use'}, expected a free one")
        if slot >= len(self._present):
            self._present.extend(bytes(grown(len(self._present), slot)))
            self._grow(len(self._present))
        self._present[slot] = 1
        self._count += 1
        self._changes += 1
        self._insert(slot)

    def touch(self, slot: int) -> None:
        """Handle an open of an item.

        :raises ValueError: when the slot is not in use
        """
        self._check(slot)
        self._changes += 1
        self._touch(slot)

    def remove(self, slot: int) -> None:
        """Remove a slot whose item was removed, or contracted for another reason than its place in the order.

        :raises ValueError: when the slot is not in use
        """
        self._check(slot)
        self._changes += 1
        self._remove(slot)
        self._forget(slot)

    def evict(self, slot: int) -> None:
        """Remove a slot that ``victims`` yielded and whose item was contracted.

        :raises ValueError: when the slot is not in use
        """
        self._check(slot)
        self._evict(slot)
        self._forget(slot)

    def victims(self) -> Iterator[int]:
        """All slots, in the order in which they should be contracted; the order does not change.

        During the iteration, yielded slots may be evicted; no other change is allowed.

        :raises RuntimeError: after another change
        """
        changes = self._changes
        for slot in self._victims():
            yield slot
            if self._changes != changes:
                raise RuntimeError("the replacement order was changed while its victims were iterated")

    @abstractmethod
    def _grow(self, slots: int) -> None:
        """Extend the arrays to this many slots."""

    @abstractmethod
    def _insert(self, slot: int) -> None:
        """Give a place to a slot that has none."""

    def _touch(self, slot: int) -> None:  # noqa: B027  not abstract: some policies do not care
        """Move a slot to a better place; by default it stays."""

    @abstractmethod
    def _remove(self, slot: int) -> None:
        """Remove a slot from the order."""

    def _evict(self, slot: int) -> None:
        """Remove a victim from the order."""
        self._remove(slot)

    @abstractmethod
    def _victims(self) -> Iterator[int]:
        """As ``victims``; yielded slots may be evicted meanwhile."""

    def _check(self, slot: int) -> None:
        if slot not in self:
            raise ValueError(f"slot `{slot}` is not in use, expected one of {self._count} that were inserted")

    def _forget(self, slot: int) -> None:
        self._present[slot] = 0
        self._count -= 1


def grown(slots: int, slot: int) -> int:
    """The number of slots by which an array grows to hold ``slot``: at least an eighth, so that few inserts copy it."""
    return max(slot + 1, slots + slots // 8 + 8) - slots
