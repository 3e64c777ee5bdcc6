"""Allocates a method that has floors: all its active flows are held back, as far as capacities are known.

``fairness.max_min`` computes the shares.  Capacity without demand is handed out too, in equal parts, so that a
flow that demands more before the next round need not wait for it.

A flow that moves less than its floor for some seconds counts as short of it, if Sluice holds it back, or if its nodes
replicate at least as much as the flow lacks: without a cap, replication is not held back, and it uses the same disks.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from sluice_actors.bandwidth.arrays import FloatArray
from sluice_actors.bandwidth.fairness.max_min import allocate_max_min
from sluice_actors.bandwidth.fairness.problem import AllocationProblem, Side, SideAllocation
from sluice_actors.bandwidth.loads.node_loads import LoadTable
from sluice_actors.bandwidth.methods.allocation import (
    MIN_RATE,
    UNTHROTTLED,
    Capacity,
    FlowNodeRates,
    MethodAllocation,
    share_columns,
)
from sluice_actors.bandwidth.methods.demand import MethodDemand
from sluice_actors.bandwidth.methods.node_floors import allocate_above_node_floors
from sluice_core.describe import PROXY, STORAGE_NODE
from sluice_core.messages.bandwidth import PUT, REPLICATION, SIDES, Flow

#: A flow is short after it has moved less than this part of its floor for this many seconds.
_SLOW: Final = 0.9
_SLOW_SECONDS: Final = 4.0
#: Mean open transfers of a flow that could move its floor, and the least part of them that Sluice holds back.
_MIN_OPEN, _MIN_WAITING = 0.9, 0.1


def allocate_floors(
    table: LoadTable, demands: MethodDemand, capacity: Capacity, copies: Mapping[int, float]
) -> MethodAllocation:
    """Allocate the capacity of the nodes.

    :param copies: storage policy → bytes stored per byte of an upload
    """
    allocation = MethodAllocation(table, demands, governed=True)
    sides = {side: _Side(side, table, capacity, demands, copies) for side in SIDES}
    here, there = sides[demands.side], sides[demands.other_side]
    if demands.flows:
        problem = _problem(demands, sides)
        division = (
            allocate_max_min(problem) if demands.values is None else allocate_above_node_floors(problem, demands.values)
        )
        allocation.share, allocation.met, allocation.short = division.share, division.met, division.short
        sides[PROXY].outcome, sides[STORAGE_NODE].outcome = division.proxies, division.storage
        _add_throttled_side(allocation, here, there)
        _add_other_side(allocation, there)
    _set_newcomers(allocation, here, there)
    return allocation


def _set_newcomers(allocation: MethodAllocation, here: _Side, there: _Side) -> None:
    """Set the rates with which new flows begin: the mean of the others, or the capacity left over if that is more."""
    serving = allocation.table.serving(here.name).tolist()
    if not serving:
        return
    carried, unused = there.carries() / len(serving), there.unused() / len(serving)
    for index in serving:
        carries = min(float(here.capacity[index]), carried)
        if math.isfinite(carries):
            spare = min(float(here.outcome.spare[index]), unused)
            allocation.newcomers[index] = max(carries / (float(here.crowd[index]) + 1), spare, MIN_RATE)


class _Side:
    """One side of the problem and of its solution; a flow that moved no byte here has no part."""

    def __init__(
        self, name: str, table: LoadTable, capacity: Capacity, demands: MethodDemand, copies: Mapping[int, float]
    ) -> None:
        stored = name == STORAGE_NODE
        self.name = name
        self.parts = demands.parts[name]
        self.capacity = np.array([capacity(name, node) for node in table.nodes], dtype=np.float64)
        self.serving = table.serving(name)
        #: (flows,) true for flows on any node whose capacity is known
        self.held = self.parts.sums(np.isfinite(self.capacity)[self.parts.node]) > 0
        self.copies = np.array(
            [
                copies.get(demand.flow.policy, 1.0) if stored and demand.flow.method == PUT else 1.0
                for demand in demands.flows
            ],
            dtype=np.float64,
        )
        self.crowd = np.bincount(self.parts.node, minlength=len(self.capacity))
        self.outcome = SideAllocation(np.empty(0), np.empty(0), self.capacity)

    def side(self) -> Side:
        """The input of ``allocate_max_min``."""
        return Side(self.capacity, self.parts.flow, self.parts.node, self.parts.weight, self.copies)

    def carries(self) -> float:
        """The capacity of all nodes of this side, in bytes of payload per second."""
        return self._sum(self.capacity)

    def unused(self) -> float:
        """The spare capacity of all nodes, in bytes of payload per second."""
        return self._sum(self.outcome.spare)

    def _sum(self, rates: FloatArray) -> float:
        if not len(self.serving):
            return math.inf
        return float(rates[self.serving].sum()) / float(self.copies.max() if len(self.copies) else 1.0)


def _problem(demands: MethodDemand, sides: Mapping[str, _Side]) -> AllocationProblem:
    accounts = {demand.flow.account: None for demand in demands.flows}
    number = {account: position for position, account in enumerate(accounts)}
    here, there = (sides[side].side() for side in SIDES)
    ceiling = demands.per_flow("ceiling")
    return AllocationProblem(
        floor=np.minimum(demands.per_flow("floor"), ceiling),
        ceiling=ceiling,
        demand=demands.per_flow("demand"),
        tenant=np.array([number[demand.flow.account] for demand in demands.flows], dtype=np.intp),
        bound=np.array([demands.bounds.get(account, math.inf) for account in accounts], dtype=np.float64),
        transfers=np.maximum(demands.per_flow("mean_open"), 1e-3),
        proxies=here,
        storage=there,
    )


def _add_throttled_side(allocation: MethodAllocation, here: _Side, there: _Side) -> None:
    """Add the shares of the side where bytes are held back."""
    flow, rates = here.parts.flow, here.outcome.rates
    ceiling, share = _flow_ceilings(allocation), allocation.share
    held = (here.held | there.held | np.isfinite(ceiling))[flow] & np.isfinite(rates)
    part = np.divide(rates, share[flow], out=np.zeros_like(rates), where=held & (share[flow] > 0))
    bounded = held & np.isfinite(ceiling)[flow] & (share > 0)[flow]
    most = np.multiply(ceiling[flow], part, out=np.full_like(rates, np.inf), where=bounded)
    given = np.maximum(np.minimum(rates + _leftover(here, there)[here.parts.node], most), np.minimum(MIN_RATE, most))
    allocation.add(
        share_columns(
            allocation.demands,
            here.parts,
            held | allocation.demands.promised()[flow],
            np.where(held, given, UNTHROTTLED),
            here.outcome.floors,
            np.where(np.isfinite(most), most, 0.0),
        )
    )


def _leftover(here: _Side, there: _Side) -> FloatArray:
    """(nodes,) each flow's part of the capacity without demand, as far as the other side can carry it too."""
    spare = here.outcome.spare
    unused = float(spare[here.crowd > 0].sum())
    left = there.unused()
    if math.isinf(unused):
        count = len(here.parts.flow)
        even = left / count if count and math.isfinite(left) else 0.0
        return np.where(np.isinf(spare), even, 0.0)
    part = min(left / unused, 1.0) if unused > 0 else 0.0
    found: FloatArray = np.where(here.crowd > 0, spare, 0.0) / np.maximum(here.crowd, 1) * part
    return found


def _flow_ceilings(allocation: MethodAllocation) -> FloatArray:
    """(flows,) ceilings; a tenant's ceiling is split among its flows in proportion to their shares."""
    flows, bounds = allocation.demands.flows, allocation.demands.bounds
    ceilings = allocation.demands.per_flow("ceiling")
    sums = dict.fromkeys(bounds, 0.0)
    shares = allocation.share.tolist()
    for demand, share in zip(flows, shares, strict=True):
        if demand.flow.account in sums:
            sums[demand.flow.account] += share
    for demand, share in zip(flows, shares, strict=True):
        bound, total = bounds.get(demand.flow.account, math.inf), sums.get(demand.flow.account, 0.0)
        if math.isfinite(bound):
            ceilings[demand.index] = min(ceilings[demand.index], bound * share / total if total > 0 else bound)
    return ceilings


def _add_other_side(allocation: MethodAllocation, there: _Side) -> None:
    """Add the floors of flows with an objective, and expected rates, of the side where Sluice does not throttle."""
    parts, rates = there.parts, there.outcome.rates
    nothing = np.zeros_like(rates)
    promised = allocation.demands.promised()[parts.flow]
    allocation.shares.append(
        share_columns(allocation.demands, parts, promised, nothing + UNTHROTTLED, there.outcome.floors, nothing)
    )
    known = np.flatnonzero(promised | np.isfinite(rates))
    allocation.rates.append(FlowNodeRates(parts.node[known], parts.stats.flow_sides[known], rates[known]))


@dataclass(slots=True)
class SlowFlows:
    """Remembers since when flows of one method have been slow."""

    _since: dict[Flow, float] = field(default_factory=dict)

    def apply(self, allocation: MethodAllocation, now: float) -> None:
        """Set the met and the missing part of the floors of slow flows."""
        demands, table = allocation.demands, allocation.table
        floors = np.minimum(allocation.met, demands.per_flow("ceiling"))
        moved, opened = demands.per_flow("mean_moved"), demands.per_flow("mean_open")
        slow = np.flatnonzero((floors > 0) & (moved < _SLOW * floors) & (opened >= _MIN_OPEN)).tolist()
        before, self._since = self._since, {}
        copied = table.per_node(REPLICATION, STORAGE_NODE, table.stats.mean_moved) if slow else np.empty(0)
        for index in slow:
            demand = demands.flows[index]
            missing = float(floors[index] - moved[index])
            nodes = demands.parts[STORAGE_NODE].nodes_of(index)
            waits = demand.mean_waiting > _MIN_WAITING * demand.mean_open
            if waits or float(copied[nodes].sum()) >= missing:
                since = self._since[demand.flow] = before.get(demand.flow, now)
                if now - since >= _SLOW_SECONDS:
                    allocation.short[index] = demand.floor - moved[index]
                    allocation.met[index] = moved[index]
