"""Decides what a space contracts to fit its target, and what it fills again when it has room.

Nothing happens here: numbers come in, slots come out.  A plan is made step by step, so that its caller takes as many
victims as it can contract at once, evicts these from the replacement policy, and plans anew after other changes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


class Victims(Protocol):
    """A replacement policy, or a part of one."""

    def victims(self) -> Iterator[int]:
        """As of ``ReplacementPolicy``."""


class SkipReason(StrEnum):
    """Why an item stays although it is its turn, in the order in which they are looked at."""

    UNDER_WAY = "under way"
    EMPTY = "empty"
    OPEN = "open"
    YOUNG = "younger than min_age"


@dataclass(frozen=True, slots=True)
class Candidate:
    """What a plan must know of an item.

    :param size: plain bytes
    :param age: seconds since it was written or expanded
    :param open: whether somebody reads it now
    :param under_way: whether it is being contracted or expanded now
    """

    size: int
    age: float
    open: bool = False
    under_way: bool = False

    def obstacle(self, min_age: float) -> SkipReason | None:
        """Why it cannot be contracted now."""
        if self.under_way:
            return SkipReason.UNDER_WAY
        if self.size == 0:
            return SkipReason.EMPTY
        if self.open:
            return SkipReason.OPEN
        return SkipReason.YOUNG if self.age < min_age else None


#: What is known of the item of a slot.
View = Callable[[int], Candidate]


class ContractionPlan:
    """The victims of one space, one after the other; its figures are complete when it is exhausted.

    :param used: plain bytes of expanded items, without those whose contraction is under way
    :param target: bytes that they should have
    :param policy: of this space
    :param min_age: seconds; what is younger stays
    :param allowed: bytes after which it stops, as ``ThrashingGuard`` says; None for any number
    :raises ValueError: when the target is negative
    """

    def __init__(
        self,
        used: int,
        target: int,
        policy: Victims,
        view: View,
        min_age: float = 0.0,
        allowed: int | None = None,
    ) -> None:
        _check(target)
        #: Bytes above the target that no victim was found for yet.
        self.excess = max(0, used - target)
        #: Bytes of the victims.
        self.freed = 0
        self.skipped: Counter[SkipReason] = Counter()
        self._policy = policy
        self._view = view
        self._min_age = min_age
        self._allowed = allowed

    @property
    def held_up(self) -> bool:
        """Whether it stopped, or stops, at what is allowed and not at its target."""
        return self.excess > 0 and self._allowed is not None and self.freed >= self._allowed

    def __iter__(self) -> Iterator[int]:
        if not self.excess or self.held_up:
            return
        for slot in self._policy.victims():
            candidate = self._view(slot)
            obstacle = candidate.obstacle(self._min_age)
            if obstacle is not None:
                self.skipped[obstacle] += 1
                continue
            self.freed += candidate.size
            self.excess = max(0, self.excess - candidate.size)
            yield slot
            if not self.excess or self.held_up:
                return


def plan_refill(used: int, target: int, recent: Iterable[int], view: View) -> Iterator[int]:
    """The slots of the most recent contractions that fit in the spare space, as Carillon does (SYSTOR'16, section 7.6).

    One that does not fit is passed over for older, smaller ones; a refill must never lead to a contraction.

    :param used: plain bytes of expanded items and of those that are being expanded
    :param recent: slots of contracted items, the most recent contraction first
    :raises ValueError: when the target is negative
    """
    _check(target)
    spare = target - used
    for slot in recent:
        if spare <= 0:
            return
        candidate = view(slot)
        if not candidate.under_way and 0 < candidate.size <= spare:
            spare -= candidate.size
            yield slot


def _check(target: int) -> None:
    if target < 0:
        raise ValueError(f"target size `{target}` is negative, expected at least 0 bytes")
