"""The shares of one method in one round: floors first, then max-min fair shares of the spare capacity.

Rates are *max-min fair* when none can grow without another one, which is not greater, getting smaller (Bertsekas and
Gallager, Data Networks, section 6.5.2).  *Progressive filling* finds them: all rates rise together, like water in
connected basins, and a flow stops at its demand, at a ceiling, or when a node on its path is full.  The *water level*
is the rate up to which all have risen.  Crystal (section 4, Algorithm 1) allocates floors the same way, node by node.
Here a flow is on several nodes of both sides and may be shifted between them, so the levels are found by iteration:

1. *Floors*: the floor of each flow, as far as it is demanded, is placed on its nodes of both sides, near where its
   bytes are.  What a node cannot carry moves to the flow's other nodes; what cannot move is cut in proportion
   (``placement``).  The capacity that remains goes to floors that are short, those of flows with the fewest parallel
   transfers first.
2. *Spare*: the water level of all tenants rises above their floors (``progressive_filling``).
3. *Rest*: rates are cut to the capacities, floors last, and the rest is assigned in rounds: nodes offer their
   free capacity, and a flow takes the smaller offer of both sides (:class:`FeasibleRates`).

Pure: no clock, no state, no random numbers.  See ADR 0032.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from sluice_actors.bandwidth.arrays import BoolArray, FloatArray, IntArray
from sluice_actors.bandwidth.fairness.placement import (
    PlacedRates,
    SideParts,
    carried_payload,
    place_rates,
    round_limit,
    sort_parts,
    trim_to_share,
)
from sluice_actors.bandwidth.fairness.problem import AllocationProblem, MaxMinAllocation, SideAllocation
from sluice_actors.bandwidth.fairness.progressive_filling import SpareDemand, fill_progressively

#: Rounds in which free capacity is assigned: at most, and at least for many parts.
ROUNDS: Final = 40
LEAST_ROUNDS: Final = 10
#: The rounds end when one gives less than this part of all rates.
STILL: Final = 1e-6


@dataclass(slots=True)
class FeasibleRates:
    """(flows,) ``share`` and (parts,) ``rates`` on each of both sides, always within the capacities."""

    sides: Sequence[SideParts]
    share: FloatArray
    rates: Sequence[FloatArray]

    @classmethod
    def within(cls, sides: Sequence[SideParts], rates: Sequence[FloatArray], most: FloatArray) -> FeasibleRates:
        """The feasible rates for ``rates`` on both sides, at most (flows,) ``most`` of each flow."""
        share = np.minimum(most, np.minimum(*map(carried_payload, sides, rates)))
        return cls(sides, share, [trim_to_share(*each, share) for each in zip(sides, rates, strict=True)])

    def free_capacity(self) -> list[FloatArray]:
        """(nodes,) free capacity, of both sides."""
        both = zip(self.sides, self.rates, strict=True)
        return [np.maximum(place.capacity - place.per_node(given), 0.0) for place, given in both]

    def fill(self, most: FloatArray, pull: FloatArray, tenant: IntArray, bound: FloatArray) -> None:
        """Assign free capacity until (flows,) ``most`` and (tenants,) ``bound`` are reached or paths are full.

        :param pull: (flows,) nodes offer their free capacity in proportion to it
        """
        for _ in range(round_limit(max(len(one.flow) for one in self.sides), ROUNDS, LEAST_ROUNDS)):
            lacks = np.maximum(most - self.share, 0.0)
            left = np.maximum(bound - np.bincount(tenant, self.share, minlength=len(bound)), 0.0)
            lacks = np.minimum(lacks, left[tenant])
            pulls = np.where(lacks > 1e-9 * most, pull, 0.0)
            if not pulls.any():
                return
            offers = [_offers(*one, pulls) for one in zip(self.sides, self.free_capacity(), strict=True)]
            more = np.minimum(np.minimum(*map(carried_payload, self.sides, offers)), lacks)
            sums = np.bincount(tenant, more, minlength=len(bound))
            more *= np.divide(left, sums, out=np.ones_like(sums), where=sums > left)[tenant]
            if more.sum() <= STILL * self.share.sum():
                return
            self.share = self.share + more
            self.rates = [
                given + trim_to_share(place, offer, more)
                for place, given, offer in zip(self.sides, self.rates, offers, strict=True)
            ]


def _offers(place: SideParts, room: FloatArray, pull: FloatArray) -> FloatArray:
    """(parts,) the free capacity of nodes by weight × pull; bounded so that rates stay finite."""
    wishes = place.weight * (pull * place.copies)[place.flow]
    sums = place.per_node(wishes)
    finite = np.where(np.isfinite(room), room, np.finfo(np.float64).max ** 0.5)
    return wishes * np.where(sums > 0, finite / np.where(sums > 0, sums, 1.0), 0.0)[place.node]


Sides = Sequence[SideParts]
#: A floor that lacks less than this part of itself is met.
MET: Final = 1e-3


def allocate_max_min(problem: AllocationProblem) -> MaxMinAllocation:
    """Allocate the capacities of ``problem``; every array of the result is new."""
    sides = (sort_parts(problem.proxies), sort_parts(problem.storage))
    unlimited = _unlimited(problem)
    cap = np.minimum(np.minimum(problem.ceiling, problem.bound[problem.tenant]), unlimited)
    most = np.minimum(cap, np.maximum(problem.demand, 0.0))
    target = _bounded(np.minimum(problem.floor, most), problem)
    base, scales = _floors(problem, sides, target)
    spare_demand = SpareDemand(base.share, most, problem.tenant, problem.bound, unlimited)
    feasible = _spare(spare_demand, sides, scales, base)
    promised = _bounded(np.minimum(problem.floor, cap), problem)
    sure = base if np.array_equal(promised, target) else _promised(sides, scales, promised)
    return _result(problem, feasible, base, sure, promised, unlimited)


def _unlimited(problem: AllocationProblem) -> float:
    """A rate above the sum of all finite numbers of the problem."""
    every = (problem.proxies.capacity, problem.storage.capacity, problem.floor, problem.ceiling, problem.demand)
    return 1.0 + 8.0 * float(sum(each[np.isfinite(each)].sum() for each in (*every, problem.bound)))


def _bounded(rates: FloatArray, problem: AllocationProblem) -> FloatArray:
    """(flows,) ``rates``, cut in proportion where they exceed the bound of their tenant."""
    sums = np.bincount(problem.tenant, rates, minlength=len(problem.bound))
    with np.errstate(divide="ignore", invalid="ignore"):
        factor = np.where(sums > problem.bound, problem.bound / sums, 1.0)
    return rates * factor[problem.tenant]


def _floors(problem: AllocationProblem, sides: Sides, target: FloatArray) -> tuple[FeasibleRates, list[FloatArray]]:
    """Place (flows,) ``target`` as floors; returns the rates, and the scales of nodes on both sides."""
    placed = [place_rates(place, target) for place in sides]
    feasible = FeasibleRates.within(sides, [each.rates for each in placed], target)
    if np.any(feasible.share < target * (1 - MET)):
        feasible = _place_again(sides, feasible, placed, target)
        for few in _classes(problem.transfers, feasible.share < target * (1 - MET)):
            feasible.fill(np.where(few, target, feasible.share), target, problem.tenant, problem.bound)
    return feasible, [each.scale for each in placed]


def _promised(sides: Sides, scales: Sequence[FloatArray], target: FloatArray) -> FeasibleRates:
    """Place the floors that would hold if all flows waited."""
    rates = [place_rates(place, target, scale).rates for place, scale in zip(sides, scales, strict=True)]
    return FeasibleRates.within(sides, rates, target)


def _place_again(
    sides: Sides, feasible: FeasibleRates, fitted: Sequence[PlacedRates], target: FloatArray
) -> FeasibleRates:
    """Place again without what the other side cannot carry, and keep the better placement."""
    rates = [
        place_rates(place, np.minimum(target, beside.carried), mine.scale).rates
        for place, mine, beside in zip(sides, fitted, fitted[::-1], strict=True)
    ]
    other = FeasibleRates.within(sides, rates, target)
    return other if other.share.sum() > feasible.share.sum() else feasible


def _classes(transfers: FloatArray, short: BoolArray) -> list[BoolArray]:
    """(flows,) masks of those that are ``short``, by powers of two of their transfers, fewest first."""
    size = np.floor(np.log2(np.maximum(transfers, 1.0)))
    return [short & (size == each) for each in np.unique(size[short])]


def _spare(spare_demand: SpareDemand, sides: Sides, scales: Sequence[FloatArray], base: FeasibleRates) -> FeasibleRates:
    """Rates of floors and spare, within the capacities."""
    if not np.any(spare_demand.most > spare_demand.base):
        return base
    levels = fill_progressively(spare_demand, sides, scales)
    level = np.minimum(spare_demand.base + levels.spare, spare_demand.most)
    fitted = [place_rates(place, level, scale).scale for place, scale in zip(sides, levels.scales, strict=True)]
    cut = [_cut(place, scale, spare_demand.base, levels.spare) for place, scale in zip(sides, fitted, strict=True)]
    feasible = _keep_base(FeasibleRates.within(sides, cut, level), base)
    pull = np.ones_like(level)
    feasible.fill(level, pull, spare_demand.tenant, spare_demand.bound)
    feasible.fill(spare_demand.most, pull, spare_demand.tenant, spare_demand.bound)
    return feasible


def _cut(place: SideParts, scale: FloatArray, base: FloatArray, spare: FloatArray) -> FloatArray:
    """(parts,) rates within the capacities of nodes; the spare is cut before the base."""
    split = place.split(scale)
    certain, above = (split * (each * place.copies)[place.flow] for each in (base, spare))
    sure, more = place.per_node(certain), place.per_node(above)
    with np.errstate(divide="ignore", invalid="ignore"):
        first = np.where(sure > place.capacity, place.capacity / sure, 1.0)
        then = np.where(more > 0, np.clip((place.capacity - sure) / more, 0.0, 1.0), 0.0)
    return certain * first[place.node] + above * then[place.node]


def _keep_base(feasible: FeasibleRates, base: FeasibleRates) -> FeasibleRates:
    """A mixture with the placement of the base in which no base is much reduced; both are within the capacities."""
    with np.errstate(divide="ignore", invalid="ignore"):
        part = np.where(base.share > 0, feasible.share / base.share, 1.0)
    lost = 1.0 - float(part.min(initial=1.0))
    if lost <= MET:
        return feasible
    # with a part `keep` of the placement of the base the worst flow has at least keep + (1 - keep) * (1 - lost)
    keep = min(1.0, 1.0 - MET / lost)
    rates = [keep * old + (1 - keep) * new for old, new in zip(base.rates, feasible.rates, strict=True)]
    return FeasibleRates.within(feasible.sides, rates, np.maximum(base.share, feasible.share))


def _result(
    problem: AllocationProblem,
    feasible: FeasibleRates,
    base: FeasibleRates,
    sure: FeasibleRates,
    promised: FloatArray,
    unlimited: float,
) -> MaxMinAllocation:
    met = np.minimum(np.maximum(sure.share, np.minimum(base.share, promised)), problem.floor)
    met = np.where(met >= promised * (1 - MET), promised, met)
    is_unlimited = feasible.share >= unlimited / 2
    proxies, storage = (
        SideAllocation(
            rates=place.unsorted(np.where(is_unlimited[place.flow], np.inf, rates)),
            floors=place.unsorted(_floor_parts(place, floors, met)),
            spare=spare,
        )
        for place, rates, floors, spare in zip(
            feasible.sides, feasible.rates, sure.rates, feasible.free_capacity(), strict=True
        )
    )
    return MaxMinAllocation(
        share=np.where(is_unlimited, np.inf, feasible.share),
        met=met,
        short=np.where(problem.demand > met, problem.floor - met, 0.0),
        proxies=proxies,
        storage=storage,
    )


def _floor_parts(place: SideParts, rates: FloatArray, met: FloatArray) -> FloatArray:
    """(parts,) rates that add up to (flows,) ``met``, placed as ``rates`` are."""
    now = place.per_flow(rates) / place.copies
    with np.errstate(divide="ignore", invalid="ignore"):
        factor = np.where(now > 0, met / now, 0.0)
    return rates * factor[place.flow]
