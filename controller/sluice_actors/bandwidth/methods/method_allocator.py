"""One method divided once: what was wanted becomes a rate for each flow on each node.

* No objective: nothing is held back.
* Ceilings alone: the flows that have one are held back, by it and nothing else.  Object servers are told their classes.
* With a floor: all active flows are, as far as capacities are known (``sluice_actors.bandwidth.fairness.max_min``).
   What nobody wants now is handed out nevertheless, in equal parts, so that whoever wants more before the next
   round need not wait for it.

Rates in bytes per second of payload at the side in question; negative: as much as it likes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from sluice_actors.bandwidth.arrays import BoolArray, FloatArray, IntArray
from sluice_actors.bandwidth.fairness.max_min import allocate_max_min
from sluice_actors.bandwidth.fairness.problem import AllocationProblem, MaxMinAllocation, Side
from sluice_actors.bandwidth.fairness.water_filling import water_fill
from sluice_actors.bandwidth.loads.flow_node_values import FlowNodeValues
from sluice_actors.bandwidth.loads.node_loads import Node
from sluice_actors.bandwidth.loads.table import LoadTable
from sluice_actors.bandwidth.methods.demand import FlowDemand, MethodDemand
from sluice_actors.bandwidth.methods.node_floors import allocate_above_node_floors
from sluice_actors.bandwidth.methods.weights import FlowParts
from sluice_actors.bandwidth.share_encoder import ShareColumns
from sluice_core.describe import STORAGE_NODE
from sluice_core.messages.bandwidth import NO_CLASS, PUT, SIDES

UNTHROTTLED: Final = -1.0
#: Nobody is held back completely: a client would hang up, and a share of nothing would never be found too small.
MIN_RATE: Final = 4096.0

Capacity = Callable[[str, Node], float]


@dataclass(frozen=True, slots=True)
class FlowNodeRates:
    """What may move where; infinite: as much as it likes.  Nodes and places as in ``ShareColumns``."""

    node: IntArray
    place: IntArray
    rate: FloatArray


@dataclass(slots=True)
class MethodAllocation:
    """The outcome for one method.

    ``share``, ``met`` and ``short`` are those of each flow, ``rates`` those of each spot (they sum up to the shares, or
    where there is something left to somewhat more), ``newcomers`` is what a new flow begins with, by where its
    node stands.
    """

    table: LoadTable
    demands: MethodDemand
    governed: bool = False
    share: FloatArray = field(init=False)
    met: FloatArray = field(init=False)
    short: FloatArray = field(init=False)
    shares: list[ShareColumns] = field(default_factory=list)
    rates: list[FlowNodeRates] = field(default_factory=list)
    newcomers: dict[int, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        count = len(self.demands.flows)
        self.share, self.short = np.full(count, np.inf), np.zeros(count)
        self.met = self.demands.per_flow("floor")

    def add(self, told: ShareColumns) -> None:
        """Have these rates."""
        self.shares.append(told)
        self.rates.append(FlowNodeRates(told.node, told.place, np.where(told.rate < 0, np.inf, told.rate)))

    def assigned(self) -> FlowNodeValues:
        """The rate of each spot that has one."""
        if not self.rates:
            return FlowNodeValues()
        keys = [self.table.keys(one.node, one.place) for one in self.rates]
        return FlowNodeValues.from_unsorted(np.concatenate(keys), np.concatenate([one.rate for one in self.rates]))


def share_columns(
    demands: MethodDemand, parts: FlowParts, which: BoolArray, rate: FloatArray, floor: FloatArray, ceiling: FloatArray
) -> ShareColumns:
    """Of ``parts``, each of which has these rates, ``which``."""
    own = [one.objectives.own for one in demands.flows]
    priority = np.array([NO_CLASS if one is None else one.priority for one in own], dtype=np.intp)
    index = np.flatnonzero(which)
    return ShareColumns(
        parts.node[index],
        parts.stats.flow_sides[index],
        rate[index],
        floor[index],
        ceiling[index],
        priority[parts.flow[index]],
    )


def allocate_ceilings(table: LoadTable, demands: MethodDemand) -> MethodAllocation:
    """Hold back those that have a ceiling."""
    made = MethodAllocation(table, demands, governed=True)
    tenants: dict[str, list[FlowDemand]] = {}
    for one in demands.flows:
        if one.objectives.has_ceiling:
            tenants.setdefault(one.flow.account, []).append(one)
    for account, several in tenants.items():
        bound = demands.bounds.get(account, math.inf)
        ceilings = [one.ceiling for one in several]
        shares = water_fill(bound, [1.0] * len(several), [min(one.demand, one.ceiling) for one in several])
        left = water_fill(
            bound - sum(shares), [1.0] * len(several), [c - s for c, s in zip(ceilings, shares, strict=True)]
        )
        for one, share, more in zip(several, shares, left, strict=True):
            made.share[one.index] = share + more if math.isfinite(bound) else one.ceiling
    here = demands.throttled
    rate = made.share[here.flow] * here.portions()
    made.add(share_columns(demands, here, np.isfinite(rate), rate, np.zeros_like(rate), rate))
    there = demands.parts[demands.other_side]
    nothing = np.zeros(len(there.flow))
    made.shares.append(
        share_columns(demands, there, demands.promised()[there.flow], nothing + UNTHROTTLED, nothing, nothing)
    )
    return made


def allocate_floors(
    table: LoadTable, demands: MethodDemand, capacity: Capacity, copies: Mapping[int, float]
) -> MethodAllocation:
    """Divide what nodes carry; ``copies`` maps a storage policy to the bytes stored per byte of an upload."""
    made = MethodAllocation(table, demands, governed=True)
    sides = {side: _Side(side, table, capacity, demands, copies) for side in SIDES}
    here, there = sides[demands.side], sides[demands.other_side]
    if demands.flows:
        problem = _problem(demands, sides)
        division = (
            allocate_max_min(problem) if demands.values is None else allocate_above_node_floors(problem, demands.values)
        )
        made.share, made.met, made.short = division.share, division.met, division.short
        for side in sides.values():
            side.take(division)
        _share_out(made, here, there)
        _tell_other(made, there)
    _set_newcomers(made, here, there)
    return made


def _set_newcomers(made: MethodAllocation, here: _Side, there: _Side) -> None:
    """What flows begin with that nobody knows yet: the same as others, or what is left if that is more."""
    serving = made.table.serving(here.name).tolist()
    if not serving:
        return
    carried, unused = there.carries() / len(serving), there.unused() / len(serving)
    for index in serving:
        carries = min(float(here.capacity[index]), carried)
        if math.isfinite(carries):
            spare = min(float(here.spare[index]), unused)
            made.newcomers[index] = max(carries / (float(here.crowd[index]) + 1), spare, MIN_RATE)


class _Side:
    """One side of the problem, and what came of it; a flow of which no byte was seen here has no part."""

    def __init__(
        self, name: str, table: LoadTable, capacity: Capacity, demands: MethodDemand, copies: Mapping[int, float]
    ) -> None:
        stored = name == STORAGE_NODE
        self.name = name
        self.parts = demands.parts[name]
        self.capacity = np.array([capacity(name, node) for node in table.nodes], dtype=np.float64)
        self.serving = table.serving(name)
        #: (flows,) those that lie on a node whose capacity is known.
        self.held = self.parts.sums(np.isfinite(self.capacity)[self.parts.node]) > 0
        self.copies = np.array(
            [copies.get(one.flow.policy, 1.0) if stored and one.flow.method == PUT else 1.0 for one in demands.flows],
            dtype=np.float64,
        )
        self.crowd = np.bincount(self.parts.node, minlength=len(self.capacity))
        self.rates = self.floors = np.empty(0)
        self.spare = self.capacity

    def side(self) -> Side:
        """As ``divide`` wants it."""
        return Side(self.capacity, self.parts.flow, self.parts.node, self.parts.weight, self.copies)

    def take(self, division: MaxMinAllocation) -> None:
        """What came of it."""
        stored = self.name == STORAGE_NODE
        self.rates = division.storage if stored else division.proxies
        self.floors = division.storage_floors if stored else division.proxy_floors
        self.spare = np.maximum(division.spare_storage if stored else division.spare_proxies, 0.0)

    def carries(self) -> float:
        """What all nodes of this side carry, in bytes of payload."""
        return self._sum(self.capacity)

    def unused(self) -> float:
        """The same of what is left."""
        return self._sum(self.spare)

    def _sum(self, rates: FloatArray) -> float:
        if not len(self.serving):
            return math.inf
        return float(rates[self.serving].sum()) / float(self.copies.max() if len(self.copies) else 1.0)


def _problem(demands: MethodDemand, sides: Mapping[str, _Side]) -> AllocationProblem:
    accounts = {one.flow.account: None for one in demands.flows}
    number = {account: place for place, account in enumerate(accounts)}
    here, there = (sides[side].side() for side in SIDES)
    ceiling = demands.per_flow("ceiling")
    return AllocationProblem(
        floor=np.minimum(demands.per_flow("floor"), ceiling),
        ceiling=ceiling,
        demand=demands.per_flow("demand"),
        tenant=np.array([number[one.flow.account] for one in demands.flows], dtype=np.intp),
        bound=np.array([demands.bounds.get(account, math.inf) for account in accounts], dtype=np.float64),
        transfers=np.maximum(demands.per_flow("mean_open"), 1e-3),
        proxies=here,
        storage=there,
    )


def _share_out(made: MethodAllocation, here: _Side, there: _Side) -> None:
    """Rates where bytes are held back."""
    flow, rates = here.parts.flow, here.rates
    ceiling, share = _ceilings(made), made.share
    held = (here.held | there.held | np.isfinite(ceiling))[flow] & np.isfinite(rates)
    part = np.divide(rates, share[flow], out=np.zeros_like(rates), where=held & (share[flow] > 0))
    bounded = held & np.isfinite(ceiling)[flow] & (share > 0)[flow]
    most = np.multiply(ceiling[flow], part, out=np.full_like(rates, np.inf), where=bounded)
    given = np.maximum(np.minimum(rates + _extra(here, there)[here.parts.node], most), np.minimum(MIN_RATE, most))
    made.add(
        share_columns(
            made.demands,
            here.parts,
            held | made.demands.promised()[flow],
            np.where(held, given, UNTHROTTLED),
            here.floors,
            np.where(np.isfinite(most), most, 0.0),
        )
    )


def _extra(here: _Side, there: _Side) -> FloatArray:
    """(nodes,) what each flow there gets of what nobody wants now, as far as the other side can carry that too."""
    unused = float(here.spare[here.crowd > 0].sum())
    left = there.unused()
    if math.isinf(unused):
        count = len(here.parts.flow)
        even = left / count if count and math.isfinite(left) else 0.0
        return np.where(np.isinf(here.spare), even, 0.0)
    part = min(left / unused, 1.0) if unused > 0 else 0.0
    found: FloatArray = np.where(here.crowd > 0, here.spare, 0.0) / np.maximum(here.crowd, 1) * part
    return found


def _ceilings(made: MethodAllocation) -> FloatArray:
    """The ceiling of each flow; of a tenant's, each flow's part is as its share."""
    flows, bounds = made.demands.flows, made.demands.bounds
    found = made.demands.per_flow("ceiling")
    sums = dict.fromkeys(bounds, 0.0)
    shares = made.share.tolist()
    for one, share in zip(flows, shares, strict=True):
        if one.flow.account in sums:
            sums[one.flow.account] += share
    for one, share in zip(flows, shares, strict=True):
        bound, total = bounds.get(one.flow.account, math.inf), sums.get(one.flow.account, 0.0)
        if math.isfinite(bound):
            found[one.index] = min(found[one.index], bound * share / total if total > 0 else bound)
    return found


def _tell_other(made: MethodAllocation, there: _Side) -> None:
    """Where nothing is held back: whose floor is how much there, of flows with an objective, and what may move."""
    parts, nothing = there.parts, np.zeros_like(there.rates)
    promised = made.demands.promised()[parts.flow]
    made.shares.append(share_columns(made.demands, parts, promised, nothing + UNTHROTTLED, there.floors, nothing))
    known = np.flatnonzero(promised | np.isfinite(there.rates))
    made.rates.append(FlowNodeRates(parts.node[known], parts.stats.flow_sides[known], there.rates[known]))
