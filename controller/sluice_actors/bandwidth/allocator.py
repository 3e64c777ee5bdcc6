"""The heart of the dividing host: loads in, one round a second out.  No input, no output, no clock.

A round looks at each method by itself: who is active, what was promised, what nodes carry; divides; and says to each
node what lies on it.  What it remembers is what the nodes said lately, what it assigned last, and estimates; all of
which another host knows within seconds.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from msgpack import packb

from sluice_actors.bandwidth.capacity_estimator import CONFIGURED, FloorViolations, NodeCapacities
from sluice_actors.bandwidth.failure_detector import FailureDetector
from sluice_actors.bandwidth.loads.flow_node_values import FlowNodeValues
from sluice_actors.bandwidth.loads.node_loads import FRESH_SECONDS, Node, NodeLoads
from sluice_actors.bandwidth.loads.read_headroom import rooms
from sluice_actors.bandwidth.loads.table import LoadTable
from sluice_actors.bandwidth.loads.write_amplification import WriteAmplification
from sluice_actors.bandwidth.methods.ceiling_retention import CeilingRetention
from sluice_actors.bandwidth.methods.demand import MethodDemand, collect_demand
from sluice_actors.bandwidth.methods.method_allocator import MethodAllocation, allocate_ceilings, allocate_floors
from sluice_actors.bandwidth.methods.replication_cap import allocate_replication
from sluice_actors.bandwidth.objectives import Objectives
from sluice_actors.bandwidth.reports.idle_report import IdleFloorRows
from sluice_actors.bandwidth.reports.report import device_rows, flow_rows, idle_flow_rows, node_rows, object_rows
from sluice_actors.bandwidth.reports.shortfall import (
    FloorRegistry,
    Shortfall,
    SlowFlows,
    floor_shortfall,
    overcommitment,
)
from sluice_actors.bandwidth.share_encoder import SharePrefixes, encoded, packed, together
from sluice_actors.policies.group_index import GroupIndex
from sluice_core.describe import PROXY, STORAGE_NODE
from sluice_core.messages.bandwidth import GET, METHODS, PUT, REPLICATION, SIDES, NodeLoad, Shares
from sluice_core.messages.bandwidth_report import BandwidthReport, CachedJson, IdleFlowReport

#: Seconds that one round may stand for.
_SHORTEST, _LONGEST = 0.2, 5.0


@dataclass(frozen=True)
class AllocationRound:
    """What came of one round: node → its shares, encoded; ``governed`` when anything is held back anywhere.

    ``make_reports`` makes the picture and the promises beside it, which takes a while that shares need not wait for.
    """

    messages: Mapping[str, bytes]
    governed: bool
    make_reports: Callable[[], tuple[BandwidthReport, IdleFlowReport]]

    @cached_property
    def reports(self) -> tuple[BandwidthReport, IdleFlowReport]:
        """To be asked for before the divider takes anything else."""
        return self.make_reports()

    @cached_property
    def report(self) -> BandwidthReport:
        """As people will see it."""
        picture, promises = self.reports
        return picture.with_idle(promises)

    @cached_property
    def shares(self) -> Mapping[str, Shares]:
        """Node → its shares, as it will read them."""
        return {node: Shares.decode(body) for node, body in self.messages.items()}


@dataclass(slots=True)
class _Method:
    """What is remembered of one method."""

    method: str
    assigned: FlowNodeValues = field(default_factory=FlowNodeValues)
    weights: FlowNodeValues = field(default_factory=FlowNodeValues)
    violations: FloorViolations = field(default_factory=FloorViolations)
    retention: CeilingRetention = field(default_factory=CeilingRetention)
    slow: SlowFlows = field(default_factory=SlowFlows)
    capacities: dict[str, NodeCapacities] = field(default_factory=dict)

    def capacity(self, side: str) -> NodeCapacities:
        """What nodes carry on one side."""
        return self.capacities.setdefault(side, NodeCapacities(side, self.method))


class Allocator:
    """:param groups: who belongs to which group
    :param host: who divides, for the picture
    """

    def __init__(self, groups: GroupIndex | None = None, host: str = "") -> None:
        self.loads = NodeLoads()
        self.objectives = Objectives(GroupIndex() if groups is None else groups)
        self._host = host
        self._number = 0
        self._last: float | None = None
        self._copies = WriteAmplification()
        self._gone = FailureDetector()
        self._heads = SharePrefixes(self.loads.flow_index)
        self._methods = {method: _Method(method) for method in METHODS}
        self._promised = {method: FloorRegistry(method) for method in METHODS}
        self._standing = IdleFloorRows()
        self._missing, self._infeasible = CachedJson(), CachedJson()

    def feed(self, load: NodeLoad, arrived: float) -> bool:
        """Take what a node told at ``arrived`` (monotonic seconds); False when it is not news."""
        return self.loads.feed(load, arrived)

    def allocate(self, now: float, at: float = 0.0, term: int = 1, number: int | None = None) -> AllocationRound:
        """Divide at ``now`` (monotonic); ``at`` (unix time), ``term`` and ``number`` are for the messages."""
        began = time.perf_counter()
        self._number = self._number + 1 if number is None else number
        seconds = 1.0 if self._last is None else min(max(now - self._last, _SHORTEST), _LONGEST)
        self._last = now
        self._forget(now)
        self.objectives.set_policy_names(self.loads.policies)
        held = [(method, self.objectives.side(method)) for method in (GET, PUT) if self.objectives.governs(method)]
        table = LoadTable.from_loads(self.loads, self._gone.step(self.loads, now, held))
        self._copies.update(table, seconds)
        made = {method: self._divide(method, table, now, seconds) for method in METHODS}
        bodies = self._bodies(table, made, at, term)
        governed = any(one.governed for one in made.values())
        took = round(time.perf_counter() - began, 6)
        empty = BandwidthReport(at, self._host, term, self._number, took=took)
        return AllocationRound(bodies, governed, lambda: self._picture(table, made, now, empty))

    def _forget(self, now: float) -> None:
        moved = self.loads.forget(now)
        if moved is not None:
            self._heads = SharePrefixes(self.loads.flow_index)
            for known in self._methods.values():
                known.assigned, known.weights = known.assigned.renumber(moved), known.weights.renumber(moved)

    # -- one method

    def _divide(self, method: str, table: LoadTable, now: float, seconds: float) -> MethodAllocation:
        known, objectives = self._methods[method], self.objectives
        wanted = collect_demand(table, method, objectives, known.assigned, known.weights)
        known.weights = FlowNodeValues.from_unsorted(wanted.throttled.keys, wanted.throttled.portions())
        cap = objectives.replication
        if method == REPLICATION and cap is not None:
            made = allocate_replication(cap, table, known.assigned, self._capacity(method))
        elif objectives.has_floors(method):
            self._estimate(known, wanted, table, now, seconds)
            copies = {policy: self._copies.factor(policy) for policy in {one.flow.policy for one in wanted.flows}}
            made = allocate_floors(table, wanted, self._capacity(method), copies)
            known.slow.step(made, now)
        elif objectives.has_ceilings(method):
            made = allocate_ceilings(table, wanted)
        else:
            made = MethodAllocation(table, wanted)
        if objectives.has_ceilings(method):
            known.retention.apply(made, objectives, now)
        known.assigned = made.assigned()
        return made

    def _capacity(self, method: str) -> Callable[[str, Node], float]:
        known = self._methods[method]
        return lambda side, node: known.capacity(side).of(node.name, node.capacity)[0]

    def _estimate(self, known: _Method, wanted: MethodDemand, table: LoadTable, now: float, seconds: float) -> None:
        """Look whether floors suffer, and what that says of nodes whose capacity nobody configured."""
        unknown = {side: _unknown(table, side, known.method) for side in SIDES}
        known.violations.forget(now)
        suffer = []
        for one in wanted.flows if any(unknown.values()) else ():
            if one.floor > 0:
                may = min(one.floor, one.ceiling, one.allowed)
                if known.violations.step(one.flow, may, one.mean_moved, one.mean_open, one.mean_waiting, now):
                    suffer.append(one)
        for side, moved in unknown.items():
            nodes = {node for one in suffer for node in wanted.parts[side].nodes_of(one.index).tolist()}
            where = {table.nodes[node].name for node in nodes}
            known.capacity(side).step(moved, where & moved.keys(), seconds)

    # -- what is told

    def _bodies(self, table: LoadTable, made: Mapping[str, MethodAllocation], at: float, term: int) -> dict[str, bytes]:
        spares = packb(self._spares(table) if made[GET].governed else {})
        nothing = packb({})
        told = [one for each in made.values() for one in each.shares]
        rows = packed(together(told), self._heads, len(table.nodes)) if told else [(0, b"")] * len(table.nodes)
        bodies = {}
        for place, (node, (count, raw)) in enumerate(zip(table.nodes, rows, strict=True)):
            newcomer: dict[str, dict[str, float]] = {}
            for method, one in made.items():
                if place in one.newcomers:
                    newcomer.setdefault(one.demands.side, {})[method] = one.newcomers[place]
            shares = Shares(node.name, term, self._number, at, newcomer=newcomer)
            bodies[node.name] = encoded(shares, count, raw, spares if node.serves(PROXY) else nothing)
        return bodies

    def _spares(self, table: LoadTable) -> dict[str, float]:
        """``ip:port`` of each object server whose capacity is known → how much room it has, 0 to 1, for reading."""
        carry = self._capacity(GET)
        known = [carry(STORAGE_NODE, node) if node.serves(STORAGE_NODE) else math.inf for node in table.nodes]
        return rooms(table, np.array(known, dtype=np.float64))

    def _picture(
        self, table: LoadTable, made: Mapping[str, MethodAllocation], now: float, empty: BandwidthReport
    ) -> tuple[BandwidthReport, IdleFlowReport]:
        known = {
            (side, method, node.name): one.capacity(side).of(node.name, node.capacity)
            for method, one in self._methods.items()
            for side in SIDES
            for node in table.nodes
        }
        servers = len(table.serving(STORAGE_NODE))
        idle = {method: self._promised[method].step(one, self.objectives, servers) for method, one in made.items()}
        lacking = {
            method: overcommitment(one, idle[method], self._carried(method, table.nodes), self._stored(method))
            for method, one in made.items()
            if self.objectives.has_floors(method)
        }
        self._know_missing(floor_shortfall(made, idle, lacking))
        heard = np.array([now - node.arrived <= FRESH_SECONDS for node in table.nodes], dtype=bool)
        assigned = {method: one.assigned for method, one in self._methods.items()}
        active, left_out = flow_rows(made, heard)
        promises, count, more = idle_flow_rows(self._standing, idle, lacking, len(active))
        lists = {
            "flows": (active, left_out + more),
            "nodes": node_rows(table, made, known, heard),
            "parts": device_rows(table, made, assigned, heard),
            "objects": object_rows(table, heard),
        }
        shown: dict[str, Any] = {name: tuple(rows) for name, (rows, _) in lists.items()}
        picture = replace(
            empty,
            **shown,
            left_out={name: more for name, (_, more) in lists.items() if more},
            infeasible=self._infeasible,
            lacking=self._missing,
            policies=dict(self.loads.policies),
            promises=promises.digest,
            idle=count,
        )
        return picture, promises

    def _know_missing(self, missing: Shortfall) -> None:
        """Keep what is missing, and how it is told, while it is the same."""
        if missing != self._missing:
            self._missing = CachedJson(missing)
            self._infeasible = CachedJson({policy: sum(parts.values()) for policy, parts in missing.items()})

    def _carried(self, method: str, nodes: Sequence[Node]) -> dict[str, float]:
        """Side → what its nodes carry; infinite when one's capacity is not configured."""
        totals = {}
        for side in SIDES:
            known = [
                self._methods[method].capacity(side).of(node.name, node.capacity) for node in nodes if node.serves(side)
            ]
            sure = known and all(source == CONFIGURED for _, source in known)
            totals[side] = sum(capacity for capacity, _ in known) if sure else math.inf
        return totals

    def _stored(self, method: str) -> Callable[[int], float]:
        """What is stored for each byte that is promised, by storage policy."""
        return lambda policy: self._copies.factor(max(policy, 0)) if method == PUT else 1.0


def _unknown(table: LoadTable, side: str, method: str) -> dict[str, float]:
    """Name → what moved, of the nodes whose capacity is not configured."""
    moved = table.per_node(method, side, table.stats.moved).tolist()
    return {
        node.name: moved[place]
        for place, node in enumerate(table.nodes)
        if node.serves(side) and method not in node.capacity.get(side, {})
    }
