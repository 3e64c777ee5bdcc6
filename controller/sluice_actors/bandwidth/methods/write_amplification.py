"""What the division remembers from round to round besides the loads: copies, and ceilings of those who went."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from sluice_actors.bandwidth.arrays import IntArray
from sluice_actors.bandwidth.loads.flow_index import flows_of
from sluice_actors.bandwidth.loads.table import Table
from sluice_actors.bandwidth.methods.method_allocator import Divided
from sluice_actors.bandwidth.objectives import Objectives, Promise
from sluice_actors.bandwidth.share_encoder import Told
from sluice_core.describe import PROXY, STORAGE_NODE
from sluice_core.messages.bandwidth import NO_CLASS, PUT, Flow

#: Bytes stored per byte of an upload, until it is known better.
COPIES: Final = 3.0
_MEAN: Final = 5.0
#: Less per second teaches nothing.
_TEACHES: Final = 1e6
_FEWEST, _MOST = 0.05, 20.0
#: Seconds for which a flow with a ceiling is remembered after its last byte, and how many of them.
LINGERS: Final = 60.0
MOST_LINGERING: Final = 1000


@dataclass(slots=True)
class Copies:
    """Bytes stored per byte of an upload, by storage policy: replicas, parity, and what filters make of them."""

    _means: dict[int, tuple[float, float]] = field(default_factory=dict)

    def learn(self, table: Table, seconds: float) -> None:
        """Look at the uploads of the last second."""
        sums: dict[int, list[float]] = {}
        for column, side in enumerate((PROXY, STORAGE_NODE)):
            index = table.kind(PUT, side)
            flows, within = np.unique(flows_of(table.traces.places[index]), return_inverse=True)
            moved = np.bincount(within, table.traces.moved[index], minlength=len(flows))
            for flow, bytes_ in zip(flows.tolist(), moved.tolist(), strict=True):
                sums.setdefault(table.names.flows[flow].policy, [0.0, 0.0])[column] += bytes_
        part = 1.0 - math.exp(-seconds / _MEAN)
        for policy, (sent, stored) in sums.items():
            if sent >= _TEACHES and stored > 0:
                before = self._means.get(policy, (sent, sent * COPIES))
                self._means[policy] = (
                    before[0] + part * (sent - before[0]),
                    before[1] + part * (stored - before[1]),
                )

    def of(self, policy: int) -> float:
        """For uploads under the storage policy with this index."""
        sent, stored = self._means.get(policy, (1.0, COPIES))
        return min(max(stored / sent, _FEWEST), _MOST)


@dataclass(slots=True)
class Lingering:
    """Flows with a ceiling of which nothing moves any more.

    Their ceiling stays where they were for a minute, else who asks every two seconds would begin without one each time.
    """

    #: Until when, and the ids of the nodes.
    _flows: dict[Flow, tuple[float, IntArray]] = field(default_factory=dict)

    def step(self, made: Divided, objectives: Objectives, now: float) -> None:
        """Put rows into ``made`` for those who went, and remember those who are there."""
        active = {one.flow for one in made.demands.flows}
        busy = {one.flow.account for one in made.demands.flows}
        limited = [one for one in made.demands.flows if one.promise.limited]
        for one in limited[-MOST_LINGERING:]:
            self._flows.pop(one.flow, None)
            self._flows[one.flow] = (now + LINGERS, made.table.ids[made.demands.here.nodes_of(one.index)])
        self._flows = {flow: kept for flow, kept in self._flows.items() if kept[0] > now}
        while len(self._flows) > MOST_LINGERING:
            del self._flows[next(iter(self._flows))]
        for flow, (_, nodes) in self._flows.items():
            promise = objectives.promise(flow)
            if flow not in active and promise.limited and not (promise.bound is not None and flow.account in busy):
                _hold(made, flow, promise, nodes)


def _hold(made: Divided, flow: Flow, promise: Promise, ids: IntArray) -> None:
    ceiling = min(one.ceiling for one in (promise.own, promise.bound) if one is not None and one.ceiling)
    part = ceiling / len(ids)
    nodes = np.flatnonzero(np.isin(made.table.ids, ids))
    rate = np.array([min(part, made.newcomers.get(node, math.inf)) for node in nodes.tolist()], dtype=np.float64)
    place = np.full(len(nodes), made.table.names.place(made.demands.side, flow))
    priority = np.full(len(nodes), NO_CLASS if promise.own is None else promise.own.priority)
    made.tell(Told(nodes, place, rate, np.zeros_like(rate), np.full_like(rate, part), priority))
