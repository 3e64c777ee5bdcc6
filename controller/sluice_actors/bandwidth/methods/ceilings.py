"""Allocates a method whose objectives are ceilings alone, and keeps ceilings of flows that have ended.

Sluice throttles the flows that have a ceiling, and no others.  The ceiling of a flow stays in force for a minute after
the flow has ended.  Without that, each request of a client that sends one every two seconds would begin without a
ceiling.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from sluice_actors.bandwidth.arrays import IntArray
from sluice_actors.bandwidth.fairness.water_filling import water_fill
from sluice_actors.bandwidth.loads.node_loads import LoadTable
from sluice_actors.bandwidth.methods.allocation import MethodAllocation, add_priorities, share_columns
from sluice_actors.bandwidth.methods.demand import FlowDemand, MethodDemand
from sluice_actors.bandwidth.objectives import FlowObjectives, Objectives
from sluice_actors.bandwidth.share_encoder import ShareColumns
from sluice_core.messages.bandwidth import NO_CLASS, Flow

#: Seconds for which a flow with a ceiling is remembered after its last byte, and the maximum number of such flows.
RETENTION_SECONDS: Final = 60.0
MAX_RETAINED: Final = 1000


def allocate_ceilings(table: LoadTable, demands: MethodDemand) -> MethodAllocation:
    """Hold back the flows that have a ceiling; the other side gets the priorities of flows with objectives."""
    allocation = MethodAllocation(table, demands, governed=True)
    tenants: dict[str, list[FlowDemand]] = {}
    for demand in demands.flows:
        if demand.objectives.has_ceiling:
            tenants.setdefault(demand.flow.account, []).append(demand)
    for account, several in tenants.items():
        bound = demands.bounds.get(account, math.inf)
        ceilings, even = [demand.ceiling for demand in several], [1.0] * len(several)
        shares = water_fill(bound, even, [min(demand.demand, demand.ceiling) for demand in several])
        rooms = [ceiling - share for ceiling, share in zip(ceilings, shares, strict=True)]
        left = water_fill(bound - sum(shares), even, rooms)
        for demand, share, more in zip(several, shares, left, strict=True):
            allocation.share[demand.index] = share + more if math.isfinite(bound) else demand.ceiling
    here = demands.throttled
    rate = allocation.share[here.flow] * here.portions()
    allocation.add(share_columns(demands, here, np.isfinite(rate), rate, np.zeros_like(rate), rate))
    add_priorities(allocation)
    return allocation


@dataclass(slots=True)
class CeilingRetention:
    """Remembers the flows with a ceiling of one method, and the nodes that they used."""

    #: Flow → end of its retention, and the ids of the nodes.
    _flows: dict[Flow, tuple[float, IntArray]] = field(default_factory=dict)

    def apply(self, allocation: MethodAllocation, objectives: Objectives, now: float) -> None:
        """Add shares to ``allocation`` for the flows that have ended, and remember those that are active."""
        demands = allocation.demands
        active = {demand.flow for demand in demands.flows}
        busy = {demand.flow.account for demand in demands.flows}
        limited = [demand for demand in demands.flows if demand.objectives.has_ceiling]
        for demand in limited[-MAX_RETAINED:]:
            self._flows.pop(demand.flow, None)
            ids = allocation.table.ids[demands.throttled.nodes_of(demand.index)]
            self._flows[demand.flow] = (now + RETENTION_SECONDS, ids)
        self._flows = {flow: kept for flow, kept in self._flows.items() if kept[0] > now}
        while len(self._flows) > MAX_RETAINED:
            del self._flows[next(iter(self._flows))]
        for flow, (_, ids) in self._flows.items():
            held = objectives.for_flow(flow)
            if flow not in active and held.has_ceiling and not (held.bound is not None and flow.account in busy):
                _add_shares(allocation, flow, held, ids)


def _add_shares(allocation: MethodAllocation, flow: Flow, objectives: FlowObjectives, ids: IntArray) -> None:
    table, newcomers = allocation.table, allocation.newcomers
    ceiling = min(own.ceiling for own in (objectives.own, objectives.bound) if own is not None and own.ceiling)
    part = ceiling / len(ids)
    nodes = np.flatnonzero(np.isin(table.ids, ids))
    rate = np.array([min(part, newcomers.get(node, math.inf)) for node in nodes.tolist()], dtype=np.float64)
    flow_side = np.full(len(nodes), table.flow_index.flow_side(allocation.demands.side, flow))
    priority = np.full(len(nodes), NO_CLASS if objectives.own is None else objectives.own.priority)
    allocation.add(ShareColumns(nodes, flow_side, rate, np.zeros_like(rate), np.full_like(rate, part), priority))
