"""One method divided once: what was wanted becomes a rate for each flow on each node.

* No objective: nothing is held back.
* Ceilings alone: the flows that have one are held back, by it and nothing else.
* With a floor: all active flows are, as far as capacities are known (``sluice_actors.division``).  What nobody wants
  now is handed out nevertheless, in equal parts, so that whoever wants more before the next round need not wait for it.

Rates in bytes per second of payload at the side in question; negative: as much as it likes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from sluice_actors.bandwidth_demand import Demand, Demands, Part, Spot, poured
from sluice_actors.bandwidth_loads import Node
from sluice_actors.bandwidth_objectives import Promise
from sluice_actors.division import Division, Problem, Side, divide
from sluice_core.bandwidth import NO_CLASS, PUT, SIDES, Flow, Share
from sluice_core.describe import STORAGE_NODE

FREE: Final = -1.0
#: Nobody is held back completely: a client would hang up, and a share of nothing would never be found too small.
LEAST: Final = 4096.0

Capacity = Callable[[str, Node], float]


@dataclass(slots=True)
class Divided:
    """The outcome for one method.

    ``shares`` are the flows' rates in all, ``rates`` those of each spot (they sum up to the shares, or where there is
    something left to somewhat more), ``newcomers`` maps a node to what a new flow begins with there.
    """

    demands: Demands
    governed: bool = False
    shares: dict[Flow, float] = field(default_factory=dict)
    met: dict[Flow, float] = field(default_factory=dict)
    short: dict[Flow, float] = field(default_factory=dict)
    rates: dict[Spot, float] = field(default_factory=dict)
    rows: dict[str, list[Share]] = field(default_factory=dict)
    newcomers: dict[str, float] = field(default_factory=dict)

    def row(self, part: Part, side: str, one: Demand, rate: float, floor: float, ceiling: float) -> None:
        """Have ``rate`` for a flow at one spot."""
        self.put(part.node.name, side, one.flow, one.promise, rate, floor, ceiling)

    def put(
        self, node: str, side: str, flow: Flow, promise: Promise, rate: float, floor: float, ceiling: float
    ) -> None:
        """The same by the node's name."""
        priority = NO_CLASS if promise.own is None else promise.own.priority
        self.rates[side, node, flow] = math.inf if rate < 0 else rate
        share = Share(side, flow.account, flow.container, flow.method, flow.policy, rate, floor, ceiling, priority)
        self.rows.setdefault(node, []).append(share)


def ceilings_alone(demands: Demands) -> Divided:
    """Hold back those that have a ceiling."""
    made = Divided(demands, governed=True)
    tenants: dict[str, list[Demand]] = {}
    for one in demands.flows:
        if one.promise.limited:
            tenants.setdefault(one.flow.account, []).append(one)
    for account, several in tenants.items():
        bound = demands.bounds.get(account, math.inf)
        ceilings = [one.ceiling for one in several]
        shares = poured(bound, [1.0] * len(several), [min(one.want, one.ceiling) for one in several])
        left = poured(bound - sum(shares), [1.0] * len(several), [c - s for c, s in zip(ceilings, shares, strict=True)])
        for one, share, more in zip(several, shares, left, strict=True):
            _by_weight(made, one, share + more if math.isfinite(bound) else one.ceiling)
    return made


def _by_weight(made: Divided, one: Demand, ceiling: float) -> None:
    side = made.demands.side
    made.shares[one.flow] = ceiling
    total = sum(part.weight for part in one.parts[side])
    for part in one.parts[side]:
        rate = ceiling * part.weight / total
        if math.isfinite(rate):
            made.row(part, side, one, rate, 0.0, rate)


def floors_first(demands: Demands, nodes: Sequence[Node], capacity: Capacity, copies: Mapping[int, float]) -> Divided:
    """Divide what ``nodes`` carry; ``copies`` maps a storage policy to the bytes stored per byte of an upload."""
    made = Divided(demands, governed=True)
    sides = {side: _Side(side, nodes, capacity, demands, copies) for side in SIDES}
    here, there = sides[demands.side], sides[demands.other]
    if demands.flows:
        division = divide(_problem(demands, sides))
        for index, one in enumerate(demands.flows):
            made.shares[one.flow] = float(division.share[index])
            made.met[one.flow] = float(division.met[index])
            made.short[one.flow] = float(division.short[index])
        for side in sides.values():
            side.take(division)
        _share_out(made, here, there)
        _tell_other(made, there)
    _welcome(made, nodes, here, there)
    return made


def _welcome(made: Divided, nodes: Sequence[Node], here: _Side, there: _Side) -> None:
    """What flows begin with that nobody knows yet: the same as others, or what is left if that is more."""
    serving = [(index, node) for index, node in enumerate(nodes) if node.serves(here.name)]
    for index, node in serving:
        carries = min(here.capacity[index], there.carries() / len(serving))
        if math.isfinite(carries):
            spare = min(here.spare[index], there.unused() / len(serving))
            made.newcomers[node.name] = max(carries / (here.crowd[index] + 1), spare, LEAST)


class _Side:
    """One side of the problem, and what came of it; a flow of which no byte was seen here has no part."""

    def __init__(
        self, name: str, nodes: Sequence[Node], capacity: Capacity, demands: Demands, copies: Mapping[int, float]
    ) -> None:
        index = {node.name: place for place, node in enumerate(nodes)}
        stored = name == STORAGE_NODE
        self.name = name
        self.capacity = [capacity(name, node) for node in nodes]
        self.serving = [node.serves(name) for node in nodes]
        self.parts = [(number, part) for number, one in enumerate(demands.flows) for part in one.parts.get(name, ())]
        self.nodes = [index[part.node.name] for _, part in self.parts]
        #: Flows that lie on a node whose capacity is known.
        self.held = {
            number
            for (number, _), place in zip(self.parts, self.nodes, strict=True)
            if math.isfinite(self.capacity[place])
        }
        self.copies = [
            copies.get(one.flow.policy, 1.0) if stored and one.flow.method == PUT else 1.0 for one in demands.flows
        ]
        self.crowd = [0] * len(nodes)
        for place in self.nodes:
            self.crowd[place] += 1
        self.rates: list[float] = []
        self.floors: list[float] = []
        self.spare = list(self.capacity)

    def side(self) -> Side:
        """As ``divide`` wants it."""
        return Side(
            capacity=np.array(self.capacity, dtype=np.float64),
            flow=np.array([number for number, _ in self.parts], dtype=np.intp),
            node=np.array(self.nodes, dtype=np.intp),
            weight=np.array([part.weight for _, part in self.parts], dtype=np.float64),
            copies=np.array(self.copies, dtype=np.float64),
        )

    def take(self, division: Division) -> None:
        """What came of it."""
        stored = self.name == STORAGE_NODE
        self.rates = (division.storage if stored else division.proxies).tolist()
        self.floors = (division.storage_floors if stored else division.proxy_floors).tolist()
        self.spare = np.maximum(division.spare_storage if stored else division.spare_proxies, 0.0).tolist()

    def carries(self) -> float:
        """What all nodes of this side carry, in bytes of payload."""
        return self._sum(self.capacity)

    def unused(self) -> float:
        """The same of what is left."""
        return self._sum(self.spare)

    def _sum(self, rates: Sequence[float]) -> float:
        serving = [rate for rate, serves in zip(rates, self.serving, strict=True) if serves]
        return sum(serving) / max(self.copies, default=1.0) if serving else math.inf


def _problem(demands: Demands, sides: Mapping[str, _Side]) -> Problem:
    accounts = list(dict.fromkeys(one.flow.account for one in demands.flows))
    number = {account: place for place, account in enumerate(accounts)}
    here, there = (sides[side].side() for side in SIDES)
    return Problem(
        floor=np.array([min(one.floor, one.ceiling) for one in demands.flows], dtype=np.float64),
        ceiling=np.array([one.ceiling for one in demands.flows], dtype=np.float64),
        want=np.array([one.want for one in demands.flows], dtype=np.float64),
        tenant=np.array([number[one.flow.account] for one in demands.flows], dtype=np.intp),
        bound=np.array([demands.bounds.get(account, math.inf) for account in accounts], dtype=np.float64),
        transfers=np.array([max(one.transfers, 1e-3) for one in demands.flows], dtype=np.float64),
        proxies=here,
        storage=there,
    )


def _share_out(made: Divided, here: _Side, there: _Side) -> None:
    """Rows where bytes are held back."""
    ceilings, extra = _ceilings(made), _extra(here, there)
    for place, (number, part) in enumerate(here.parts):
        one, rate, ceiling = made.demands.flows[number], here.rates[place], ceilings[number]
        held = number in here.held or number in there.held or math.isfinite(ceiling)
        if held and math.isfinite(rate):
            share = made.shares[one.flow]
            most = ceiling * rate / share if share > 0 else math.inf
            rate = max(min(rate + extra[here.nodes[place]], most), min(LEAST, most))
            made.row(part, here.name, one, rate, here.floors[place], most if math.isfinite(most) else 0.0)
        elif one.promise.own is not None:
            made.row(part, here.name, one, FREE, here.floors[place], 0.0)


def _extra(here: _Side, there: _Side) -> list[float]:
    """What each flow on each node gets of what nobody wants now, as far as the other side can carry that too."""
    unused = sum(spare for spare, crowd in zip(here.spare, here.crowd, strict=True) if crowd)
    left = there.unused()
    if math.isinf(unused):
        even = left / len(here.parts) if here.parts and math.isfinite(left) else 0.0
        return [even if math.isinf(spare) else 0.0 for spare in here.spare]
    part = min(left / unused, 1.0) if unused > 0 else 0.0
    return [spare / crowd * part if crowd else 0.0 for spare, crowd in zip(here.spare, here.crowd, strict=True)]


def _ceilings(made: Divided) -> list[float]:
    """The ceiling of each flow; of a tenant's, each flow's part is as its share."""
    sums: dict[str, float] = {}
    for flow, share in made.shares.items():
        sums[flow.account] = sums.get(flow.account, 0.0) + share
    found = []
    for one in made.demands.flows:
        bound, total = made.demands.bounds.get(one.flow.account, math.inf), sums[one.flow.account]
        if math.isfinite(bound) and total > 0:
            bound *= made.shares[one.flow] / total
        found.append(min(one.ceiling, bound))
    return found


def _tell_other(made: Divided, there: _Side) -> None:
    """Rows where nothing is held back, of flows with an objective: whose floor is how much there."""
    for (number, part), floor in zip(there.parts, there.floors, strict=True):
        one = made.demands.flows[number]
        if one.promise.own is not None:
            made.row(part, there.name, one, FREE, floor, 0.0)
    for (number, part), rate in zip(there.parts, there.rates, strict=True):
        if math.isfinite(rate):
            made.rates[there.name, part.node.name, made.demands.flows[number].flow] = rate
