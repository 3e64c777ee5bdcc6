"""The picture of one round, for people.

Numbers only, so that it is JSON: a ceiling or capacity of 0 is none or unknown, a negative share is as much as it
likes.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import numpy as np

from sluice_actors.bandwidth_demand import Demand
from sluice_actors.bandwidth_dividing import FREE, Divided
from sluice_actors.bandwidth_loads import Node, Table
from sluice_actors.bandwidth_names import DEVICES, KINDS, kind
from sluice_actors.bandwidth_objectives import Objectives
from sluice_actors.bandwidth_spots import Spots
from sluice_actors.division import FloatArray, IntArray
from sluice_core.bandwidth import METHODS, SIDES, MovedObject, Objective

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
    shown = heapq.nsmallest(MOST, every, key=lambda pair: (pair[0].promise.nothing, -pair[0].moved))
    there = {(one.flow.account, one.flow.container, one.flow.method) for one, _ in every}
    idle = [
        _idle(own, account, container, lacking.get(method, 0.0))
        for method in made
        for own in objectives.named(method)
        for account, _, container in (own.name.partition("/"),)
        if (account, container, method) not in there
    ]
    return [*idle[::-1], *(_flow(one, divided) for one, divided in shown)][:MOST]


def nodes_of(table: Table, made: Made, known: Known) -> list[Row]:
    """What each node carries, beside what it may carry."""
    rows = []
    for side in SIDES:
        serving = table.serving(side).tolist()
        for method in METHODS:
            measured = table.per_node(method, side, table.traces.moved).tolist()
            assigned = _assigned(table, made.get(method), kind(method, side))
            for place in serving:
                capacity, source = known.get((side, method, table.nodes[place].name), (math.inf, "unknown"))
                if math.isfinite(capacity) or measured[place] or method in made:
                    rows.append((place, measured[place], side, method, capacity, source, assigned[place]))
    rows.sort(key=lambda row: row[0])
    shown = rows if len(rows) <= MOST else heapq.nlargest(MOST, rows, key=lambda row: row[1])
    return [_node(table.nodes[place], *others) for place, *others in shown]


def _assigned(table: Table, divided: Divided | None, sort: int) -> list[float]:
    """(nodes,) what may move there, where that is held back."""
    sums = np.zeros(len(table.nodes))
    for one in () if divided is None else divided.rates:
        which = np.flatnonzero((one.place % KINDS == sort) & np.isfinite(one.rate))
        sums += np.bincount(one.node[which], one.rate[which], minlength=len(sums))
    return sums.tolist()


def _node(node: Node, measured: float, side: str, method: str, capacity: float, source: str, assigned: float) -> Row:
    return {
        "node": node.name,
        "server": node.server,
        "side": side,
        "method": method,
        "capacity": _finite(capacity),
        "source": source,
        "assigned": assigned,
        "measured": measured,
        "at": node.at,
    }


def parts_of(table: Table, assigned: Mapping[str, Spots]) -> list[Row]:
    """What each flow moves on each device, beside what it may.

    :param assigned: method → the rate of each spot
    """
    moved = np.concatenate([np.empty(0), *(node.rows.moved for node in table.nodes)])
    begins = np.cumsum([0, *(len(node.rows.moved) for node in table.nodes)])
    rows = _greatest(moved)
    nodes = np.searchsorted(begins, rows, side="right") - 1
    each = zip(nodes.tolist(), (rows - begins[nodes]).tolist(), strict=True)
    return [_part(table, node, row, assigned) for node, row in each]


def _part(table: Table, place: int, row: int, assigned: Mapping[str, Spots]) -> Row:
    node = table.nodes[place]
    numbers, moved = node.rows.numbers // DEVICES, float(node.rows.moved[row])
    side, account, container, method, policy, device = table.names.key(int(node.rows.numbers[row]))
    rate = assigned[method].find(table.spot(place, int(numbers[row])))
    share = FREE if rate is None or math.isinf(rate) else rate
    beside = node.rows.moved[numbers == numbers[row]]
    if share > 0 and len(beside) > 1:
        total = float(beside.sum())
        share *= moved / total if total else 1.0 / len(beside)
    return {
        "node": node.name,
        "side": side,
        "device": device,
        "account": account,
        "container": container,
        "method": method,
        "policy": policy,
        "share": share,
        "measured": moved,
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
        for one, short in zip(divided.demands.flows, divided.short.tolist(), strict=True):
            if one.promise.own is not None and short > SLIGHT * one.floor:
                now[one.promise.own.policy] = now.get(one.promise.own.policy, 0.0) + short
    return {policy: max(missing.get(policy, 0.0), now.get(policy, 0.0)) for policy in sorted({*missing, *now})}


def _flow(one: Demand, divided: Divided) -> Row:
    share, met, short = (float(column[one.index]) for column in (divided.share, divided.met, divided.short))
    own, bound = one.promise.own, one.promise.bound
    ceiling = min((limit.ceiling for limit in (own, bound) if limit is not None and limit.ceiling), default=0.0)
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
        "met": met,
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


def _greatest(numbers: FloatArray) -> IntArray:
    """Where the greatest are, all or :data:`MOST`; in their order, or if there are more the greatest first."""
    if len(numbers) <= MOST:
        return np.arange(len(numbers))
    least = np.partition(numbers, len(numbers) - MOST)[len(numbers) - MOST]
    some = np.flatnonzero(numbers >= least)
    return some[np.argsort(-numbers[some], kind="stable")][:MOST]


def _finite(number: float) -> float:
    return number if math.isfinite(number) else 0.0
