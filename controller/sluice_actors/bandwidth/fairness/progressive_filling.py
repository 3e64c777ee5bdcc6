"""How far everybody's spare rises: progressive filling, with flows that may shift between their nodes.

The *level* is the spare of a tenant, the same for all unless something holds one back.  Each node keeps the level at
which it is full when flows that others hold back take what they can and the rest takes the node's.  A flow's
level on a side is the mean over its nodes, weighted by where it lies; the lower of both sides and what it wants count.
Nodes that this overloads get a smaller scale (``division_fit``), so that flows lie where levels are higher,
until levels are the same wherever flows connect nodes, and every node is full or nobody wants more of it.

Loads are reckoned as if flows that are held back wanted a bit more than their level.  Without that push a full node
would keep flows that could as well lie elsewhere.  It is strong at first, when flows find their nodes, and faint at the
end.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from sluice_actors.bandwidth.arrays import BoolArray, FloatArray, IntArray
from sluice_actors.bandwidth.fairness.parts import SideParts
from sluice_actors.bandwidth.fairness.placement import capacity_ratios, rescale, round_limit

ROUNDS: Final = 300
LEAST_ROUNDS: Final = 32
#: Levels stand when none that counts changes more than this in a round.
STILL: Final = 2e-5
#: A node's level rises at most so much in a round when nobody there wants more.
RISE: Final = 4.0
#: The push: at first, at the end, after which part of all rounds only a fiftieth of the first is left, and which part
#: of a base counts as level.
PUSH: Final = 0.5
LAST_PUSH: Final = 0.01
PUSHED: Final = 0.3
BASE_PUSH: Final = 0.5
#: Those below the mean level push so much stronger at most, those above so much weaker.
LOW: Final = 4.0
TINY: Final = 1e-200
#: Who has less pushes as if it had this part of the mean.
HUNGER: Final = 1.0


@dataclass(frozen=True, slots=True)
class SpareDemand:
    """What may rise: (flows,) ``base`` is certain, ``most`` never exceeded; (tenants,) ``bound`` over all flows."""

    base: FloatArray
    most: FloatArray
    tenant: IntArray
    bound: FloatArray
    endless: float  #: more than anything can be

    @property
    def room(self) -> FloatArray:
        """(flows,) how much each may rise."""
        return np.maximum(self.most - self.base, 0.0)


@dataclass(frozen=True, slots=True)
class SpareLevels:
    """(flows,) ``spare`` above the base, (nodes,) scales of both sides, and how many rounds it took."""

    spare: FloatArray
    scales: tuple[FloatArray, FloatArray]
    rounds: int


@dataclass(slots=True)
class _Stand:
    """One side as it stands: scales and levels of nodes, and the level up to which it carries each flow."""

    place: SideParts
    scale: FloatArray
    level: FloatArray
    limit: FloatArray
    split: FloatArray

    def move(self, wanted: SpareDemand, part: FloatArray, other: FloatArray) -> None:
        """Renew splits, levels and limits.

        :param part: (flows,) which part of its tenant's spare a flow takes, 0 when it may not rise
        :param other: (flows,) level at which something else holds it back
        """
        place = self.place
        self.split = split = place.split(self.scale)
        certain = place.per_node(split * (wanted.base * place.copies)[place.flow])
        room = np.maximum(place.capacity - certain, 0.0)
        pull = split * (part * place.copies)[place.flow]
        elsewhere = other[place.flow]
        held = elsewhere < self.level[place.node]
        pull_held = pull * held
        everybody = place.per_node(pull)
        free = everybody - place.per_node(pull_held)
        used = place.per_node(pull_held * elsewhere)
        with np.errstate(divide="ignore", invalid="ignore"):
            fair = np.where(everybody > 0, room / everybody, wanted.endless)
            shared = (room - used) / free
            slack = np.where(used > 0, room / used, RISE)
        risen = np.maximum(self.level, 1e-12 * wanted.endless) * np.clip(slack, 1 / RISE, RISE)
        level = np.maximum(np.where(free > 1e-9 * everybody, shared, risen), fair)
        self.level = np.minimum(level, wanted.endless)
        mean = place.per_flow(split * self.level[place.node])
        self.limit = np.minimum(mean + place.absent(), wanted.endless)

    def relieve(self, rates: FloatArray) -> None:
        """Renew scales after (flows,) ``rates`` of payload."""
        place = self.place
        load = place.per_node(self.split * (rates * place.copies)[place.flow])
        self.scale = rescale(self.scale, capacity_ratios(place.capacity, load))


def fill_progressively(
    wanted: SpareDemand, sides: tuple[SideParts, SideParts], scales: tuple[FloatArray, FloatArray]
) -> SpareLevels:
    """Find the levels.

    :param scales: (nodes,) of both sides that fit the bases
    """
    nothing = np.full(len(wanted.base), wanted.endless)
    stands = tuple(
        _Stand(place, scale, np.zeros(len(scale)), nothing, place.weight)
        for place, scale in zip(sides, scales, strict=True)
    )
    tenants = _Tenants.of(wanted)
    part, level = tenants.even, np.zeros(len(wanted.base))
    most_rounds = round_limit(sum(len(place.flow) for place in sides), ROUNDS, LEAST_ROUNDS)
    for number in range(most_rounds):
        own = tenants.own(wanted, part)
        for stand, beside in zip(stands, stands[::-1], strict=True):
            stand.move(wanted, part, np.minimum(own, beside.limit))
        before, level = level, np.minimum(own, np.minimum(stands[0].limit, stands[1].limit))
        spare = part * level
        push = LAST_PUSH + PUSH * 0.02 ** (number / (PUSHED * most_rounds))
        held = tenants.rises & (level < own)
        mean = level[held].mean() if held.any() else 0.0
        pushing = push * np.clip(mean / np.maximum(level, TINY), 1 / LOW, LOW)
        above = spare + pushing * (np.maximum(spare, HUNGER * part * mean) + BASE_PUSH * wanted.base)
        above = wanted.base + np.minimum(above, wanted.room)
        for stand in stands:
            stand.relieve(np.where(held & (stand.limit <= level), above, wanted.base + spare))
        if number > 8 and np.all(np.abs(level - before) <= STILL * np.maximum(level, before)):
            break
        part = tenants.parts(part, level)
    return SpareLevels(tenants.within(spare, wanted), (stands[0].scale, stands[1].scale), number + 1)


@dataclass(frozen=True, slots=True)
class _Tenants:
    """How a tenant's spare is shared among its flows: equally; what one cannot take the others do."""

    index: IntArray
    count: int
    rises: BoolArray  #: (flows,) may rise at all
    even: FloatArray  #: (flows,) equal parts
    bound: FloatArray  #: (flows,) the level at which the tenant's bound is reached
    several: bool

    @classmethod
    def of(cls, wanted: SpareDemand) -> _Tenants:
        count = len(wanted.bound)
        rises = wanted.most > wanted.base
        flows = np.bincount(wanted.tenant, rises, minlength=count)
        bases = np.bincount(wanted.tenant, wanted.base, minlength=count)
        bound = np.minimum(np.maximum(wanted.bound - bases, 0.0), wanted.endless)
        even = np.where(rises, 1.0 / np.maximum(flows, 1.0)[wanted.tenant], 0.0)
        return cls(wanted.tenant, count, rises, even, bound[wanted.tenant], bool((flows > 1).any()))

    def own(self, wanted: SpareDemand, part: FloatArray) -> FloatArray:
        """(flows,) the level at which a flow has all that it wants, or may have."""
        return np.minimum(np.where(self.rises, wanted.room / np.where(self.rises, part, 1.0), 0.0), self.bound)

    def parts(self, part: FloatArray, level: FloatArray) -> FloatArray:
        """Half of the way to parts in which flows that can rise further take those of others that cannot."""
        if not self.several:
            return part
        top = np.zeros(self.count)
        np.maximum.at(top, self.index, level)
        high = self.rises & (level >= 0.999 * top[self.index])
        kept = np.bincount(self.index, np.where(high, 0.0, np.minimum(part, self.even) * level), minlength=self.count)
        takers = np.maximum(np.bincount(self.index, high, minlength=self.count), 1.0)
        left = (1.0 - np.divide(kept, top, out=np.zeros(self.count), where=top > 0)) / takers
        aim = np.where(high, np.maximum(left[self.index], self.even), self.even)
        return np.where(self.rises, 0.5 * (part + aim), 0.0)

    def within(self, spare: FloatArray, wanted: SpareDemand) -> FloatArray:
        """(flows,) ``spare`` reduced where it goes beyond a tenant's bound."""
        sums = np.bincount(self.index, wanted.base + spare, minlength=self.count)
        spares = np.bincount(self.index, spare, minlength=self.count)
        over = np.maximum(sums - wanted.bound, 0.0)
        return spare * np.where(over > 0, 1.0 - over / np.maximum(np.maximum(spares, over), 1e-300), 1.0)[self.index]
