"""Allocates a method whose objectives are ceilings alone: flows that have one are held back by it, others are not."""

from __future__ import annotations

import math

import numpy as np

from sluice_actors.bandwidth.fairness.water_filling import water_fill
from sluice_actors.bandwidth.loads.table import LoadTable
from sluice_actors.bandwidth.methods.allocation import UNTHROTTLED, MethodAllocation, share_columns
from sluice_actors.bandwidth.methods.demand import FlowDemand, MethodDemand


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
    there = demands.parts[demands.other_side]
    nothing = np.zeros(len(there.flow))
    priorities = share_columns(demands, there, demands.promised()[there.flow], nothing + UNTHROTTLED, nothing, nothing)
    allocation.shares.append(priorities)
    return allocation
