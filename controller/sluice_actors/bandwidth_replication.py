"""The cap on replication: one ceiling over the cluster, divided among the storage nodes by what they ask for.

A little is for every one, so that who begins to replicate need not wait for the next round.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from sluice_actors.bandwidth_demand import TAKES_ALL, Demands, flows_at
from sluice_actors.bandwidth_dividing import Divided
from sluice_actors.bandwidth_loads import Table
from sluice_actors.bandwidth_names import flows_of
from sluice_actors.bandwidth_objectives import Promise
from sluice_actors.bandwidth_spots import Spots
from sluice_actors.bandwidth_told import Told
from sluice_actors.bandwidth_traces import Trace, Traces
from sluice_actors.bandwidth_weights import CHUNK, ROOM, WAITS, Parts, poured
from sluice_actors.division import FloatArray
from sluice_core.bandwidth import NOBODY, REPLICATION, SIDES, Flow, Objective
from sluice_core.describe import PROXY, STORAGE_NODE

#: The part of the cap that is divided evenly.
_EVEN: Final = 0.05


def capped(cap: Objective, table: Table, assigned: Spots) -> Divided:
    """Divide ``cap`` among all storage nodes."""
    flows, parts = _everywhere(table)
    made = Divided(table, _demands(cap, flows, parts), governed=True)
    count = len(parts.flow)
    if not count:
        return made
    wants = _wants(parts.traces, assigned.get(parts.spots, 0.0))
    even = cap.ceiling * _EVEN / count
    left = cap.ceiling - even * count
    poured_rates = poured(left, (wants > 0).astype(np.float64).tolist(), wants.tolist())
    rates = np.array(poured_rates) + even + (left - sum(poured_rates)) / count
    made.share = parts.sums(rates)
    priority = np.full(count, cap.priority)
    made.tell(Told(parts.node, parts.traces.places, rates, np.zeros(count), rates, priority))
    return made


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
