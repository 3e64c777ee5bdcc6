"""The cap on replication: one ceiling over the cluster, divided among the storage nodes by their demand.

Each node gets a small part, so that a node that begins to replicate need not wait for the next round.  No node gets
more than its capacity, where that is known; the rest goes to the others.  Where all nodes together carry less than the
cap, each gets its capacity.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from sluice_actors.bandwidth.arrays import FloatArray
from sluice_actors.bandwidth.fairness.water_filling import water_fill, water_fill_groups
from sluice_actors.bandwidth.loads.flow_index import FlowNodeValues, flow_numbers
from sluice_actors.bandwidth.loads.flow_stats import COLUMNS, FlowStats
from sluice_actors.bandwidth.loads.node_loads import LoadTable
from sluice_actors.bandwidth.methods.allocation import Capacity, MethodAllocation
from sluice_actors.bandwidth.methods.demand import SATURATED, MethodDemand, flow_demands
from sluice_actors.bandwidth.methods.weights import CHUNK, GROWTH_ROOM, MIN_WAITING, FlowParts
from sluice_actors.bandwidth.objectives import FlowObjectives
from sluice_actors.bandwidth.share_encoder import ShareColumns
from sluice_core.describe import PROXY, STORAGE_NODE
from sluice_core.messages.bandwidth import NO_ACCOUNT, REPLICATION, SIDES, Flow, Objective

#: The part of the cap that is divided evenly; or this part of a node's capacity, where that is less.
_EVEN: Final = 0.05


def allocate_replication(
    cap: Objective, table: LoadTable, assigned: FlowNodeValues, capacity: Capacity
) -> MethodAllocation:
    """Divide ``cap`` among all storage nodes.

    :param assigned: bytes per second that each flow-node was allowed in the last second
    """
    flows, parts = _everywhere(table)
    made = MethodAllocation(table, _demands(cap, flows, parts), governed=True)
    count = len(parts.flow)
    if not count:
        return made
    wants = _wants(parts.stats, assigned.get(parts.keys, 0.0))
    carries = np.array([capacity(STORAGE_NODE, node) for node in table.nodes], dtype=np.float64)
    rates = capped_rates(cap.ceiling, parts, carries, wants)
    made.share = parts.sums(rates)
    priority = np.full(count, cap.priority)
    made.add(ShareColumns(parts.node, parts.stats.flow_sides, rates, np.zeros(count), rates, priority))
    return made


def capped_rates(cap: float, parts: FlowParts, carries: FloatArray, wants: FloatArray) -> FloatArray:
    """(parts,) a little for each, then their demand, then equal parts of the rest; together at most ``cap``.

    :param carries: (nodes,) capacities, infinite if unknown
    :param wants: (parts,) demands, infinite for those that wait
    """
    count = len(parts.flow)
    crowd = np.bincount(parts.node, minlength=len(carries))
    rates: FloatArray = _EVEN * np.minimum(cap / count, carries[parts.node] / crowd[parts.node])
    for limits in (wants, np.full(count, math.inf)):
        room = np.maximum(carries - np.bincount(parts.node, rates, minlength=len(carries)), 0.0)
        within = _within(parts, limits, room)
        rates = rates + water_fill(max(cap - float(rates.sum()), 0.0), [1.0] * count, within.tolist())
    return rates


def _within(parts: FlowParts, limits: FloatArray, room: FloatArray) -> FloatArray:
    """``limits`` cut to the water level of their node, so that they add up to at most (nodes,) ``room`` there.

    Water-filling within them, which has one level for all, then needs no nodes.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        portions = limits / room[parts.node]
    given = water_fill_groups(parts.node, np.ones(len(limits)), portions, np.isfinite(room) & (room > 0))
    known = np.isfinite(room)[parts.node]
    found: FloatArray = np.where(known, given * np.where(known, room[parts.node], 0.0), limits)
    return found


def _everywhere(table: LoadTable) -> tuple[list[Flow], FlowParts]:
    """All flows of replication, each with a part on every storage node."""
    names, nodes = table.flow_index, table.serving(STORAGE_NODE)
    reported = np.concatenate([table.stats.flow_sides[table.indexes(REPLICATION, side)] for side in SIDES])
    found = {names.flows[number] for number in np.unique(flow_numbers(reported)).tolist()}
    flows = sorted(found | {Flow(NO_ACCOUNT, REPLICATION)}) if len(nodes) else []
    places = [names.flow_side(STORAGE_NODE, flow) for flow in flows]
    node, place = np.tile(nodes, len(flows)), np.repeat(np.array(places, dtype=np.intp), len(nodes))
    stats = FlowStats(place, np.zeros((COLUMNS, len(place))))
    flow_nodes = table.keys(node, place)
    known = table.indexes(REPLICATION, STORAGE_NODE)
    keys = table.keys(table.node[known], table.stats.flow_sides[known])
    index = FlowNodeValues.from_unsorted(keys, known.astype(np.float64)).get(flow_nodes, -1.0).astype(np.intp)
    stats.values[:, index >= 0] = table.stats.values[:, index[index >= 0]]
    flow = np.repeat(np.arange(len(flows)), len(nodes))
    return flows, FlowParts(len(flows), flow, node, flow_nodes, stats, np.ones(len(flow)))


def _demands(cap: Objective, flows: list[Flow], parts: FlowParts) -> MethodDemand:
    nowhere = FlowParts.none(len(flows))
    made = MethodDemand(STORAGE_NODE, {PROXY: nowhere, STORAGE_NODE: parts})
    promise = FlowObjectives(cap)
    made.flows = flow_demands(parts, flows, lambda flow: promise)
    for one in made.flows:
        one.ceiling = cap.ceiling
    return made


def _wants(stats: FlowStats, assigned: FloatArray) -> FloatArray:
    waits = (stats.waiting > MIN_WAITING) | ((stats.moved >= SATURATED * assigned) & (assigned > 0))
    some = np.where(stats.active, stats.moved * GROWTH_ROOM + CHUNK, 0.0)
    found: FloatArray = np.where(waits, np.inf, some)
    return np.where(~stats.active & (stats.idle > 0), 0.0, found)
