"""The rows of the report of one round.

Lists are bounded: each method has an equal part of a list's rows, and rows that one does not need go to the others.
Within a method, flows with objectives come first, then the busiest.  Where the list of flows has room left, idle floors
are reported too (``idle_floors``).  The number of omitted rows is reported.  Measured rates come only from nodes that
reported a moment ago.

Numbers only, so that it is JSON: a ceiling or capacity of 0 means none or unknown, a negative share means no limit.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any, Final, TypeVar

import numpy as np

from sluice_actors.bandwidth.arrays import BoolArray, FloatArray, IntArray
from sluice_actors.bandwidth.fairness.water_filling import water_fill
from sluice_actors.bandwidth.loads.flow_index import DEVICES, METHOD_SIDES, FlowNodeValues, method_side
from sluice_actors.bandwidth.loads.node_loads import LoadTable, Node
from sluice_actors.bandwidth.methods.allocation import UNTHROTTLED, MethodAllocation
from sluice_actors.bandwidth.methods.demand import FlowDemand
from sluice_core.messages.bandwidth import METHODS, SIDES, Load, MovedObject, Objective

#: Rows of each list.
MAX_ROWS: Final[Mapping[str, int]] = {"flows": 10_000, "nodes": 10_000, "parts": 4_000, "objects": 2_000}
#: A floor that lacks less than this part of itself is met.
TOLERANCE: Final = 0.01
#: Greater than every rate; puts a row first.
_FIRST: Final = 1e18
T = TypeVar("T")
Row = dict[str, Any]
Allocations = Mapping[str, MethodAllocation]
#: (side, method, name of the node) → capacity in bytes per second, and its source.
NodeCapacityTable = Mapping[tuple[str, str, str], tuple[float, str]]


def flow_rows(made: Allocations, heard: BoolArray) -> tuple[list[Row], int]:
    """Rows of active flows, and how many are omitted.

    :param heard: (nodes,) true for those that reported a moment ago
    """
    several = []
    for divided in made.values():
        here = divided.demands.throttled
        measured = here.sums(here.stats.moved * heard[here.node]).tolist()
        several.append([(one, divided, measured[one.index]) for one in divided.demands.flows])
    shown, omitted = _busiest(several, MAX_ROWS["flows"], lambda row: (not row[0].objectives.is_empty, row[0].moved))
    return [_flow(*row) for row in shown], omitted


def node_rows(table: LoadTable, made: Allocations, known: NodeCapacityTable, heard: BoolArray) -> tuple[list[Row], int]:
    """Rows of nodes (measured, assigned, capacity), and how many are omitted."""
    several = []
    for side in SIDES:
        serving = [place for place in table.serving(side).tolist() if heard[place]]
        for method in METHODS:
            measured = table.per_node(method, side, table.stats.moved).tolist()
            assigned = _assigned(table, made.get(method), method_side(method, side))
            rows = []
            for place in serving:
                node = table.nodes[place]
                capacity, source = known[side, method, node.name]
                row = {
                    "node": node.name,
                    "server": node.server,
                    "side": side,
                    "method": method,
                    "capacity": capacity if math.isfinite(capacity) else 0.0,
                    "source": source,
                    "assigned": assigned[place],
                    "measured": measured[place],
                    "at": node.at,
                }
                rows.append((place, row))
            several.append(rows)
    shown, omitted = _busiest(several, MAX_ROWS["nodes"], lambda row: row[1]["measured"])
    return [row for _, row in sorted(shown, key=itemgetter(0))], omitted


def _assigned(table: LoadTable, divided: MethodAllocation | None, sort: int) -> list[float]:
    """(nodes,) bytes per second that the node may move, where that is limited."""
    sums = np.zeros(len(table.nodes))
    for one in () if divided is None else divided.rates:
        which = np.flatnonzero((one.flow_side % METHOD_SIDES == sort) & np.isfinite(one.rate))
        sums += np.bincount(one.node[which], one.rate[which], minlength=len(sums))
    return sums.tolist()


def device_rows(
    table: LoadTable, made: Allocations, assigned: Mapping[str, FlowNodeValues], heard: BoolArray
) -> tuple[list[Row], int]:
    """The bytes that each flow moves on each device, beside its share; and how many rows are left out.

    :param assigned: method → the rate of each spot
    """
    nodes = [place for place in range(len(table.nodes)) if heard[place]]
    reported = [table.nodes[place].rows for place in nodes]
    moved = np.concatenate([np.empty(0), *(one.moved for one in reported)])
    numbers = np.concatenate([np.empty(0, dtype=np.intp), *(one.numbers for one in reported)])
    begins = np.cumsum([0, *(len(one.moved) for one in reported)])
    rows = np.arange(len(moved))
    if len(rows) > MAX_ROWS["parts"]:
        rows = _chosen(
            numbers // DEVICES, moved + np.where(_promised(table, made)[numbers // DEVICES // METHOD_SIDES], _FIRST, 0)
        )
    at = np.searchsorted(begins, rows, side="right") - 1
    numbers, node = numbers[rows], np.array(nodes, dtype=np.intp)[at]
    shares = _shares(table, node, numbers // DEVICES, assigned)
    each = zip(node.tolist(), numbers.tolist(), (rows - begins[at]).tolist(), shares.tolist(), strict=True)
    return [_part(table, *one) for one in each], len(moved) - len(rows)


def _shares(table: LoadTable, node: IntArray, places: IntArray, assigned: Mapping[str, FlowNodeValues]) -> FloatArray:
    """The rate that may be moved at each of ``places`` on its node."""
    keys, methods = table.keys(node, places), places % METHOD_SIDES // len(SIDES)
    shares = np.full(len(places), UNTHROTTLED)
    for number, method in enumerate(METHODS):
        which = np.flatnonzero(methods == number)
        shares[which] = assigned[method].get(keys[which], UNTHROTTLED)
    return np.where(np.isinf(shares), UNTHROTTLED, shares)


def _promised(table: LoadTable, made: Allocations) -> BoolArray:
    """(all flows,) true for those with an objective."""
    promised = np.zeros(len(table.flow_index.flows), dtype=bool)
    of_them = (one.flow for divided in made.values() for one in divided.demands.flows if not one.objectives.is_empty)
    promised[[table.flow_index.number(flow) for flow in of_them]] = True
    return promised


def _chosen(places: IntArray, worth: FloatArray) -> IntArray:
    """Which of the rows at ``places`` are shown: of each method those with the greatest ``worth``."""
    methods = places % METHOD_SIDES // len(SIDES)
    several = [np.flatnonzero(methods == method) for method in range(len(METHODS))]
    shares = _fairly(list(map(len, several)), MAX_ROWS["parts"])
    return np.concatenate([one[_greatest(worth[one], most)] for one, most in zip(several, shares, strict=True)])


def _part(table: LoadTable, place: int, number: int, row: int, share: float) -> Row:
    node = table.nodes[place]
    moved = float(node.rows.moved[row])
    first = number - number % DEVICES
    beside = node.rows.moved[(node.rows.numbers >= first) & (node.rows.numbers < first + DEVICES)]
    if share > 0 and len(beside) > 1:
        total = float(beside.sum())
        share *= moved / total if total else 1.0 / len(beside)
    key = zip(Load._fields, table.flow_index.key(number), strict=False)
    return {"node": node.name, **dict(key), "share": share, "measured": moved}


def object_rows(table: LoadTable, heard: BoolArray) -> tuple[list[Row], int]:
    """Rows of the fastest objects in transfer, and how many are omitted."""
    several: dict[str, list[tuple[Node, MovedObject]]] = {method: [] for method in METHODS}
    for node, lately in zip(table.nodes, heard.tolist(), strict=True):
        for moved in node.objects if lately else ():
            several.setdefault(moved.method, []).append((node, moved))
    shown, omitted = _busiest(list(several.values()), MAX_ROWS["objects"], lambda pair: pair[1].rate)
    shown.sort(key=lambda pair: -pair[1].rate)
    return [{"node": node.name, **moved._asdict()} for node, moved in shown], omitted


def _flow(demand: FlowDemand, divided: MethodAllocation, measured: float) -> Row:
    share, met, short = (float(column[demand.index]) for column in (divided.share, divided.met, divided.short))
    own, bound = demand.objectives.own, demand.objectives.bound
    short = short if short > TOLERANCE * demand.floor else 0.0
    floor = max(demand.floor, demand.promised)
    ceiling = min((limit.ceiling for limit in (own, bound) if limit is not None and limit.ceiling), default=0.0)
    return {
        **demand.flow._asdict(),
        "floor": floor,
        "ceiling": ceiling,
        "share": share if math.isfinite(share) else UNTHROTTLED,
        "measured": measured,
        "waiting": demand.waiting,
        "active": True,
        "met": floor - short if demand.promised else met,
        "short": short,
        "policies": list(demand.objectives.policies),
        **asked_rates(own),
    }


def asked_rates(own: Objective | None) -> dict[str, float]:
    """The rates of a flow's own objective, by the names of a report's fields; empty without an objective."""
    return {} if own is None else {"asked": own.floor, "node_asked": own.node_floor}


def _busiest(several: Sequence[Sequence[T]], most: int, worth: Callable[[T], Any]) -> tuple[list[T], int]:
    """Choose ``most`` rows, of each of ``several`` lists those of greatest worth; and the number of omitted rows."""
    counts = list(map(len, several))
    shown: list[T] = []
    for rows, part in zip(several, _fairly(counts, most), strict=True):
        shown += rows if len(rows) <= part else heapq.nlargest(part, rows, key=worth)
    return shown, sum(counts) - len(shown)


def _greatest(numbers: FloatArray, most: int) -> IntArray:
    """Positions of the ``most`` greatest; in their order if all are chosen, otherwise the greatest first."""
    if len(numbers) <= most:
        return np.arange(len(numbers))
    least = np.partition(numbers, len(numbers) - most)[len(numbers) - most]
    some = np.flatnonzero(numbers >= least)
    return some[np.argsort(-numbers[some], kind="stable")][:most]


def _fairly(counts: Sequence[int], most: int) -> list[int]:
    """The number of rows of each method that are shown, of ``most`` together."""
    if sum(counts) <= most:
        return list(counts)
    return [int(part) for part in water_fill(most, [1.0] * len(counts), [float(count) for count in counts])]
