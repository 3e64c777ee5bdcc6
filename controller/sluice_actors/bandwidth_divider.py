"""The heart of the dividing host: loads in, one round a second out.  No input, no output, no clock.

A round looks at each method by itself: who is active, what was promised, what nodes carry; divides; and says to each
node what lies on it.  What it remembers is what the nodes said lately, what it assigned last, and estimates; all of
which another host knows within seconds.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from sluice_actors.bandwidth_capacity import CONFIGURED, Capacities, Suffering
from sluice_actors.bandwidth_demand import Demands, Found, Spot, demands, found
from sluice_actors.bandwidth_dividing import Divided, ceilings_alone, floors_first
from sluice_actors.bandwidth_loads import Loads, Node
from sluice_actors.bandwidth_memory import Copies, Lingering
from sluice_actors.bandwidth_objectives import Objectives
from sluice_actors.bandwidth_picture import flows_of, infeasible_of, lacking_of, nodes_of, objects_of, parts_of
from sluice_actors.bandwidth_replication import capped
from sluice_actors.bandwidth_rooms import rooms
from sluice_actors.groups import Groups
from sluice_core.bandwidth import GET, METHODS, PUT, REPLICATION, SIDES, NodeLoad, Picture, Shares
from sluice_core.describe import PROXY, STORAGE_NODE

#: Seconds that one round may stand for.
_SHORTEST, _LONGEST = 0.2, 5.0


@dataclass(frozen=True, slots=True)
class Round:
    """What came of one round: node → its shares; ``governed`` when anything is held back anywhere."""

    shares: Mapping[str, Shares]
    picture: Picture
    governed: bool


@dataclass(slots=True)
class _Method:
    """What is remembered of one method."""

    method: str
    assigned: dict[Spot, float] = field(default_factory=dict)
    weights: dict[Spot, float] = field(default_factory=dict)
    suffering: Suffering = field(default_factory=Suffering)
    lingering: Lingering = field(default_factory=Lingering)
    capacities: dict[str, Capacities] = field(default_factory=dict)

    def capacity(self, side: str) -> Capacities:
        """What nodes carry on one side."""
        return self.capacities.setdefault(side, Capacities(side, self.method))


class Divider:
    """:param groups: who belongs to which group
    :param host: who divides, for the picture
    """

    def __init__(self, groups: Groups | None = None, host: str = "") -> None:
        self.loads = Loads()
        self.objectives = Objectives(Groups() if groups is None else groups)
        self._host = host
        self._number = 0
        self._last: float | None = None
        self._copies = Copies()
        self._methods = {method: _Method(method) for method in METHODS}

    def feed(self, load: NodeLoad, arrived: float) -> bool:
        """Take what a node told at ``arrived`` (monotonic seconds); False when it is not news."""
        return self.loads.feed(load, arrived)

    def round(self, now: float, at: float = 0.0, term: int = 1, number: int | None = None) -> Round:
        """Divide at ``now`` (monotonic); ``at`` (unix time), ``term`` and ``number`` are for the messages."""
        began = time.perf_counter()
        self._number = self._number + 1 if number is None else number
        seconds = 1.0 if self._last is None else min(max(now - self._last, _SHORTEST), _LONGEST)
        self._last = now
        self.loads.forget(now)
        self.objectives.name_policies(self.loads.policies)
        nodes = sorted(self.loads.nodes.values(), key=lambda node: node.name)
        everything = found(self.loads)
        self._copies.learn(everything.get(PUT, {}), seconds)
        made = {method: self._divide(method, everything, nodes, now, seconds) for method in METHODS}
        shares = self._shares(nodes, made, at, term)
        governed = any(one.governed for one in made.values())
        picture = self._picture(nodes, made, at, term, began)
        return Round(shares, picture, governed)

    # -- one method

    def _divide(self, method: str, everything: Found, nodes: list[Node], now: float, seconds: float) -> Divided:
        known, objectives = self._methods[method], self.objectives
        flows = everything.get(method, {})
        wanted = demands(flows, objectives.side(method), objectives, known.assigned, known.weights)
        cap = objectives.replication
        if method == REPLICATION and cap is not None:
            made = capped(cap, everything, nodes, known.assigned)
        elif objectives.floors(method):
            self._estimate(known, wanted, nodes, now, seconds)
            copies = {flow.policy: self._copies.of(flow.policy) for flow in flows}
            made = floors_first(wanted, nodes, self._capacity(method), copies)
        elif objectives.ceilings(method):
            made = ceilings_alone(wanted)
        else:
            made = Divided(wanted)
        if objectives.ceilings(method):
            known.lingering.step(made, objectives, now)
        known.assigned = made.rates
        return made

    def _capacity(self, method: str) -> Callable[[str, Node], float]:
        known = self._methods[method]
        return lambda side, node: known.capacity(side).of(node.name, node.capacity)[0]

    def _estimate(self, known: _Method, wanted: Demands, nodes: list[Node], now: float, seconds: float) -> None:
        """Look whether floors suffer, and what that says of nodes whose capacity nobody configured."""
        unknown = {
            side: {
                node.name: _moved(node, side, known.method)
                for node in nodes
                if node.serves(side) and known.method not in node.capacity.get(side, {})
            }
            for side in SIDES
        }
        known.suffering.forget(now)
        suffer = []
        for one in wanted.flows if any(unknown.values()) else ():
            if one.floor > 0:
                spots = ((wanted.side, part.node.name, one.flow) for part in one.parts[wanted.side])
                rates = [known.assigned[spot] for spot in spots if spot in known.assigned]
                may = min(one.floor, one.ceiling, sum(rates) if rates else math.inf)
                if known.suffering.step(one.flow, may, one.bytes, one.transfers, one.held, now):
                    suffer.append(one)
        for side, moved in unknown.items():
            where = {part.node.name for one in suffer for part in one.parts.get(side, ())}
            known.capacity(side).step(moved, where & moved.keys(), seconds)

    # -- what is told

    def _shares(self, nodes: list[Node], made: Mapping[str, Divided], at: float, term: int) -> dict[str, Shares]:
        spares = self._spares(nodes) if made[GET].governed else {}
        shares = {}
        for node in nodes:
            rows = tuple(row for one in made.values() for row in one.rows.get(node.name, ()))
            newcomer: dict[str, dict[str, float]] = {}
            for method, one in made.items():
                if node.name in one.newcomers:
                    newcomer.setdefault(one.demands.side, {})[method] = one.newcomers[node.name]
            told = spares if node.serves(PROXY) else {}
            shares[node.name] = Shares(node.name, term, self._number, at, rows, newcomer, told)
        return shares

    def _spares(self, nodes: list[Node]) -> dict[str, float]:
        """``ip:port`` of each object server whose capacity is known → how much room it has, 0 to 1, for reading."""
        carry = self._capacity(GET)
        known = {node.name: carry(STORAGE_NODE, node) for node in nodes if node.server and node.serves(STORAGE_NODE)}
        return rooms([node for node in nodes if math.isfinite(known.get(node.name, math.inf))], known)

    def _picture(self, nodes: list[Node], made: Mapping[str, Divided], at: float, term: int, began: float) -> Picture:
        known = {
            (side, method, node.name): one.capacity(side).of(node.name, node.capacity)
            for method, one in self._methods.items()
            for side in SIDES
            for node in nodes
        }
        lacking = {
            method: lacking_of(method, self.objectives, self._total(method, nodes))
            for method in METHODS
            if self.objectives.floors(method)
        }
        return Picture(
            at=at,
            host=self._host,
            term=term,
            number=self._number,
            flows=tuple(flows_of(made, self.objectives, lacking)),
            nodes=tuple(nodes_of(nodes, made, known)),
            parts=tuple(parts_of(nodes, made)),
            objects=tuple(objects_of(nodes)),
            infeasible=infeasible_of(made, self.objectives, lacking),
            policies=dict(self.loads.policies),
            took=round(time.perf_counter() - began, 6),
        )

    def _total(self, method: str, nodes: list[Node]) -> float:
        """What the cluster carries of client payload; infinite when some node's capacity is not configured."""
        totals = [math.inf]
        for side in SIDES:
            known = [
                self._methods[method].capacity(side).of(node.name, node.capacity) for node in nodes if node.serves(side)
            ]
            if known and all(source == CONFIGURED for _, source in known):
                copies = self._copies.of(0) if side == STORAGE_NODE and method == PUT else 1.0
                totals.append(sum(capacity for capacity, _ in known) / copies)
        return min(totals)


def _moved(node: Node, side: str, method: str) -> float:
    return sum(trace.moved for (where, flow), trace in node.traces.items() if where == side and flow.method == method)
