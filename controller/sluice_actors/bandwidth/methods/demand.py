"""Who wants how much, and where: one method's flows out of what the nodes told, with what was promised to them.

A flow *wants* without end while its transfers wait for us, or when it moves what it may; otherwise what it moves and
some room to grow.  Where it is, and how its share is split among its nodes, is said by ``bandwidth_weights``.

There is an object for each flow, but columns for what lies on nodes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Final

import numpy as np

from sluice_actors.bandwidth.arrays import BoolArray, FloatArray, IntArray
from sluice_actors.bandwidth.fairness.water_filling import water_fill
from sluice_actors.bandwidth.loads.flow_index import flows_of
from sluice_actors.bandwidth.loads.flow_node_values import Spots
from sluice_actors.bandwidth.loads.table import Table
from sluice_actors.bandwidth.methods.node_floors import values
from sluice_actors.bandwidth.methods.weights import CHUNK, LITTLE, ROOM, WAITS, Parts, weigh_free, weigh_held
from sluice_actors.bandwidth.objectives import Objectives, Promise
from sluice_core.describe import STORAGE_NODE
from sluice_core.messages.bandwidth import SIDES, Flow
from sluice_core.messages.policies import TENANT

#: A flow that moves this part of what it may wants more.
TAKES_ALL: Final = 0.9


@dataclass(slots=True)
class Demand:
    """One active flow; ``floor`` 0 and ``ceiling`` infinite are none, ``index`` is where it stands among the others.

    ``moved``, ``open`` and ``waiting`` are those of the side where it is held back, of the last second; ``bytes``,
    ``transfers`` and ``held`` the means.  ``may`` is what it might move in the last second, infinite if unknown.
    ``node_floor`` is promised on each object server, ``promised`` what comes of that on all that the flow is on;
    what it wants of it is in ``floor``.
    """

    index: int
    flow: Flow
    promise: Promise
    moved: float
    open: float
    waiting: float
    bytes: float
    transfers: float
    held: float
    may: float = math.inf
    want: float = math.inf
    floor: float = 0.0
    ceiling: float = math.inf
    node_floor: float = 0.0
    promised: float = 0.0


@dataclass(slots=True)
class Demands:
    """All active flows of one method; ``bounds`` maps a tenant to the ceiling over all its flows.

    ``values`` are, of the parts at the storage nodes, the floors of each of these nodes; None when there are none.
    """

    side: str
    parts: dict[str, Parts]
    flows: list[Demand] = field(default_factory=list)
    bounds: dict[str, float] = field(default_factory=dict)
    values: FloatArray | None = None

    @property
    def other(self) -> str:
        """Where nothing is held back."""
        return next(side for side in SIDES if side != self.side)

    @property
    def here(self) -> Parts:
        """Where bytes are held back."""
        return self.parts[self.side]

    def per_flow(self, name: str) -> FloatArray:
        """(flows,) one of their numbers."""
        return np.array(list(map(attrgetter(name), self.flows)), dtype=np.float64)

    def promised(self) -> BoolArray:
        """(flows,) which have an objective of their own."""
        return np.array([one.promise.own is not None for one in self.flows], dtype=bool)


def demands(table: Table, method: str, objectives: Objectives, assigned: Spots, weights: Spots) -> Demands:
    """The active flows of ``method``, held back where ``objectives`` say.

    :param assigned: what each spot might move in the last second
    :param weights: the part of its flow that each spot was to be
    """
    side = objectives.side(method)
    flows = _active(table, method, side)
    made = Demands(side, {one: _parts(table, method, one, flows) for one in SIDES})
    known = assigned.get(made.here.spots, math.nan)
    weigh_held(made.here, side == STORAGE_NODE, np.where(np.isnan(known), np.inf, known), weights)
    weigh_free(made.parts[made.other])
    made.flows = flows_at(made.here, [table.names.flows[number] for number in flows], objectives.promise)
    _want(made, known)
    _limit(made)
    return made


def _active(table: Table, method: str, side: str) -> list[int]:
    """The numbers of the flows that are, in the flows' order."""
    index = table.kind(method, side)
    found = np.zeros(len(table.names.flows), dtype=bool)
    found[flows_of(table.traces.places[index[table.traces.active[index]]])] = True
    return sorted(np.flatnonzero(found).tolist(), key=table.names.flows.__getitem__)


def _parts(table: Table, method: str, side: str, flows: list[int]) -> Parts:
    index = table.kind(method, side)
    rank = np.full(len(table.names.flows), len(flows), dtype=np.intp)
    rank[flows] = np.arange(len(flows))
    ranks = rank[flows_of(table.traces.places[index])]
    order = np.argsort(ranks.astype(np.min_scalar_type(len(flows))), kind="stable")
    order = order[: np.count_nonzero(ranks < len(flows))]
    return parts_at(table, len(flows), ranks[order], index[order])


def parts_at(table: Table, count: int, flow: IntArray, index: IntArray) -> Parts:
    """The places at ``index``, which are those of ``count`` flows; nothing is said yet of what they weigh."""
    node, traces = table.node[index], table.traces.take(index)
    return Parts(count, flow, node, table.spots(node, traces.places), traces, np.ones(len(flow)))


def flows_at(parts: Parts, flows: Iterable[Flow], promised: Callable[[Flow], Promise]) -> list[Demand]:
    """Flows that are held back at ``parts``; nothing is said yet of what they want."""
    traces = parts.traces
    told = (traces.moved, traces.open, traces.waiting, traces.bytes, traces.transfers, traces.held)
    columns = [parts.sums(one).tolist() for one in told]
    return [
        Demand(index, flow, promised(flow), *sums)
        for index, (flow, *sums) in enumerate(zip(flows, *columns, strict=True))
    ]


def _want(made: Demands, known: FloatArray) -> None:
    sure = ~np.isnan(known)
    sums = made.here.sums(np.where(sure, known, 0.0))
    rates = np.where(made.here.sums(sure) > 0, sums, np.inf).tolist()
    for one, may in zip(made.flows, rates, strict=True):
        one.may = may
        if one.waiting <= WAITS and not math.isinf(may) and one.moved < TAKES_ALL * may:
            one.want = one.moved * ROOM + CHUNK


# -- what was promised


def _limit(made: Demands) -> None:
    """Floors and ceilings; one promise to a tenant may cover several flows (storage policies, containers)."""
    tenants: dict[str, list[Demand]] = {}
    promised: dict[tuple[str, str], list[Demand]] = {}
    bounded: dict[tuple[str, str], list[Demand]] = {}
    for one in made.flows:
        account, own, bound = one.flow.account, one.promise.own, one.promise.bound
        tenants.setdefault(account, []).append(one)
        if own is not None:
            promised.setdefault((own.assignment, account if own.level == TENANT else one.flow.path), []).append(one)
            if own is not bound and own.ceiling:
                one.ceiling = own.ceiling
        if bound is not None:
            bounded.setdefault((bound.assignment, account), []).append(one)
    for several in promised.values():
        _floor(several)
    _value(made, list(promised.values()))
    for (_, account), several in bounded.items():
        _bound(made, account, several, everything=len(several) == len(tenants[account]))


def _floor(several: list[Demand]) -> None:
    own = several[0].promise.own
    assert own is not None
    for one in several:
        one.node_floor = own.node_floor
    if len(several) == 1:
        several[0].floor = own.floor
        return
    weights = [max(one.transfers, LITTLE) for one in several]
    wanted = water_fill(own.floor, weights, [one.want for one in several])
    rest = own.floor - sum(wanted)
    for one, floor, weight in zip(several, wanted, weights, strict=True):
        one.floor = floor + rest * weight / sum(weights)


def _value(made: Demands, promised: list[list[Demand]]) -> None:
    """Floors of each object server, which flows of one promise have together."""
    if not any(several[0].node_floor for several in promised):
        return
    groups = np.full(len(made.flows), -1, dtype=np.intp)
    for number, several in enumerate(promised):
        groups[[one.index for one in several]] = number
    stored = made.parts[STORAGE_NODE]
    made.values = values(stored, made.per_flow("node_floor"), groups, waits=made.side == STORAGE_NODE)
    sums = stored.sums(made.values).tolist()
    for several in promised:
        node_floor, all_of_it = several[0].node_floor, sum(one.floor for one in several)
        most = max(node_floor * _servers(made, several), all_of_it) if node_floor else 0.0
        for one in several if node_floor else ():
            one.floor = max(one.floor, sums[one.index])
            one.promised = most / len(several)


def _servers(made: Demands, several: Iterable[Demand]) -> int:
    """Object servers that these flows are active on."""
    stored = made.parts[STORAGE_NODE]
    return len({node for one in several for node in stored.nodes_of(one.index).tolist()})


def _bound(made: Demands, account: str, several: list[Demand], everything: bool) -> None:
    bound = several[0].promise.bound
    assert bound is not None
    ceiling = bound.ceiling
    if everything:
        made.bounds[account] = ceiling
        return
    weights = [max(one.transfers, LITTLE) for one in several]
    limits = [min(one.want, one.ceiling) for one in several]
    taken = water_fill(ceiling, weights, limits)
    rest = max(ceiling - sum(taken), 0.0)
    for one, part, weight in zip(several, taken, weights, strict=True):
        one.ceiling = min(one.ceiling, part + rest * weight / sum(weights))
