"""Decides which items a space contracts to fit its target, which it fills, and how parts share the target.

These are pure functions: they take numbers, and return slots and shares.  A plan is made step by step, so that its
caller takes as many victims as it can contract at once, evicts these from the policy, and plans again after changes.

Theory of operation of :func:`partition`, which divides one target exactly and in whole bytes

* First each member gets its floor, or its demand when that is less: an unused floor is lent, and returns with the
  next division after demand has grown.  When the target is below the sum of these, they are cut in proportion to the
  floors.
* The rest is divided by weights, and no member gets more than its demand: max-min fairness above the floors, as for
  bandwidth.  The rest after every demand is met is divided by weights too, so that a member may grow before
  the next division.
* Whole bytes: for a member of weight w the k-th byte of a division has the priority k / w, the smallest first, and the
  member's place breaks ties.  The available bytes go to the smallest priorities.  This is a divisor method, so shares
  sum up to the target, and a larger target gives no member less; rounding shares and distributing the remainders
  afterwards would not guarantee that.
* The level up to which all priorities are served is computed with fractions; less than a byte for each member remains
  to be given then.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Protocol


class Victims(Protocol):
    """A replacement policy, or a part of one."""

    def victims(self) -> Iterator[int]:
        """As ``ReplacementPolicy.victims``."""


class SkipReason(StrEnum):
    """Why a victim is skipped, in the order of the checks."""

    UNDER_WAY = "under way"
    EMPTY = "empty"
    OPEN = "open"
    YOUNG = "younger than min_age"


@dataclass(frozen=True, slots=True)
class Candidate:
    """An item as a plan needs it.

    :param size: plain bytes
    :param age: seconds since it was written or expanded
    :param open: whether it is open now
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


#: Returns the candidate of a slot.
View = Callable[[int], Candidate]


class ContractionPlan:
    """The victims of one space, one after the other; its figures are complete when it is exhausted.

    :param used: plain bytes of expanded items, without those whose contraction is under way
    :param target: the intended number of these bytes
    :param policy: of this space
    :param min_age: seconds; younger items stay
    :param allowed: bytes after which it stops, as ``ThrashingGuard`` says; None: no limit
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
        #: Bytes above the target without a victim yet.
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
        """Whether it stops at the allowed bytes and not at its target."""
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
    """The slots of the most recent contractions that fit in the free space, as in Carillon (SYSTOR'16, section 7.6).

    One that does not fit is skipped for older, smaller ones; a refill must never cause a contraction.

    :param used: plain bytes of expanded items and of those being expanded
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


@dataclass(frozen=True, slots=True)
class Member:
    """A member of those that share a target.

    :param demand: bytes that it could use: expanded ones and those that were contracted recently
    :param floor: bytes that it gets, whatever the others' demand
    :param weight: its weight for bytes above the floors, at least 1
    """

    demand: int
    floor: int = 0
    weight: int = 1

    def __post_init__(self) -> None:
        if self.demand < 0 or self.floor < 0 or self.weight < 1:
            raise ValueError(f"{self} cannot get a share, expected no negative bytes and a weight of at least 1")


def partition(target: int, members: Sequence[Member]) -> list[int]:
    """The target size of each member, in bytes; they sum up to ``target`` unless there are no members.

    :param target: bytes
    :raises ValueError: when it is negative
    """
    if target < 0:
        raise ValueError(f"target size `{target}` is negative, expected at least 0 bytes")
    weights = [member.weight for member in members]
    shares = _fill(target, [member.floor for member in members], [min(one.floor, one.demand) for one in members])
    for limit in ([member.demand for member in members], None):
        left = target - sum(shares)
        room = [left if limit is None else limit[place] - share for place, share in enumerate(shares)]
        more = _fill(left, weights, room)
        shares = [share + part for share, part in zip(shares, more, strict=True)]
    return shares


def _fill(amount: int, weights: Sequence[int], limits: Sequence[int]) -> list[int]:
    """Divide by weights, up to a limit for each; a member with a limit above 0 has a weight above 0."""
    if amount >= sum(limits):
        return list(limits)
    left, weight = amount, sum(weights[place] for place, limit in enumerate(limits) if limit)
    level = Fraction(0)
    for full, place in sorted((Fraction(limit, weights[place]), place) for place, limit in enumerate(limits) if limit):
        level = Fraction(left, weight)
        if full >= level:
            break
        left -= limits[place]
        weight -= weights[place]
    given = [min(limit, int(weights[place] * level)) for place, limit in enumerate(limits)]
    following = [
        (Fraction(part + 1, weights[place]), place) for place, part in enumerate(given) if part < limits[place]
    ]
    heapq.heapify(following)
    for _ in range(amount - sum(given)):
        _, place = heapq.heappop(following)
        given[place] += 1
        if given[place] < limits[place]:
            heapq.heappush(following, (Fraction(given[place] + 1, weights[place]), place))
    return given
