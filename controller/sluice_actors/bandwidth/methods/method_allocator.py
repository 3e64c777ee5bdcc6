"""Allocates one method round by round, and keeps the state that the next round needs.

* Without an objective, Sluice throttles no flow.
* With ceilings alone, it throttles the flows that have one (``ceilings``).
* With a floor, it throttles all active flows, as far as capacities are known (``floors``).
* A cap on replication is divided among the storage nodes (``replication_cap``).
* The rates of a global controller replace floors and ceilings.  Its answer is complete: a flow-node without a rate is
  not throttled.  An answer holds for some seconds after it arrived.  So when a controller is stopped, or its host ends,
  Sluice's own allocation resumes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from sluice_actors.bandwidth.arrays import IntArray
from sluice_actors.bandwidth.capacity_estimator import FloorViolations, NodeCapacities
from sluice_actors.bandwidth.loads.flow_index import FlowNodeValues
from sluice_actors.bandwidth.loads.node_loads import LoadTable, Node
from sluice_actors.bandwidth.loads.write_amplification import WriteAmplification
from sluice_actors.bandwidth.methods.allocation import MIN_RATE, MethodAllocation, add_priorities, share_columns
from sluice_actors.bandwidth.methods.ceilings import CeilingRetention, allocate_ceilings
from sluice_actors.bandwidth.methods.demand import FlowDemand, MethodDemand, collect_demand
from sluice_actors.bandwidth.methods.floors import SlowFlows, allocate_floors
from sluice_actors.bandwidth.methods.replication_cap import allocate_replication
from sluice_actors.bandwidth.objectives import Objectives
from sluice_core.messages.bandwidth import REPLICATION, SIDES, ControllerRates


@dataclass(slots=True)
class ControllerRateTable:
    """The newest answer of each controller."""

    #: Controller → its answer, and the end of its validity, in seconds of this host's monotonic clock.
    _answers: dict[str, tuple[ControllerRates, float]] = field(default_factory=dict)

    def feed(self, answer: ControllerRates, now: float) -> None:
        """Add an answer that arrived at ``now``; an answer older than the controller's last one is ignored."""
        known = self._answers.get(answer.controller)
        if known is None or (known[0].term, known[0].at) < (answer.term, answer.at):
            self._answers[answer.controller] = (answer, now + answer.valid)

    def current(self, method: str, now: float) -> ControllerRates | None:
        """The valid answer for ``method``, of the controller with the first name if there are several; else None."""
        self._answers = {name: known for name, known in self._answers.items() if known[1] > now}
        found = (answer for _, (answer, _) in sorted(self._answers.items()) if method in answer.methods)
        return next(found, None)


def allocate_rates(table: LoadTable, demands: MethodDemand, answer: ControllerRates) -> MethodAllocation:
    """Throttle the flows for which ``answer`` has rates; the other side gets priorities alone."""
    allocation = MethodAllocation(table, demands, governed=True)
    rates = {(row.node, row.flow): max(row.rate, MIN_RATE) for row in answer.rows}
    here = demands.throttled
    pairs = zip(here.node.tolist(), here.flow.tolist(), strict=True)
    found = (rates.get((table.nodes[node].name, demands.flows[flow].flow), math.inf) for node, flow in pairs)
    rate = np.fromiter(found, dtype=np.float64, count=len(here.node))
    limited = np.isfinite(rate)
    allocation.add(share_columns(demands, here, limited, rate, np.zeros_like(rate), rate))
    add_priorities(allocation)
    # A flow with a part that is not throttled may move any number of bytes.
    allocation.share = here.sums(rate) if len(rate) else allocation.share
    wanted = np.minimum(demands.per_flow("floor"), demands.per_flow("demand"))
    allocation.short = np.maximum(wanted - allocation.share, 0.0)
    allocation.met = demands.per_flow("floor") - allocation.short
    return allocation


@dataclass(slots=True)
class MethodAllocator:
    """The state of one method."""

    method: str
    assigned: FlowNodeValues = field(default_factory=FlowNodeValues)  #: rates of the last round
    weights: FlowNodeValues = field(default_factory=FlowNodeValues)  #: portions of the last round
    _violations: FloorViolations = field(default_factory=FloorViolations)
    _retention: CeilingRetention = field(default_factory=CeilingRetention)
    _slow: SlowFlows = field(default_factory=SlowFlows)
    _capacities: dict[str, NodeCapacities] = field(init=False)

    def __post_init__(self) -> None:
        self._capacities = {side: NodeCapacities(side, self.method) for side in SIDES}

    def allocate(
        self,
        table: LoadTable,
        objectives: Objectives,
        amplification: WriteAmplification,
        now: float,
        seconds: float,
        answer: ControllerRates | None = None,
    ) -> MethodAllocation:
        """Make one round.

        :param now: seconds on this host's monotonic clock
        :param seconds: since the last round
        :param answer: the rates of a global controller, which allocates instead
        """
        demands = collect_demand(table, self.method, objectives, self.assigned, self.weights)
        self.weights = FlowNodeValues.from_unsorted(demands.throttled.keys, demands.throttled.portions())
        if answer is not None:
            allocation = allocate_rates(table, demands, answer)
            self.assigned = allocation.assigned()
            return allocation
        cap = objectives.replication
        if self.method == REPLICATION and cap is not None:
            allocation = allocate_replication(cap, table, self.assigned, self.capacity)
        elif objectives.has_floors(self.method):
            self._estimate(demands, table, now, seconds)
            copies = {policy: amplification.factor(policy) for policy in {one.flow.policy for one in demands.flows}}
            allocation = allocate_floors(table, demands, self.capacity, copies)
            self._slow.apply(allocation, now)
        elif objectives.has_ceilings(self.method):
            allocation = allocate_ceilings(table, demands)
        else:
            allocation = MethodAllocation(table, demands)
        if objectives.has_ceilings(self.method):
            self._retention.apply(allocation, objectives, now)
        self.assigned = allocation.assigned()
        return allocation

    def capacity(self, side: str, node: Node) -> float:
        """Bytes per second that ``node`` carries on ``side``, infinite if unknown."""
        return self.capacity_and_source(side, node)[0]

    def capacity_and_source(self, side: str, node: Node) -> tuple[float, str]:
        """The capacity of ``node``, and whether it is configured, estimated or unknown."""
        return self._capacities[side].capacity(node.name, node.capacity)

    def renumber(self, moved: IntArray) -> None:
        """Renumber all state after ``FlowIndex.keep``, which returned ``moved``."""
        self.assigned, self.weights = self.assigned.renumber(moved), self.weights.renumber(moved)

    def _estimate(self, demands: MethodDemand, table: LoadTable, now: float, seconds: float) -> None:
        """Estimate the capacity of the nodes without a configured one, from the floors that are violated."""
        moved = {side: self._moved(table, side) for side in SIDES}
        self._violations.forget(now)
        violated: list[FlowDemand] = []
        for demand in demands.flows if any(moved.values()) else ():
            if demand.floor > 0:
                allowed = min(demand.floor, demand.ceiling, demand.allowed)
                means = demand.mean_moved, demand.mean_open, demand.mean_waiting
                if self._violations.is_violated(demand.flow, allowed, *means, now):
                    violated.append(demand)
        for side, rates in moved.items():
            nodes = {node for demand in violated for node in demands.parts[side].nodes_of(demand.index).tolist()}
            names = {table.nodes[node].name for node in nodes}
            self._capacities[side].update(rates, names & rates.keys(), seconds)

    def _moved(self, table: LoadTable, side: str) -> dict[str, float]:
        """Name → bytes moved in the last second, of the nodes whose capacity is not configured."""
        moved = table.per_node(self.method, side, table.stats.moved).tolist()
        return {
            node.name: moved[position]
            for position, node in enumerate(table.nodes)
            if node.serves(side) and self.method not in node.capacity.get(side, {})
        }
