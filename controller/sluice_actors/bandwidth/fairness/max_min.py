"""How one method's bandwidth is divided in one round: floors first, then the spare in equal shares.

1. *Floors*: what each flow wants of its floor is placed on its nodes of both sides, near where its bytes are; what a
   node cannot carry moves to the flow's other nodes, and what cannot move is cut in proportion (``division_fit``).
   What that leaves free goes to floors that are short, those of flows with the fewest parallel transfers first.
2. *Spare*: every tenant that wants more gets the same on top, until it has what it wants, is at a ceiling, or all its
   paths are full (``division_levels``).
3. *Rest*: rates are cut to what nodes carry, floors last, and what is still free is given away (``division_fill``).

Pure: no clock, no memory, no chance.  See ADR 0032.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from sluice_actors.bandwidth.arrays import BoolArray, FloatArray
from sluice_actors.bandwidth.fairness.feasible_rates import FeasibleRates
from sluice_actors.bandwidth.fairness.parts import SideParts, sort_parts
from sluice_actors.bandwidth.fairness.placement import Placement, place_rates
from sluice_actors.bandwidth.fairness.problem import AllocationProblem, MaxMinAllocation
from sluice_actors.bandwidth.fairness.progressive_filling import SpareDemand, fill_progressively

Pair = tuple[SideParts, SideParts]
#: A floor that lacks less than this part of itself is met.
MET: Final = 1e-3


def allocate_max_min(problem: AllocationProblem) -> MaxMinAllocation:
    """Divide; every array of the answer is new."""
    sides = (sort_parts(problem.proxies), sort_parts(problem.storage))
    endless = _endless(problem)
    cap = np.minimum(np.minimum(problem.ceiling, problem.bound[problem.tenant]), endless)
    most = np.minimum(cap, np.maximum(problem.demand, 0.0))
    target = _bounded(np.minimum(problem.floor, most), problem)
    base, scales = _floors(problem, sides, target)
    wanted = SpareDemand(base.share, most, problem.tenant, problem.bound, endless)
    filling = _spare(wanted, sides, scales, base)
    promised = _bounded(np.minimum(problem.floor, cap), problem)
    sure = base if np.array_equal(promised, target) else _promised(sides, scales, promised)
    return _answer(problem, filling, base, sure, promised, endless)


def _endless(problem: AllocationProblem) -> float:
    """More than anything finite in the problem, together."""
    every = (problem.proxies.capacity, problem.storage.capacity, problem.floor, problem.ceiling, problem.demand)
    return 1.0 + 8.0 * float(sum(one[np.isfinite(one)].sum() for one in (*every, problem.bound)))


def _bounded(rates: FloatArray, problem: AllocationProblem) -> FloatArray:
    """Rates that together exceed a tenant's bound are reduced in proportion."""
    sums = np.bincount(problem.tenant, rates, minlength=len(problem.bound))
    with np.errstate(divide="ignore", invalid="ignore"):
        factor = np.where(sums > problem.bound, problem.bound / sums, 1.0)
    return rates * factor[problem.tenant]


def _floors(
    problem: AllocationProblem, sides: Pair, target: FloatArray
) -> tuple[FeasibleRates, tuple[FloatArray, FloatArray]]:
    """Place floors; the scales of nodes that fit them."""
    first, second = (place_rates(place, target) for place in sides)
    filling = FeasibleRates.of(sides, (first.rates, second.rates), target)
    if np.any(filling.share < target * (1 - MET)):
        filling = _again(sides, filling, (first, second), target)
        for few in _classes(problem.transfers, filling.share < target * (1 - MET)):
            filling.fill(np.where(few, target, filling.share), target, problem.tenant, problem.bound)
    return filling, (first.scale, second.scale)


def _promised(sides: Pair, scales: tuple[FloatArray, FloatArray], target: FloatArray) -> FeasibleRates:
    """The same when all wait."""
    first, second = (place_rates(place, target, scale) for place, scale in zip(sides, scales, strict=True))
    return FeasibleRates.of(sides, (first.rates, second.rates), target)


def _again(
    sides: Pair, filling: FeasibleRates, fitted: tuple[Placement, Placement], target: FloatArray
) -> FeasibleRates:
    """What one side cannot carry need not be placed on the other: place the rest there again, if that is better."""
    rates = tuple(
        place_rates(place, np.minimum(target, beside.carried), mine.scale).rates
        for place, mine, beside in zip(sides, fitted, fitted[::-1], strict=True)
    )
    other = FeasibleRates.of(sides, (rates[0], rates[1]), target)
    return other if other.share.sum() > filling.share.sum() else filling


def _classes(transfers: FloatArray, short: BoolArray) -> list[BoolArray]:
    """Those that are short, by powers of two of their transfers, fewest first."""
    size = np.floor(np.log2(np.maximum(transfers, 1.0)))
    return [short & (size == one) for one in np.unique(size[short])]


def _spare(
    wanted: SpareDemand, sides: Pair, scales: tuple[FloatArray, FloatArray], base: FeasibleRates
) -> FeasibleRates:
    """Bases and equal spare, within the capacities."""
    if not np.any(wanted.most > wanted.base):
        return base
    risen = fill_progressively(wanted, sides, scales)
    level = np.minimum(wanted.base + risen.spare, wanted.most)
    fitted = [place_rates(place, level, scale).scale for place, scale in zip(sides, risen.scales, strict=True)]
    cut = [_cut(place, scale, wanted.base, risen.spare) for place, scale in zip(sides, fitted, strict=True)]
    filling = _kept(FeasibleRates.of(sides, (cut[0], cut[1]), level), base)
    pull = np.ones_like(level)
    filling.fill(level, pull, wanted.tenant, wanted.bound)
    filling.fill(wanted.most, pull, wanted.tenant, wanted.bound)
    return filling


def _cut(place: SideParts, scale: FloatArray, base: FloatArray, spare: FloatArray) -> FloatArray:
    """(parts,) rates on nodes; of what is too much the spare is cut first."""
    split = place.split(scale)
    certain, above = (split * (one * place.copies)[place.flow] for one in (base, spare))
    sure, more = place.per_node(certain), place.per_node(above)
    with np.errstate(divide="ignore", invalid="ignore"):
        first = np.where(sure > place.capacity, place.capacity / sure, 1.0)
        then = np.where(more > 0, np.clip((place.capacity - sure) / more, 0.0, 1.0), 0.0)
    return certain * first[place.node] + above * then[place.node]


def _kept(filling: FeasibleRates, base: FeasibleRates) -> FeasibleRates:
    """A mixture with the bases' own placement (both are within the capacities) in which no base is much reduced."""
    with np.errstate(divide="ignore", invalid="ignore"):
        part = np.where(base.share > 0, filling.share / base.share, 1.0)
    lost = 1.0 - float(part.min(initial=1.0))
    if lost <= MET:
        return filling
    # a part of `keep` of the bases' placement leaves the worst with at least keep + (1 - keep) * (1 - lost)
    keep = min(1.0, 1.0 - MET / lost)
    rates = tuple(keep * old + (1 - keep) * new for old, new in zip(base.rates, filling.rates, strict=True))
    return FeasibleRates.of(filling.sides, (rates[0], rates[1]), np.maximum(base.share, filling.share))


def _answer(
    problem: AllocationProblem,
    filling: FeasibleRates,
    base: FeasibleRates,
    sure: FeasibleRates,
    promised: FloatArray,
    endless: float,
) -> MaxMinAllocation:
    met = np.minimum(np.maximum(sure.share, np.minimum(base.share, promised)), problem.floor)
    met = np.where(met >= promised * (1 - MET), promised, met)
    without_end = filling.share >= endless / 2
    proxies, storage = (
        np.where(without_end[place.flow], np.inf, rates)
        for place, rates in zip(filling.sides, filling.rates, strict=True)
    )
    rooms = filling.room()
    floors = [_floor_parts(*one, met) for one in zip(filling.sides, sure.rates, filling.rates, strict=True)]
    first, second = filling.sides
    return MaxMinAllocation(
        share=np.where(without_end, np.inf, filling.share),
        met=met,
        short=np.where(problem.demand > met, problem.floor - met, 0.0),
        proxies=first.given(proxies),
        storage=second.given(storage),
        proxy_floors=first.given(floors[0]),
        storage_floors=second.given(floors[1]),
        spare_proxies=rooms[0],
        spare_storage=rooms[1],
    )


def _floor_parts(place: SideParts, rates: FloatArray, final: FloatArray, met: FloatArray) -> FloatArray:
    """(parts,) what adds up to ``met``, placed as the floors were."""
    now = place.per_flow(rates) / place.copies
    with np.errstate(divide="ignore", invalid="ignore"):
        factor = np.where(now > 0, met / now, 0.0)
    return rates * factor[place.flow]
