"""Deciders of simulated clusters: a simple one with given floors and ceilings, and the allocator of the product."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from tests.support.actors.bandwidth import MB, bandwidth_policy, shares_of

from sluice_actors.bandwidth.allocator import Allocator
from sluice_actors.bandwidth.fairness.max_min import allocate_max_min
from sluice_actors.bandwidth.fairness.problem import AllocationProblem, Side
from sluice_core.describe import PROXY, STORAGE_NODE
from sluice_core.messages.bandwidth import GET, NodeLoad, Share, Shares


@dataclass(slots=True)
class SimpleDecider:
    """Keeps each node's newest report; a part's weight is a mean over some seconds of its bytes there."""

    floors: Mapping[str, float]
    ceilings: Mapping[str, float]
    _number: int = 0
    _loads: dict[str, tuple[NodeLoad, float]] = field(default_factory=dict)
    _means: dict[tuple[str, str], float] = field(default_factory=dict)

    def feed(self, load: NodeLoad, arrived: float) -> None:
        """Accept a report unless a newer one is known."""
        old = self._loads.get(load.node)
        if old is not None and (old[0].started, old[0].number) >= (load.started, load.number):
            return
        self._loads[load.node] = (load, arrived)
        for row in load.rows:
            key = (load.node, row.account)
            self._means[key] = row.moved if key not in self._means else 0.75 * self._means[key] + 0.25 * row.moved

    def allocate(self, now: float) -> Mapping[str, Shares]:
        """Divide by the reports of nodes that reported lately."""
        loads = {name: load for name, (load, at) in sorted(self._loads.items()) if now - at < 3.0}
        flows = sorted({row.account for load in loads.values() for row in load.rows})
        if not flows:
            return {}
        names = {side: [name for name, load in loads.items() if side in load.sides] for side in (PROXY, STORAGE_NODE)}
        sides = {side: self._side(side, names[side], loads, flows) for side in names}
        found = allocate_max_min(self._problem(loads, flows, sides))
        self._number += 1
        shares = {}
        for number, name in enumerate(names[PROXY]):
            one = sides[PROXY]
            rows = tuple(
                Share(PROXY, flows[one.flow[part]], "", GET, 0, float(found.proxies.rates[part]))
                for part in np.flatnonzero(one.node == number)
            )
            newcomer = {PROXY: {GET: float(one.capacity[number]) / (len(rows) + 1)}}
            shares[name] = Shares(name, 1, self._number, now, rows, newcomer)
        return shares

    def _side(self, side: str, names: list[str], loads: Mapping[str, NodeLoad], flows: list[str]) -> Side:
        place = {flow: number for number, flow in enumerate(flows)}
        parts = [(number, row.account) for number, name in enumerate(names) for row in loads[name].rows]
        return Side(
            capacity=np.array([loads[name].capacity[side][GET] for name in names]),
            flow=np.array([place[account] for _, account in parts], dtype=np.intp),
            node=np.array([number for number, _ in parts], dtype=np.intp),
            weight=np.array([self._means[names[number], account] + 1.0 for number, account in parts]),
            copies=np.ones(len(flows)),
        )

    def _problem(self, loads: Mapping[str, NodeLoad], flows: list[str], sides: Mapping[str, Side]) -> AllocationProblem:
        moved, waits = dict.fromkeys(flows, 0.0), dict.fromkeys(flows, 0.0)
        for row in (row for load in loads.values() for row in load.rows if row.side == PROXY):
            moved[row.account] += row.moved
            waits[row.account] = max(waits[row.account], row.waiting)
        return AllocationProblem(
            floor=np.array([self.floors.get(flow, 0.0) for flow in flows]),
            ceiling=np.array([self.ceilings.get(flow, np.inf) for flow in flows]),
            demand=np.array([np.inf if waits[flow] > 0.05 else 1.25 * moved[flow] + 65536 for flow in flows]),
            tenant=np.arange(len(flows)),
            bound=np.full(len(flows), np.inf),
            transfers=np.ones(len(flows)),
            proxies=sides[PROXY],
            storage=sides[STORAGE_NODE],
        )


def simple_decider(problem: AllocationProblem) -> SimpleDecider:
    """A decider that knows the objectives of a problem."""
    names = [str(flow) for flow in range(len(problem.floor))]
    ceilings = {name: float(most) for name, most in zip(names, problem.ceiling, strict=True) if np.isfinite(most)}
    return SimpleDecider(dict(zip(names, problem.floor.tolist(), strict=True)), ceilings)


@dataclass(slots=True)
class AllocatorDecider:
    """All parts of the host that divides bandwidth, without its bus."""

    allocator: Allocator = field(default_factory=Allocator)

    def feed(self, load: NodeLoad, arrived: float) -> None:
        """Accept a report."""
        self.allocator.feed(load, arrived)

    def allocate(self, now: float) -> Mapping[str, Shares]:
        """Divide."""
        return shares_of(self.allocator.allocate(now, now))


def allocator_decider(problem: AllocationProblem) -> AllocatorDecider:
    """A decider that knows the objectives of a problem as assignments."""
    made = AllocatorDecider()
    objectives = []
    for flow, (floor, ceiling) in enumerate(zip(problem.floor.tolist(), problem.ceiling.tolist(), strict=True)):
        rates = {"get_bw": floor / MB, "max_get_bw": ceiling / MB}
        objectives.append(
            bandwidth_policy(str(flow), **{name: rate for name, rate in rates.items() if 0 < rate < np.inf})
        )
    made.allocator.objectives.replace(objectives)
    return made
