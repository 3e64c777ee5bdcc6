"""The cap on replication: one ceiling over the cluster, divided among the storage nodes by what they ask for.

A little is for every one, so that who begins to replicate need not wait for the next round.  No node gets more than it
carries, where that is known; what it cannot carry is for the others.  Where nodes carry less than the cap, each gets
what it carries.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from sluice_actors.bandwidth.arrays import FloatArray
from sluice_actors.bandwidth.fairness.water_filling import water_fill, water_fill_groups
from sluice_actors.bandwidth.loads.flow_index import flows_of
from sluice_actors.bandwidth.loads.flow_node_values import Spots
from sluice_actors.bandwidth.loads.flow_stats import Trace, Traces
from sluice_actors.bandwidth.loads.table import Table
from sluice_actors.bandwidth.methods.demand import TAKES_ALL, Demands, flows_at
from sluice_actors.bandwidth.methods.method_allocator import Capacity, Divided
from sluice_actors.bandwidth.methods.weights import CHUNK, ROOM, WAITS, Parts
from sluice_actors.bandwidth.objectives import Promise
from sluice_actors.bandwidth.share_encoder import Told
from sluice_core.describe import PROXY, STORAGE_NODE
from sluice_core.messages.bandwidth import NOBODY, REPLICATION, SIDES, Flow, Objective

#: The part of the cap that is divided evenly; and of what a node carries, where that is less.
_EVEN: Final = 0.05


def capped(cap: Objective, table: Table, assigned: Spots, capacity: Capacity) -> Divided:
    """Divide ``cap`` among all storage nodes, of which each carries what ``capacity`` says (infinite: not known)."""
    flows, parts = _everywhere(table)
    made = Divided(table, _demands(cap, flows, parts), governed=True)
    count = len(parts.flow)
    if not count:
        return made
    wants = _wants(parts.traces, assigned.get(parts.spots, 0.0))
    carries = np.array([capacity(STORAGE_NODE, node) for node in table.nodes], dtype=np.float64)
    rates = rates_of(cap.ceiling, parts, carries, wants)
    made.share = parts.sums(rates)
    priority = np.full(count, cap.priority)
    made.tell(Told(parts.node, parts.traces.places, rates, np.zeros(count), rates, priority))
    return made


def rates_of(cap: float, parts: Parts, carries: FloatArray, wants: FloatArray) -> FloatArray:
    """(parts,) a little for each, then what they want, then what is left in equal parts; together at most ``cap``.

    :param carries: (nodes,) the most that each gets, infinite where it is not known
    :param wants: (parts,) infinite for those that wait
    """
    count = len(parts.flow)
    crowd = np.bincount(parts.node, minlength=len(carries))
    rates: FloatArray = _EVEN * np.minimum(cap / count, carries[parts.node] / crowd[parts.node])
    for limits in (wants, np.full(count, math.inf)):
        room = np.maximum(carries - np.bincount(parts.node, rates, minlength=len(carries)), 0.0)
        within = _within(parts, limits, room)
        rates = rates + water_fill(max(cap - float(rates.sum()), 0.0), [1.0] * count, within.tolist())
    return rates


def _within(parts: Parts, limits: FloatArray, room: FloatArray) -> FloatArray:
    """``limits`` that add up to at most ``room`` on each node: those above a level, which is the node's, are cut to it.

    So pouring within them, which has one level for all, needs to know nothing of nodes.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        portions = limits / room[parts.node]
    given = water_fill_groups(parts.node, np.ones(len(limits)), portions, np.isfinite(room) & (room > 0))
    known = np.isfinite(room)[parts.node]
    found: FloatArray = np.where(known, given * np.where(known, room[parts.node], 0.0), limits)
    return found


def _everywhere(table: Table) -> tuple[list[Flow], Parts]:
    """All flows of replication, on each of the storage nodes."""
    names, nodes = table.names, table.serving(STORAGE_NODE)
    told = np.concatenate([table.traces.places[table.kind(REPLICATION, side)] for side in SIDES])
    found = {names.flows[number] for number in np.unique(flows_of(told)).tolist()}
    flows = sorted(found | {Flow(NOBODY, REPLICATION)}) if len(nodes) else []
    places = [names.place(STORAGE_NODE, flow) for flow in flows]
    node, place = np.tile(nodes, len(flows)), np.repeat(np.array(places, dtype=np.intp), len(nodes))
    traces = Traces(place, np.zeros((len(Trace._fields), len(place))))
    spots = table.spots(node, place)
    known = table.kind(REPLICATION, STORAGE_NODE)
    at = {spot: where for where, spot in enumerate(spots.tolist())}
    for spot, index in zip(table.spots(table.node[known], table.traces.places[known]).tolist(), known, strict=True):
        if spot in at:
            traces.values[:, at[spot]] = table.traces.values[:, index]
    flow = np.repeat(np.arange(len(flows)), len(nodes))
    return flows, Parts(len(flows), flow, node, spots, traces, np.ones(len(flow)))


def _demands(cap: Objective, flows: list[Flow], parts: Parts) -> Demands:
    nowhere = Parts.none(len(flows))
    made = Demands(STORAGE_NODE, {PROXY: nowhere, STORAGE_NODE: parts})
    promise = Promise(cap)
    made.flows = flows_at(parts, flows, lambda flow: promise)
    for one in made.flows:
        one.ceiling = cap.ceiling
    return made


def _wants(traces: Traces, assigned: FloatArray) -> FloatArray:
    waits = (traces.waiting > WAITS) | ((traces.moved >= TAKES_ALL * assigned) & (assigned > 0))
    some = np.where(traces.active, traces.moved * ROOM + CHUNK, 0.0)
    found: FloatArray = np.where(waits, np.inf, some)
    return np.where(~traces.active & (traces.idle > 0), 0.0, found)
