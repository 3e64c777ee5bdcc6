"""Who wants how much, and where: one method's flows out of what the nodes told, with what was promised to them.

A flow *wants* without end while its transfers wait for us, or when it moves what it may; otherwise what it moves and
some room to grow.  Where its bytes are held back, its share is split by where its transfers are: bytes follow the
share, and would only repeat the split of before.  On the other side it is split by where its bytes are: objects lie
where they lie.

Transfers are at a proxy because clients chose it, and stay; their mean over some seconds counts.  At an object server
they are because it is slow: the next request of each client goes to another, so they pile up where the share is too
small.  There a share in proportion to a mean of them comes too late and swings; the root of how many there were in
the last second is what holds still (ADR 0033).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from sluice_actors.bandwidth_loads import Loads, Node, Trace
from sluice_actors.bandwidth_objectives import Objectives, Promise
from sluice_core.bandwidth import SIDES, Flow
from sluice_core.describe import STORAGE_NODE
from sluice_core.messages import TENANT

#: One chunk, which who moves next to nothing must be free to move.
CHUNK: Final = 65536.0
#: Room to grow of those that take less than they may.
ROOM: Final = 1.25
#: Transfers held back, as a mean over time, from which a flow counts as waiting.
WAITS: Final = 0.05
#: A flow that moves this part of what it may wants more.
TAKES_ALL: Final = 0.9
_LITTLE: Final = 0.02
#: What transfers at an object server pull: a bit more than their root.
_ROOT: Final = 0.6
#: The part of the mean that object servers where there happens to be none count as.
_NONE: Final = 0.05

#: Side, node, flow.
Spot = tuple[str, str, Flow]


@dataclass(slots=True)
class Part:
    """One flow on one side of one node; ``weight`` is any number above 0."""

    node: Node
    trace: Trace
    weight: float = 0.0


@dataclass(slots=True)
class Demand:
    """One active flow; ``floor`` 0 and ``ceiling`` infinite are none.

    ``moved``, ``open`` and ``waiting`` are those of the side where it is held back, of the last second; ``bytes``,
    ``transfers`` and ``held`` the means.
    """

    flow: Flow
    promise: Promise
    parts: dict[str, list[Part]]
    moved: float
    open: float
    waiting: float
    bytes: float
    transfers: float
    held: float
    want: float = math.inf
    floor: float = 0.0
    ceiling: float = math.inf


@dataclass(slots=True)
class Demands:
    """All active flows of one method; ``bounds`` maps a tenant to the ceiling over all its flows."""

    side: str
    flows: list[Demand] = field(default_factory=list)
    bounds: dict[str, float] = field(default_factory=dict)

    @property
    def other(self) -> str:
        """Where nothing is held back."""
        return next(side for side in SIDES if side != self.side)


Found = dict[str, dict[Flow, dict[str, list[Part]]]]


def found(loads: Loads) -> Found:
    """Method → flow → side → its parts."""
    parts: Found = {}
    for node in loads.nodes.values():
        for (side, flow), trace in node.traces.items():
            sides = parts.setdefault(flow.method, {}).setdefault(flow, {})
            sides.setdefault(side, []).append(Part(node, trace))
    return parts


def demands(
    flows: Mapping[Flow, dict[str, list[Part]]],
    side: str,
    objectives: Objectives,
    assigned: Mapping[Spot, float],
    weights: dict[Spot, float],
) -> Demands:
    """The active ones of ``flows``, held back at ``side``.

    :param assigned: what each might move in the last second
    :param weights: the part of its flow that each spot of ``side`` was to be; made anew
    """
    made = Demands(side)
    for flow in sorted(flows):
        sides = flows[flow]
        parts = sides.get(side, [])
        if not any(part.trace.active for part in parts):
            continue
        one = demand_of(flow, objectives.promise(flow), sides, parts)
        one.want = _want(one, [assigned.get((side, part.node.name, flow)) for part in parts])
        _weigh(one, side, assigned, weights)
        made.flows.append(one)
    weights.clear()
    for one in made.flows:
        total = sum(part.weight for part in one.parts[side])
        weights.update({(side, part.node.name, one.flow): part.weight / total for part in one.parts[side]})
    _limit(made)
    return made


def poured(total: float, weights: Sequence[float], limits: Sequence[float]) -> list[float]:
    """``total`` in proportion to ``weights``; what exceeds one's limit goes to the others."""
    if math.isinf(total):
        return list(limits)
    given = [0.0] * len(weights)
    left = total
    rest = [place for place, weight in enumerate(weights) if weight > 0]
    while rest and left > 0:
        scale = left / sum(weights[place] for place in rest)
        full = [place for place in rest if weights[place] * scale >= limits[place]]
        if not full:
            for place in rest:
                given[place] = weights[place] * scale
            break
        for place in full:
            given[place] = limits[place]
            left -= limits[place]
        rest = [place for place in rest if weights[place] * scale < limits[place]]
    return given


def demand_of(flow: Flow, promise: Promise, sides: dict[str, list[Part]], parts: list[Part]) -> Demand:
    """A flow that is held back at ``parts``; nothing is said yet of what it wants and where it is."""
    traces = [part.trace for part in parts]
    return Demand(
        flow,
        promise,
        sides,
        sum(trace.moved for trace in traces),
        sum(trace.open for trace in traces),
        sum(trace.waiting for trace in traces),
        sum(trace.bytes for trace in traces),
        sum(trace.transfers for trace in traces),
        sum(trace.held for trace in traces),
    )


def _want(one: Demand, assigned: Sequence[float | None]) -> float:
    known = [rate for rate in assigned if rate is not None]
    may = sum(known) if known else math.inf
    if one.waiting > WAITS or math.isinf(may) or one.moved >= TAKES_ALL * may:
        return math.inf
    return one.moved * ROOM + CHUNK


# -- where


def _weigh(one: Demand, side: str, assigned: Mapping[Spot, float], before: Mapping[Spot, float]) -> None:
    for where, parts in one.parts.items():
        transfers = [part.trace.transfers * part.trace.presence for part in parts]
        moved = [part.trace.bytes * part.trace.presence for part in parts]
        if where == side:
            weights = _piled(parts) if side == STORAGE_NODE else _mixed(transfers, moved)
            if len(parts) > 1:
                spots = [(side, part.node.name, one.flow) for part in parts]
                weights = _without_idle(parts, spots, weights, assigned, before)
        else:
            weights = _mixed(moved, transfers)
        least = 1e-3 * max(weights, default=0.0) or 1.0
        for part, weight in zip(parts, weights, strict=True):
            part.weight = max(weight, least)


def _piled(parts: Sequence[Part]) -> list[float]:
    """By the transfers of the last second, with less force than in proportion."""
    mean = sum(part.trace.open for part in parts) / max(len(parts), 1)
    return [((part.trace.open + _NONE * mean) * part.trace.presence) ** _ROOT for part in parts]


def _mixed(first: Sequence[float], second: Sequence[float]) -> list[float]:
    """The proportions of the first, with a little of the second, for what the first does not see."""
    one, two = sum(first) or 1.0, sum(second) or 1.0
    return [a / one + _LITTLE * b / two for a, b in zip(first, second, strict=True)]


def _without_idle(
    parts: Sequence[Part],
    spots: Sequence[Spot],
    weights: list[float],
    assigned: Mapping[Spot, float],
    before: Mapping[Spot, float],
) -> list[float]:
    """Leave to parts that do not take what they may only what they take, and room to grow.

    What a part got is not exactly what its weight said, when nodes are full; so its last weight is mended.
    """
    limits = []
    for part, spot in zip(parts, spots, strict=True):
        trace, rate = part.trace, assigned.get(spot, math.inf)
        takes = max(trace.moved, trace.bytes) * ROOM + CHUNK
        waits = max(trace.waiting, trace.held) > WAITS
        limits.append(math.inf if waits or spot not in before else before[spot] * takes / rate)
    return poured(1.0, weights, limits) if math.inf in limits else limits


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
    for (_, account), several in bounded.items():
        _bound(made, account, several, everything=len(several) == len(tenants[account]))


def _floor(several: list[Demand]) -> None:
    own = several[0].promise.own
    assert own is not None
    total = own.floor
    if own.node_floor:
        total = max(total, own.node_floor * _servers(several))
    if len(several) == 1:
        several[0].floor = total
        return
    weights = [max(one.transfers, _LITTLE) for one in several]
    wanted = poured(total, weights, [one.want for one in several])
    rest = total - sum(wanted)
    for one, floor, weight in zip(several, wanted, weights, strict=True):
        one.floor = floor + rest * weight / sum(weights)


def _servers(several: Iterable[Demand]) -> int:
    """Object servers that these flows are active on."""
    return len({part.node.name for one in several for part in one.parts.get(STORAGE_NODE, ())})


def _bound(made: Demands, account: str, several: list[Demand], everything: bool) -> None:
    bound = several[0].promise.bound
    assert bound is not None
    ceiling = bound.ceiling
    if everything:
        made.bounds[account] = ceiling
        return
    weights = [max(one.transfers, _LITTLE) for one in several]
    limits = [min(one.want, one.ceiling) for one in several]
    taken = poured(ceiling, weights, limits)
    rest = max(ceiling - sum(taken), 0.0)
    for one, part, weight in zip(several, taken, weights, strict=True):
        one.ceiling = min(one.ceiling, part + rest * weight / sum(weights))
