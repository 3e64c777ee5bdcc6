"""Progressive filling of the spare capacity, with flows that may be shifted between their nodes.

The *level* is the spare rate of a tenant, the same for all tenants unless something holds one back.  Each node has the
level at which it is full when flows that others hold back take what they can and the rest takes the node's level.  The
level of a flow on a side is the mean over its nodes, weighted by its split; the lower one of both sides counts, or what
it demands.  Nodes that this overloads get a smaller scale (``placement``), so that flows are where levels are higher,
until levels are the same wherever flows connect nodes, and every node is full or no flow demands more of it.

Loads are computed as if flows that are held back demanded a bit more than their level (the *push*).  Without it a full
node would keep flows that could as well be elsewhere.  It is strong at first, when flows find their nodes, and faint at
the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from sluice_actors.bandwidth.arrays import BoolArray, FloatArray, IntArray
from sluice_actors.bandwidth.fairness.placement import SideParts, capacity_ratios, rescale, round_limit

ROUNDS: Final = 300
LEAST_ROUNDS: Final = 32
#: The rounds end when no level changes more than this part of itself in one.
STILL: Final = 2e-5
#: The level of a node rises at most by this factor in a round when no flow there demands more.
RISE: Final = 4.0
#: The push: at first, at the end, the part of all rounds after which a fiftieth of the first is left, and the part
#: of a base that counts as level.
PUSH: Final = 0.5
LAST_PUSH: Final = 0.01
PUSHED: Final = 0.3
BASE_PUSH: Final = 0.5
#: The greatest factor by which flows below the mean level push stronger, and flows above it weaker.
LOW: Final = 4.0
TINY: Final = 1e-200
#: A flow below the mean level pushes as if it had this part of the mean.
HUNGER: Final = 1.0


@dataclass(frozen=True, slots=True)
class SpareDemand:
    """What flows demand above their floors; rates are bytes per second."""

    base: FloatArray  #: (flows,) rates that are certain
    most: FloatArray  #: (flows,) rates that are never exceeded
    tenant: IntArray  #: (flows,) index of the tenant
    bound: FloatArray  #: (tenants,) ceiling over all flows of a tenant
    unlimited: float  #: above every rate

    @property
    def room(self) -> FloatArray:
        """(flows,) how far each may rise."""
        return np.maximum(self.most - self.base, 0.0)


@dataclass(frozen=True, slots=True)
class SpareLevels:
    """(flows,) ``spare`` rate above the base, and (nodes,) scales of both sides."""

    spare: FloatArray
    scales: Sequence[FloatArray]


@dataclass(slots=True)
class _SideState:
    """The state of one side: scales and levels of nodes, and the level up to which it carries each flow."""

    place: SideParts
    scale: FloatArray
    level: FloatArray
    limit: FloatArray
    split: FloatArray

    def move(self, demand: SpareDemand, part: FloatArray, other: FloatArray) -> None:
        """Compute splits, levels and limits.

        :param part: (flows,) the part of its tenant's spare that a flow takes, 0 when it may not rise
        :param other: (flows,) level at which something else holds it back
        """
        place = self.place
        self.split = split = place.split(self.scale)
        certain = place.per_node(split * (demand.base * place.copies)[place.flow])
        room = np.maximum(place.capacity - certain, 0.0)
        pull = split * (part * place.copies)[place.flow]
        elsewhere = other[place.flow]
        held = elsewhere < self.level[place.node]
        pull_held = pull * held
        everybody = place.per_node(pull)
        free = everybody - place.per_node(pull_held)
        used = place.per_node(pull_held * elsewhere)
        with np.errstate(divide="ignore", invalid="ignore"):
            fair = np.where(everybody > 0, room / everybody, demand.unlimited)
            shared = (room - used) / free
            slack = np.where(used > 0, room / used, RISE)
        risen = np.maximum(self.level, 1e-12 * demand.unlimited) * np.clip(slack, 1 / RISE, RISE)
        level = np.maximum(np.where(free > 1e-9 * everybody, shared, risen), fair)
        self.level = np.minimum(level, demand.unlimited)
        mean = place.per_flow(split * self.level[place.node])
        self.limit = np.minimum(mean + place.absent(), demand.unlimited)

    def relieve(self, rates: FloatArray) -> None:
        """Compute scales after (flows,) ``rates`` of payload."""
        place = self.place
        load = place.per_node(self.split * (rates * place.copies)[place.flow])
        self.scale = rescale(self.scale, capacity_ratios(place.capacity, load))


def fill_progressively(demand: SpareDemand, sides: Sequence[SideParts], scales: Sequence[FloatArray]) -> SpareLevels:
    """Raise the level of all tenants until each is held back.

    :param scales: (nodes,) scales of both sides with which the bases were placed
    """
    nothing = np.full(len(demand.base), demand.unlimited)
    states = [
        _SideState(place, scale, np.zeros(len(scale)), nothing, place.weight)
        for place, scale in zip(sides, scales, strict=True)
    ]
    tenants = _Tenants.from_demand(demand)
    part, level = tenants.even, np.zeros(len(demand.base))
    most_rounds = round_limit(sum(len(place.flow) for place in sides), ROUNDS, LEAST_ROUNDS)
    for number in range(most_rounds):
        own = tenants.own(demand, part)
        for state, beside in zip(states, states[::-1], strict=True):
            state.move(demand, part, np.minimum(own, beside.limit))
        before, level = level, np.minimum(own, np.minimum(states[0].limit, states[1].limit))
        spare = part * level
        push = LAST_PUSH + PUSH * 0.02 ** (number / (PUSHED * most_rounds))
        held = tenants.rises & (level < own)
        mean = level[held].mean() if held.any() else 0.0
        pushing = push * np.clip(mean / np.maximum(level, TINY), 1 / LOW, LOW)
        above = spare + pushing * (np.maximum(spare, HUNGER * part * mean) + BASE_PUSH * demand.base)
        above = demand.base + np.minimum(above, demand.room)
        for state in states:
            state.relieve(np.where(held & (state.limit <= level), above, demand.base + spare))
        if number > 8 and np.all(np.abs(level - before) <= STILL * np.maximum(level, before)):
            break
        part = tenants.parts(part, level)
    return SpareLevels(tenants.within(spare, demand), [state.scale for state in states])


@dataclass(frozen=True, slots=True)
class _Tenants:
    """The division of a tenant's spare among its flows: equally; the part that one cannot take goes to the others."""

    index: IntArray
    count: int
    rises: BoolArray  #: (flows,) may rise at all
    even: FloatArray  #: (flows,) equal parts
    bound: FloatArray  #: (flows,) the level at which the tenant's bound is reached
    several: bool

    @classmethod
    def from_demand(cls, demand: SpareDemand) -> _Tenants:
        count = len(demand.bound)
        rises = demand.most > demand.base
        flows = np.bincount(demand.tenant, rises, minlength=count)
        bases = np.bincount(demand.tenant, demand.base, minlength=count)
        bound = np.minimum(np.maximum(demand.bound - bases, 0.0), demand.unlimited)
        even = np.where(rises, 1.0 / np.maximum(flows, 1.0)[demand.tenant], 0.0)
        return cls(demand.tenant, count, rises, even, bound[demand.tenant], bool((flows > 1).any()))

    def own(self, demand: SpareDemand, part: FloatArray) -> FloatArray:
        """(flows,) the level at which a flow has all that it demands, or may have."""
        return np.minimum(np.where(self.rises, demand.room / np.where(self.rises, part, 1.0), 0.0), self.bound)

    def parts(self, part: FloatArray, level: FloatArray) -> FloatArray:
        """(flows,) half of the way to parts where flows that can rise take those of flows that cannot."""
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

    def within(self, spare: FloatArray, demand: SpareDemand) -> FloatArray:
        """(flows,) ``spare``, cut where it exceeds the bound of a tenant."""
        sums = np.bincount(self.index, demand.base + spare, minlength=self.count)
        spares = np.bincount(self.index, spare, minlength=self.count)
        over = np.maximum(sums - demand.bound, 0.0)
        return spare * np.where(over > 0, 1.0 - over / np.maximum(np.maximum(spares, over), 1e-300), 1.0)[self.index]
