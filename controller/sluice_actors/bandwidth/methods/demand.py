"""The flows of one method in one round: the demand, floor and ceiling of each, and the nodes where it is.

The demand of a flow is unlimited while Sluice holds its transfers back, or when it moves its allowed rate; otherwise it
is the flow's current rate and some room to grow.  ``weights`` splits its share among nodes.

Each flow is an object; its parts on nodes are columns.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Final

import numpy as np

from sluice_actors.bandwidth.arrays import BoolArray, FloatArray
from sluice_actors.bandwidth.fairness.water_filling import water_fill
from sluice_actors.bandwidth.loads.flow_index import FlowNodeValues, flow_numbers
from sluice_actors.bandwidth.loads.node_loads import LoadTable
from sluice_actors.bandwidth.methods.node_floors import node_floor_demand
from sluice_actors.bandwidth.methods.weights import (
    CHUNK,
    GROWTH_ROOM,
    MIN_WAITING,
    SMALL_WEIGHT,
    FlowParts,
    set_throttled_weights,
    set_unthrottled_weights,
)
from sluice_actors.bandwidth.objectives import FlowObjectives, Objectives
from sluice_core.describe import STORAGE_NODE
from sluice_core.messages.bandwidth import SIDES, Flow
from sluice_core.messages.policies import TENANT

#: A flow that moves this part of its allowed rate demands more.
SATURATED: Final = 0.9


@dataclass(slots=True)
class FlowDemand:
    """One active flow; the six numbers after ``objectives`` are its ``FlowStats`` on the side that holds it back.

    Rates are bytes per second.
    """

    index: int  #: its position in ``MethodDemand.flows``
    flow: Flow
    objectives: FlowObjectives
    moved: float
    open: float
    waiting: float
    mean_moved: float
    mean_open: float
    mean_waiting: float
    allowed: float = math.inf  #: in the last second, infinite if unknown
    demand: float = math.inf
    floor: float = 0.0  #: 0 for none
    ceiling: float = math.inf
    node_floor: float = 0.0  #: floor on each object server; the demanded part of it is in ``floor``
    promised: float = 0.0  #: the sum of ``node_floor`` over all object servers where the flow is


@dataclass(slots=True)
class MethodDemand:
    """All active flows of one method."""

    side: str  #: where bytes are held back
    parts: dict[str, FlowParts]  #: by side
    flows: list[FlowDemand] = field(default_factory=list)
    bounds: dict[str, float] = field(default_factory=dict)  #: tenant → ceiling over all its flows
    values: FloatArray | None = None  #: (parts at the storage nodes,) node floors, None if there are none

    @property
    def other_side(self) -> str:
        """The side where nothing is held back."""
        return next(side for side in SIDES if side != self.side)

    @property
    def throttled(self) -> FlowParts:
        """The parts of the side where bytes are held back."""
        return self.parts[self.side]

    def per_flow(self, name: str) -> FloatArray:
        """(flows,) one field of each flow."""
        return np.array(list(map(attrgetter(name), self.flows)), dtype=np.float64)

    def promised(self) -> BoolArray:
        """(flows,) true for those with an objective of their own."""
        return np.array([demand.objectives.own is not None for demand in self.flows], dtype=bool)


def collect_demand(
    table: LoadTable, method: str, objectives: Objectives, assigned: FlowNodeValues, weights: FlowNodeValues
) -> MethodDemand:
    """Return the demand of all active flows of ``method``.

    :param assigned: bytes per second that each flow-node was allowed in the last second
    :param weights: the portion of its flow that each flow-node had
    """
    side = objectives.side(method)
    numbers = _active_flows(table, method, side)
    demands = MethodDemand(side, {each: _flow_parts(table, method, each, numbers) for each in SIDES})
    known = assigned.get(demands.throttled.keys, math.nan)
    allowed = np.where(np.isnan(known), np.inf, known)
    set_throttled_weights(demands.throttled, side == STORAGE_NODE, allowed, weights)
    set_unthrottled_weights(demands.parts[demands.other_side])
    flows = [table.flow_index.flows[number] for number in numbers]
    demands.flows = flow_demands(demands.throttled, flows, objectives.for_flow)
    _set_demand(demands, known)
    _set_limits(demands)
    return demands


def _active_flows(table: LoadTable, method: str, side: str) -> list[int]:
    """The numbers of the active flows, in the order of the flows."""
    index = table.indexes(method, side)
    active = np.zeros(len(table.flow_index.flows), dtype=bool)
    active[flow_numbers(table.stats.flow_sides[index[table.stats.active[index]]])] = True
    return sorted(np.flatnonzero(active).tolist(), key=table.flow_index.flows.__getitem__)


def _flow_parts(table: LoadTable, method: str, side: str, flows: list[int]) -> FlowParts:
    index = table.indexes(method, side)
    rank = np.full(len(table.flow_index.flows), len(flows), dtype=np.intp)
    rank[flows] = np.arange(len(flows))
    ranks = rank[flow_numbers(table.stats.flow_sides[index])]
    order = np.argsort(ranks.astype(np.min_scalar_type(len(flows))), kind="stable")
    order = order[: np.count_nonzero(ranks < len(flows))]
    flow, index = ranks[order], index[order]
    node, stats = table.node[index], table.stats.select(index)
    return FlowParts(len(flows), flow, node, table.keys(node, stats.flow_sides), stats, np.ones(len(flow)))


def flow_demands(
    parts: FlowParts, flows: Iterable[Flow], objectives_of: Callable[[Flow], FlowObjectives]
) -> list[FlowDemand]:
    """The flows that are held back at ``parts``, without demands and limits yet."""
    stats = parts.stats
    statistics = (stats.moved, stats.open, stats.waiting, stats.mean_moved, stats.mean_open, stats.mean_waiting)
    columns = [parts.sums(column).tolist() for column in statistics]
    return [
        FlowDemand(index, flow, objectives_of(flow), *sums)
        for index, (flow, *sums) in enumerate(zip(flows, *columns, strict=True))
    ]


def _set_demand(demands: MethodDemand, known: FloatArray) -> None:
    sure = ~np.isnan(known)
    sums = demands.throttled.sums(np.where(sure, known, 0.0))
    rates = np.where(demands.throttled.sums(sure) > 0, sums, np.inf).tolist()
    for flow, allowed in zip(demands.flows, rates, strict=True):
        flow.allowed = allowed
        if flow.waiting <= MIN_WAITING and not math.isinf(allowed) and flow.moved < SATURATED * allowed:
            flow.demand = flow.moved * GROWTH_ROOM + CHUNK


# -- floors and ceilings


def _set_limits(demands: MethodDemand) -> None:
    """Set floors and ceilings; one objective of a tenant may cover several flows (storage policies, containers)."""
    tenants: dict[str, list[FlowDemand]] = {}
    promised: dict[tuple[str, str], list[FlowDemand]] = {}
    bounded: dict[tuple[str, str], list[FlowDemand]] = {}
    for demand in demands.flows:
        account, own, bound = demand.flow.account, demand.objectives.own, demand.objectives.bound
        tenants.setdefault(account, []).append(demand)
        if own is not None:
            path = account if own.level == TENANT else demand.flow.path
            promised.setdefault((own.assignment, path), []).append(demand)
            if own is not bound and own.ceiling:
                demand.ceiling = own.ceiling
        if bound is not None:
            bounded.setdefault((bound.assignment, account), []).append(demand)
    for several in promised.values():
        _set_floors(several)
    _set_node_floors(demands, list(promised.values()))
    for (_, account), several in bounded.items():
        _set_bound(demands, account, several, everything=len(several) == len(tenants[account]))


def _set_floors(several: list[FlowDemand]) -> None:
    """Share the floor of one objective among its flows."""
    own = several[0].objectives.own
    assert own is not None
    for demand in several:
        demand.node_floor = own.node_floor
    if len(several) == 1:
        several[0].floor = own.floor
        return
    weights, filled = _filled(own.floor, several, [demand.demand for demand in several])
    rest = own.floor - sum(filled)
    for demand, floor, weight in zip(several, filled, weights, strict=True):
        demand.floor = floor + rest * weight / sum(weights)


def _filled(total: float, several: list[FlowDemand], limits: list[float]) -> tuple[list[float], list[float]]:
    """Weights of flows by their transfers, and ``total`` divided among them within ``limits``."""
    weights = [max(demand.mean_open, SMALL_WEIGHT) for demand in several]
    return weights, water_fill(total, weights, limits)


def _set_node_floors(demands: MethodDemand, promised: list[list[FlowDemand]]) -> None:
    """Add the floors of each object server, which the flows of one objective share."""
    if not any(several[0].node_floor for several in promised):
        return
    groups = np.full(len(demands.flows), -1, dtype=np.intp)
    for number, several in enumerate(promised):
        groups[[demand.index for demand in several]] = number
    stored = demands.parts[STORAGE_NODE]
    waits = demands.side == STORAGE_NODE
    demands.values = node_floor_demand(stored, demands.per_flow("node_floor"), groups, waits=waits)
    sums = stored.sums(demands.values).tolist()
    for several in promised:
        node_floor = several[0].node_floor
        if not node_floor:
            continue
        servers = len({node for demand in several for node in stored.nodes_of(demand.index).tolist()})
        most = max(node_floor * servers, sum(demand.floor for demand in several))
        for demand in several:
            demand.floor = max(demand.floor, sums[demand.index])
            demand.promised = most / len(several)


def _set_bound(demands: MethodDemand, account: str, several: list[FlowDemand], everything: bool) -> None:
    """Apply a tenant's ceiling to ``several`` of its flows, or to all of them (``everything``)."""
    bound = several[0].objectives.bound
    assert bound is not None
    if everything:
        demands.bounds[account] = bound.ceiling
        return
    weights, filled = _filled(bound.ceiling, several, [min(demand.demand, demand.ceiling) for demand in several])
    rest = max(bound.ceiling - sum(filled), 0.0)
    for demand, part, weight in zip(several, filled, weights, strict=True):
        demand.ceiling = min(demand.ceiling, part + rest * weight / sum(weights))
