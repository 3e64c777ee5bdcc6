"""The cap on replication: one ceiling over the cluster, divided among the storage nodes by what they ask for.

A little is for every one, so that who begins to replicate need not wait for the next round.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from sluice_actors.bandwidth_demand import (
    CHUNK,
    ROOM,
    TAKES_ALL,
    WAITS,
    Demand,
    Demands,
    Found,
    Part,
    Spot,
    demand_of,
    poured,
)
from sluice_actors.bandwidth_dividing import Divided
from sluice_actors.bandwidth_loads import Node, Trace
from sluice_actors.bandwidth_objectives import Promise
from sluice_core.bandwidth import NOBODY, REPLICATION, Flow, Objective
from sluice_core.describe import STORAGE_NODE

#: The part of the cap that is divided evenly.
_EVEN: Final = 0.05


def capped(cap: Objective, found: Found, nodes: Sequence[Node], assigned: dict[Spot, float]) -> Divided:
    """Divide ``cap`` among all storage nodes."""
    flows = set(found.get(REPLICATION, ())) | {Flow(NOBODY, REPLICATION)}
    serving = [node for node in nodes if node.serves(STORAGE_NODE)]
    spots = [(node, flow) for flow in sorted(flows) for node in serving]
    made = Divided(Demands(STORAGE_NODE), governed=True)
    if not spots:
        return made
    traces = [node.traces.get((STORAGE_NODE, flow), Trace()) for node, flow in spots]
    wants = [
        _want(trace, assigned.get((STORAGE_NODE, node.name, flow), 0.0))
        for (node, flow), trace in zip(spots, traces, strict=True)
    ]
    even = cap.ceiling * _EVEN / len(spots)
    left = cap.ceiling - even * len(spots)
    weights = [1.0 if want > 0 else 0.0 for want in wants]
    rates = poured(left, weights, wants)
    rest = (left - sum(rates)) / len(spots)
    for flow in sorted(flows):
        parts = [Part(node, trace) for (node, one), trace in zip(spots, traces, strict=True) if one == flow]
        made.demands.flows.append(_capped(flow, cap, parts))
    demands = {one.flow: one for one in made.demands.flows}
    for (node, flow), trace, rate in zip(spots, traces, rates, strict=True):
        rate += even + rest
        made.shares[flow] = made.shares.get(flow, 0.0) + rate
        made.row(Part(node, trace), STORAGE_NODE, demands[flow], rate, 0.0, rate)
    return made


def _want(trace: Trace, assigned: float) -> float:
    if not trace.active and trace.idle > 0:
        return 0.0
    if trace.waiting > WAITS or trace.moved >= TAKES_ALL * assigned > 0:
        return math.inf
    return trace.moved * ROOM + CHUNK if trace.active else 0.0


def _capped(flow: Flow, cap: Objective, parts: list[Part]) -> Demand:
    one = demand_of(flow, Promise(cap), {STORAGE_NODE: parts}, parts)
    one.ceiling = cap.ceiling
    return one
