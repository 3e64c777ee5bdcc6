"""A random order.

The slots are in an array whose order is a uniformly random permutation, and victims are taken from its end.  A new
slot is appended and swapped with one that is drawn among all, itself included; the last slot fills the gap
of a removed one.  Both keep every permutation equally likely, so ``victims`` draws nothing, and
two iterations agree.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from random import Random
from typing import ClassVar

from sluice_motifs.replacement.api import ReplacementPolicy


class RandomReplacement(ReplacementPolicy):
    """Each item is equally likely to be contracted first.  9 bytes a slot: the permutation, and each slot's place in
    it.

    :param seed: makes the order repeatable
    """

    keyword: ClassVar[str] = "random"
    help: ClassVar[str] = "any item, by chance"
    slot_bytes: ClassVar[int] = 9

    def __init__(self, seed: int | None = None) -> None:
        super().__init__()
        self._draws = Random(seed)  # noqa: S311  nobody gains by guessing it
        self._order = array("i")
        self._place = array("i")

    def _grow(self, slots: int) -> None:
        self._place.extend(array("i", [0]) * (slots - len(self._place)))

    def _insert(self, slot: int) -> None:
        last = len(self._order)
        place = self._draws.randrange(last + 1)
        self._order.append(slot)
        self._put(self._order[place], last)
        self._put(slot, place)

    def _remove(self, slot: int) -> None:
        last = self._order.pop()
        if last != slot:
            self._put(last, self._place[slot])

    def _victims(self) -> Iterator[int]:
        for place in range(len(self._order) - 1, -1, -1):
            yield self._order[place]

    def _put(self, slot: int, place: int) -> None:
        self._order[place] = slot
        self._place[slot] = place
