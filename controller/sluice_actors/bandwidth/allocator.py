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

from sluice_actors.bandwidth.capacity_estimator import CONFIGURED, Capacities, Suffering
from sluice_actors.bandwidth.failure_detector import Gone
from sluice_actors.bandwidth.loads.flow_node_values import Spots
from sluice_actors.bandwidth.loads.read_headroom import rooms
from sluice_actors.bandwidth.loads.table import HEARD, Loads, Node, Table
from sluice_actors.bandwidth.methods.demand import Demands, demands
from sluice_actors.bandwidth.methods.method_allocator import Divided, ceilings_alone, floors_first
from sluice_actors.bandwidth.methods.replication_cap import capped
from sluice_actors.bandwidth.methods.write_amplification import Copies, Lingering
from sluice_actors.bandwidth.objectives import Objectives
from sluice_actors.bandwidth.reports.idle_report import StandingRows
from sluice_actors.bandwidth.reports.report import flows_of, nodes_of, objects_of, parts_of, promises_of
from sluice_actors.bandwidth.reports.shortfall import Missing, Promised, Slow, lacking_of, missing_of
from sluice_actors.bandwidth.share_encoder import Heads, encoded, packed, together
from sluice_actors.policies.group_index import GroupIndex
from sluice_core.describe import PROXY, STORAGE_NODE
from sluice_core.messages.bandwidth import GET, METHODS, PUT, REPLICATION, SIDES, NodeLoad, Shares
from sluice_core.messages.bandwidth_report import BandwidthReport, CachedJson, IdleFlowReport

#: Seconds that one round may stand for.
_SHORTEST, _LONGEST = 0.2, 5.0


@dataclass(frozen=True)
class Round:
    """What came of one round: node → its shares, encoded; ``governed`` when anything is held back anywhere.

    ``show`` makes the picture and the promises beside it, which takes a while that shares need not wait for.
    """

    bodies: Mapping[str, bytes]
    governed: bool
    show: Callable[[], tuple[BandwidthReport, IdleFlowReport]]

    @cached_property
    def shown(self) -> tuple[BandwidthReport, IdleFlowReport]:
        """To be asked for before the divider takes anything else."""
        return self.show()

    @cached_property
    def picture(self) -> BandwidthReport:
        """As people will see it."""
        picture, promises = self.shown
        return picture.with_idle(promises)

    @cached_property
    def shares(self) -> Mapping[str, Shares]:
        """Node → its shares, as it will read them."""
        return {node: Shares.decode(body) for node, body in self.bodies.items()}


@dataclass(slots=True)
class _Method:
    """What is remembered of one method."""

    method: str
    assigned: Spots = field(default_factory=Spots)
    weights: Spots = field(default_factory=Spots)
    suffering: Suffering = field(default_factory=Suffering)
    lingering: Lingering = field(default_factory=Lingering)
    slow: Slow = field(default_factory=Slow)
    capacities: dict[str, Capacities] = field(default_factory=dict)

    def capacity(self, side: str) -> Capacities:
        """What nodes carry on one side."""
        return self.capacities.setdefault(side, Capacities(side, self.method))


class Divider:
    """:param groups: who belongs to which group
    :param host: who divides, for the picture
    """

    def __init__(self, groups: GroupIndex | None = None, host: str = "") -> None:
        self.loads = Loads()
        self.objectives = Objectives(GroupIndex() if groups is None else groups)
        self._host = host
        self._number = 0
        self._last: float | None = None
        self._copies = Copies()
        self._gone = Gone()
        self._heads = Heads(self.loads.names)
        self._methods = {method: _Method(method) for method in METHODS}
        self._promised = {method: Promised(method) for method in METHODS}
        self._standing = StandingRows()
        self._missing, self._infeasible = CachedJson(), CachedJson()

    def feed(self, load: NodeLoad, arrived: float) -> bool:
        """Take what a node told at ``arrived`` (monotonic seconds); False when it is not news."""
        return self.loads.feed(load, arrived)

    def round(self, now: float, at: float = 0.0, term: int = 1, number: int | None = None) -> Round:
        """Divide at ``now`` (monotonic); ``at`` (unix time), ``term`` and ``number`` are for the messages."""
        began = time.perf_counter()
        self._number = self._number + 1 if number is None else number
        seconds = 1.0 if self._last is None else min(max(now - self._last, _SHORTEST), _LONGEST)
        self._last = now
        self._forget(now)
        self.objectives.name_policies(self.loads.policies)
        held = [(method, self.objectives.side(method)) for method in (GET, PUT) if self.objectives.governs(method)]
        table = Table.of(self.loads, self._gone.step(self.loads, now, held))
        self._copies.learn(table, seconds)
        made = {method: self._divide(method, table, now, seconds) for method in METHODS}
        bodies = self._bodies(table, made, at, term)
        governed = any(one.governed for one in made.values())
        took = round(time.perf_counter() - began, 6)
        empty = BandwidthReport(at, self._host, term, self._number, took=took)
        return Round(bodies, governed, lambda: self._picture(table, made, now, empty))

    def _forget(self, now: float) -> None:
        moved = self.loads.forget(now)
        if moved is not None:
            self._heads = Heads(self.loads.names)
            for known in self._methods.values():
                known.assigned, known.weights = known.assigned.renumber(moved), known.weights.renumber(moved)

    # -- one method

    def _divide(self, method: str, table: Table, now: float, seconds: float) -> Divided:
        known, objectives = self._methods[method], self.objectives
        wanted = demands(table, method, objectives, known.assigned, known.weights)
        known.weights = Spots.of(wanted.here.spots, wanted.here.portions())
        cap = objectives.replication
        if method == REPLICATION and cap is not None:
            made = capped(cap, table, known.assigned, self._capacity(method))
        elif objectives.floors(method):
            self._estimate(known, wanted, table, now, seconds)
            copies = {policy: self._copies.of(policy) for policy in {one.flow.policy for one in wanted.flows}}
            made = floors_first(table, wanted, self._capacity(method), copies)
            known.slow.step(made, now)
        elif objectives.ceilings(method):
            made = ceilings_alone(table, wanted)
        else:
            made = Divided(table, wanted)
        if objectives.ceilings(method):
            known.lingering.step(made, objectives, now)
        known.assigned = made.assigned()
        return made

    def _capacity(self, method: str) -> Callable[[str, Node], float]:
        known = self._methods[method]
        return lambda side, node: known.capacity(side).of(node.name, node.capacity)[0]

    def _estimate(self, known: _Method, wanted: Demands, table: Table, now: float, seconds: float) -> None:
        """Look whether floors suffer, and what that says of nodes whose capacity nobody configured."""
        unknown = {side: _unknown(table, side, known.method) for side in SIDES}
        known.suffering.forget(now)
        suffer = []
        for one in wanted.flows if any(unknown.values()) else ():
            if one.floor > 0:
                may = min(one.floor, one.ceiling, one.may)
                if known.suffering.step(one.flow, may, one.bytes, one.transfers, one.held, now):
                    suffer.append(one)
        for side, moved in unknown.items():
            nodes = {node for one in suffer for node in wanted.parts[side].nodes_of(one.index).tolist()}
            where = {table.nodes[node].name for node in nodes}
            known.capacity(side).step(moved, where & moved.keys(), seconds)

    # -- what is told

    def _bodies(self, table: Table, made: Mapping[str, Divided], at: float, term: int) -> dict[str, bytes]:
        spares = packb(self._spares(table) if made[GET].governed else {})
        nothing = packb({})
        told = [one for each in made.values() for one in each.told]
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

    def _spares(self, table: Table) -> dict[str, float]:
        """``ip:port`` of each object server whose capacity is known → how much room it has, 0 to 1, for reading."""
        carry = self._capacity(GET)
        known = [carry(STORAGE_NODE, node) if node.serves(STORAGE_NODE) else math.inf for node in table.nodes]
        return rooms(table, np.array(known, dtype=np.float64))

    def _picture(
        self, table: Table, made: Mapping[str, Divided], now: float, empty: BandwidthReport
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
            method: lacking_of(one, idle[method], self._carried(method, table.nodes), self._stored(method))
            for method, one in made.items()
            if self.objectives.floors(method)
        }
        self._know_missing(missing_of(made, idle, lacking))
        heard = np.array([now - node.arrived <= HEARD for node in table.nodes], dtype=bool)
        assigned = {method: one.assigned for method, one in self._methods.items()}
        active, left_out = flows_of(made, heard)
        promises, count, more = promises_of(self._standing, idle, lacking, len(active))
        lists = {
            "flows": (active, left_out + more),
            "nodes": nodes_of(table, made, known, heard),
            "parts": parts_of(table, made, assigned, heard),
            "objects": objects_of(table, heard),
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

    def _know_missing(self, missing: Missing) -> None:
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
        return lambda policy: self._copies.of(max(policy, 0)) if method == PUT else 1.0


def _unknown(table: Table, side: str, method: str) -> dict[str, float]:
    """Name → what moved, of the nodes whose capacity is not configured."""
    moved = table.per_node(method, side, table.traces.moved).tolist()
    return {
        node.name: moved[place]
        for place, node in enumerate(table.nodes)
        if node.serves(side) and method not in node.capacity.get(side, {})
    }
