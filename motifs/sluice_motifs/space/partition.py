"""Divides one target size among the members of a space, exactly and in whole bytes.

Theory of operation

* First everybody gets its floor, or its demand when that is less: an unused floor is lent, and comes back with the
  next division after demand has grown.  When the target is below the sum of these, they are cut in proportion to the
  floors.
* What is left is divided by weights, and nobody gets more than its demand: max-min fairness above the floors, as of
  bandwidth here.  What is left when every demand is met is divided by weights too, so that a member may grow before
  the next division.
* Whole bytes: of a member of weight w the k-th byte of a division has the priority k / w, the smallest first, and the
  member's place breaks ties.  The bytes that exist go to the smallest priorities.  This is a divisor method, so shares
  sum up to the target, and a larger target gives nobody less; rounding shares and handing out the remainders
  afterwards would not promise that.
* The level up to which all priorities are served is found with fractions; less than a byte for each member is then
  left to be given.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True, slots=True)
class Member:
    """One among whom a target is divided.

    :param demand: bytes that it could use: expanded ones and those that were contracted recently
    :param floor: bytes that it gets whatever others demand
    :param weight: its part of what is above floors, at least 1
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
    """Divide by weights, up to a limit for each; who has a limit above 0 has a weight above 0."""
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
