"""The picture of one round, for people.

Numbers only, so that it is JSON: a ceiling or capacity of 0 is none or unknown, a negative share is as much as it
likes.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from sluice_actors.bandwidth_demand import Demand
from sluice_actors.bandwidth_dividing import FREE, Divided
from sluice_actors.bandwidth_loads import Node
from sluice_actors.bandwidth_objectives import Objectives
from sluice_core.bandwidth import METHODS, SIDES, Load, MovedObject, Objective

#: Flows, nodes, parts and objects that are shown, each.
MOST: Final = 1000
#: A floor that lacks less than this part of it is met.
SLIGHT: Final = 0.01

Row = dict[str, Any]
Made = Mapping[str, Divided]
#: (side, method, node's name) → capacity and where it is known from.
Known = Mapping[tuple[str, str, str], tuple[float, str]]


def flows_of(made: Made, objectives: Objectives, lacking: Mapping[str, float]) -> list[Row]:
    """Those with objectives first, then the busiest.

    :param lacking: method → the part of all its floors that the cluster lacks
    """
    every = [(one, divided) for divided in made.values() for one in divided.demands.flows]
    shown = heapq.nsmallest(MOST, every, key=lambda pair: (not pair[0].promise.policies, -pair[0].moved))
    there = {(one.flow.account, one.flow.container, one.flow.method) for one, _ in every}
    idle = [
        _idle(own, account, container, lacking.get(method, 0.0))
        for method in made
        for own in objectives.named(method)
        for account, _, container in (own.name.partition("/"),)
        if (account, container, method) not in there
    ]
    return [*idle[::-1], *(_flow(one, divided) for one, divided in shown)][:MOST]


def nodes_of(nodes: Iterable[Node], made: Made, known: Known) -> list[Row]:
    """What each node carries, beside what it may carry."""
    assigned: dict[tuple[str, str, str], float] = {}
    for method, divided in made.items():
        for (side, name, _), rate in divided.rates.items():
            key = (side, method, name)
            assigned[key] = assigned.get(key, 0.0) + (rate if math.isfinite(rate) else 0.0)
    rows = []
    for node in nodes:
        measured: dict[tuple[str, str], float] = {}
        for (side, flow), trace in node.traces.items():
            measured[side, flow.method] = measured.get((side, flow.method), 0.0) + trace.moved
        for side in SIDES:
            for method in METHODS:
                capacity, source = known.get((side, method, node.name), (math.inf, "unknown"))
                moved = measured.get((side, method), 0.0)
                if not node.serves(side) or (math.isinf(capacity) and not moved and method not in made):
                    continue
                rows.append(
                    {
                        "node": node.name,
                        "server": node.server,
                        "side": side,
                        "method": method,
                        "capacity": _finite(capacity),
                        "source": source,
                        "assigned": assigned.get((side, method, node.name), 0.0),
                        "measured": moved,
                        "at": node.at,
                    }
                )
    return _busiest(rows)


def parts_of(nodes: Iterable[Node], made: Made) -> list[Row]:
    """What each flow moves on each device, beside what it may."""
    pairs = [(node, load) for node in nodes for load in node.rows]
    if len(pairs) > MOST:
        pairs = heapq.nlargest(MOST, pairs, key=lambda pair: pair[1].moved)
    return [_part(node, load, made.get(load.method)) for node, load in pairs]


def _part(node: Node, load: Load, divided: Divided | None) -> Row:
    flow = load.flow
    trace = node.traces.get((load.side, flow))
    rate = None if divided is None else divided.rates.get((load.side, node.name, flow))
    share = FREE if rate is None or math.isinf(rate) else rate
    if share > 0 and trace is not None and len(trace.devices) > 1:
        share *= load.moved / trace.moved if trace.moved else 1.0 / len(trace.devices)
    return {
        "node": node.name,
        "side": load.side,
        "device": load.device,
        "account": load.account,
        "container": load.container,
        "method": load.method,
        "policy": load.policy,
        "share": share,
        "measured": load.moved,
    }


def objects_of(nodes: Iterable[Node]) -> list[Row]:
    """The fastest objects on their way."""

    def pairs() -> Iterator[tuple[Node, MovedObject]]:
        for node in nodes:
            for moved in node.objects:
                yield node, moved

    fastest = heapq.nlargest(MOST, pairs(), key=lambda pair: pair[1].rate)
    return [{"node": node.name, "server": node.server, **moved._asdict()} for node, moved in fastest]


def lacking_of(method: str, objectives: Objectives, capacity: float) -> float:
    """The part of all floors for targets by name that the cluster lacks, should all of them be asked for at once."""
    total = sum(objectives.promised(method).values())
    return max(1.0 - capacity / total, 0.0) if total > 0 else 0.0


def infeasible_of(made: Made, objectives: Objectives, lacking: Mapping[str, float]) -> dict[str, float]:
    """Policy id → what is missing, now or if all floors were asked for at once, whichever is more."""
    missing: dict[str, float] = {}
    for method, part in lacking.items():
        for policy, floor in objectives.promised(method).items() if part > SLIGHT else ():
            missing[policy] = missing.get(policy, 0.0) + part * floor
    now: dict[str, float] = {}
    for divided in made.values():
        for one in divided.demands.flows:
            short = divided.short.get(one.flow, 0.0)
            if one.promise.own is not None and short > SLIGHT * one.floor:
                now[one.promise.own.policy] = now.get(one.promise.own.policy, 0.0) + short
    return {policy: max(missing.get(policy, 0.0), now.get(policy, 0.0)) for policy in sorted({*missing, *now})}


def _flow(one: Demand, divided: Divided) -> Row:
    share = divided.shares.get(one.flow, math.inf)
    own, bound = one.promise.own, one.promise.bound
    ceiling = min((limit.ceiling for limit in (own, bound) if limit is not None and limit.ceiling), default=0.0)
    short = divided.short.get(one.flow, 0.0)
    return {
        "account": one.flow.account,
        "container": one.flow.container,
        "method": one.flow.method,
        "policy": one.flow.policy,
        "floor": one.floor,
        "ceiling": ceiling,
        "share": share if math.isfinite(share) else FREE,
        "measured": one.moved,
        "waiting": one.waiting,
        "active": True,
        "met": divided.met.get(one.flow, one.floor),
        "short": short if short > SLIGHT * one.floor else 0.0,
        "policies": list(one.promise.policies),
    }


def _idle(own: Objective, account: str, container: str, lacking: float) -> Row:
    return {
        "account": account,
        "container": container,
        "method": own.method,
        "policy": int(own.storage_policy) if own.storage_policy.isdigit() else -1,
        "floor": own.floor,
        "ceiling": own.ceiling,
        "share": 0.0,
        "measured": 0.0,
        "waiting": 0.0,
        "active": False,
        "met": own.floor * (1.0 - lacking),
        "short": 0.0,
        "policies": [own.policy],
    }


def _busiest(rows: list[Row]) -> list[Row]:
    return heapq.nlargest(MOST, rows, key=lambda row: row["measured"]) if len(rows) > MOST else rows


def _finite(number: float) -> float:
    return number if math.isfinite(number) else 0.0
