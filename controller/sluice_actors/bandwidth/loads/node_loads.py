"""The last reports of each node: bytes and transfers of its flows, and means over the last seconds.

Messages arrive twice, late, out of order or not at all, and the clocks of nodes may be wrong:

* The messages of an agent are ordered by their number since its start.  A message that is not newer than the last one
  is refused.  A start that lies before the known one counts once the known one has been silent for some seconds.
* The age of a message is the time since it arrived here, on this host's monotonic clock.
* An agent that started again is silent until its workers should have reconnected, but on a busy machine some take
  longer.  A flow that seems idle there would lose its share, so the node keeps its last shares for
  :data:`RECONNECT_SECONDS` more.
* A node that falls silent keeps its shares for :data:`FORGET_SECONDS`, unless ``failure_detector`` finds that it
  failed.  A node whose workers have ended loses them at once.

Shares that followed the very last second would oscillate, so weights follow means over some seconds (``flow_stats``).
Where transfers pile up that is too slow, and ``methods.weights`` takes the last second with less force.

A thousand busy nodes report some hundred thousand rows each second, so no row is an object: rows become
columns as they arrive, and a round puts the columns of all nodes beside each other (``LoadTable``).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Self

import numpy as np

from sluice_actors.bandwidth.arrays import FloatArray, IntArray
from sluice_actors.bandwidth.loads.decoder import RowColumns, read_rows
from sluice_actors.bandwidth.loads.flow_index import (
    DEVICES,
    METHOD_SIDES,
    FlowIndex,
    flow_node_keys,
    flow_numbers,
    method_side,
    renumber,
    sides_in,
)
from sluice_actors.bandwidth.loads.flow_stats import MEAN_SECONDS, FlowStats
from sluice_core.messages.bandwidth import SIDES, MovedObject, NodeLoad

#: A report that is older than this many seconds is no longer shown as present.
FRESH_SECONDS: Final = 2.5
#: A node that is silent for this many seconds is forgotten.
FORGET_SECONDS: Final = 30.0
#: After this many seconds of silence another start of an agent counts although its clock says that it was before.
_OTHER_START_SECONDS: Final = 3.0
#: Seconds after the first report of another start of an agent within which its last workers reconnect.
RECONNECT_SECONDS: Final = 2.0
#: Flows that have ended are removed once there are more of them than this, and more than active ones.
_MAX_OVER: Final = 10_000


@dataclass(slots=True)
class DeviceRows:
    """The last second of a node, device by device."""

    numbers: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.intp))  #: (rows,) of ``FlowIndex.row``
    moved: FloatArray = field(default_factory=lambda: np.empty(0))  #: (rows,) bytes


@dataclass(slots=True)
class Node:
    """The last report of one node."""

    name: str
    id: int  #: unique among nodes
    started: float
    number: int
    arrived: float  #: on this host's monotonic clock
    at: float = 0.0
    complete_at: float = -math.inf  #: when all workers are connected again, on this host's monotonic clock
    server: str = ""
    sides: tuple[str, ...] = ()
    served_sides: tuple[str, ...] = ()  #: the sides where it has workers, or had some a moment ago
    capacity: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    stats: FlowStats = field(default_factory=FlowStats.empty)
    rows: DeviceRows = field(default_factory=DeviceRows)
    objects: tuple[MovedObject, ...] = ()

    def serves(self, side: str) -> bool:
        """True when the node has workers of this side, or had some a moment ago."""
        return side in self.served_sides


class NodeLoads:
    """All nodes, by name; ``policies`` maps the index of a storage policy, as text, to its name."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self.policies: dict[str, str] = {}
        self.flow_index = FlowIndex()
        self._ids: dict[str, int] = {}
        #: Messages that arrived twice or late.
        self.repeated = 0
        #: Rows that were not valid.
        self.unsound = 0

    def feed(self, load: NodeLoad, arrived: float) -> bool:
        """Add a report; False when it is not newer than the last one.

        :param arrived: seconds on this host's monotonic clock
        :raises ValueError: when it cannot be unpacked; then nothing changes
        """
        node = self.nodes.get(load.node)
        if node is not None and not _is_newer(load, node, arrived):
            self.repeated += 1
            return False
        columns = read_rows(load.rows, self.flow_index)
        if node is None:
            number = self._ids.setdefault(load.node, len(self._ids))
            node = self.nodes[load.node] = Node(load.node, number, load.started, load.number, arrived)
            seconds = MEAN_SECONDS
        elif load.started != node.started:
            seconds = 1.0  # a gap in the reports does not mean that nothing moved meanwhile
            node.complete_at = arrived + RECONNECT_SECONDS
        else:
            seconds = min(max(float(round(arrived - node.arrived)), 1.0), MEAN_SECONDS)
        node.started, node.number, node.arrived, node.at = load.started, load.number, arrived, load.at
        node.server, node.sides = load.server, load.sides
        node.capacity = _valid_rates(load.capacity)
        self.policies.update(load.policies)
        if load.gone or arrived >= node.complete_at:
            self._update(node, load, columns, seconds)
        node.served_sides = tuple(
            side for side in SIDES if side in node.sides or side in sides_in(node.stats.flow_sides)
        )
        return True

    def forget(self, now: float) -> IntArray | None:
        """Remove the nodes that were silent for long, and the flows that have ended.

        :returns: the result of ``FlowIndex.keep`` if flows were numbered anew, else None
        """
        for name in [name for name, node in self.nodes.items() if now - node.arrived > FORGET_SECONDS]:
            del self.nodes[name]
        if len(self.flow_index.flows) <= _MAX_OVER:
            return None
        nodes = self.nodes.values()
        used = [*(node.stats.flow_sides for node in nodes), *(node.rows.numbers // DEVICES for node in nodes)]
        flows = np.unique(flow_numbers(np.concatenate(used))) if used else np.empty(0, dtype=np.intp)
        if len(self.flow_index.flows) <= _MAX_OVER + 2 * len(flows):
            return None
        moved = self.flow_index.keep(flows)
        for node in nodes:
            node.stats = FlowStats(renumber(node.stats.flow_sides, METHOD_SIDES, moved), node.stats.values)
            node.rows.numbers = renumber(node.rows.numbers, METHOD_SIDES * DEVICES, moved)
        return moved

    def _update(self, node: Node, load: NodeLoad, columns: RowColumns, seconds: float) -> None:
        self.unsound += columns.unsound
        if load.gone:
            node.stats, node.rows, node.objects = FlowStats.empty(), DeviceRows(), ()
            return
        flow_sides, sums = _sum_devices(columns.rows // DEVICES, columns.values)
        sums[2] = np.minimum(sums[2], sums[1])
        node.rows, node.objects = DeviceRows(columns.rows, columns.values[0]), load.objects
        node.stats = node.stats.advanced(flow_sides, sums, seconds, node.sides)


def _sum_devices(flow_sides: IntArray, values: FloatArray) -> tuple[IntArray, FloatArray]:
    """Sums of (3, rows) ``values`` over the devices of each flow-side; the flow-sides are sorted and unique."""
    order = np.argsort(flow_sides, kind="stable")
    flow_sides, values = flow_sides[order], values[:, order]
    first = np.ones(len(flow_sides), dtype=bool)
    np.not_equal(flow_sides[1:], flow_sides[:-1], out=first[1:])
    if not first.all():
        begins = np.flatnonzero(first)
        flow_sides, values = flow_sides[begins], np.add.reduceat(values, begins, axis=1)
    return flow_sides, values


def _is_newer(load: NodeLoad, node: Node, arrived: float) -> bool:
    if load.started == node.started:
        return load.number > node.number
    return load.started > node.started or arrived - node.arrived > _OTHER_START_SECONDS


def _valid_rates(capacity: Any) -> dict[str, dict[str, float]]:
    """The valid entries of ``capacity``: side → method → bytes per second."""
    valid: dict[str, dict[str, float]] = {}
    for side in SIDES:
        rates = capacity.get(side) if isinstance(capacity, Mapping) else None
        for method, rate in rates.items() if isinstance(rates, Mapping) else ():
            if isinstance(rate, int | float) and math.isfinite(rate) and rate > 0:
                valid.setdefault(side, {})[method] = float(rate)
    return valid


@dataclass(frozen=True, slots=True)
class LoadTable:
    """The columns of all nodes, one after the other, as one round of the allocation sees them."""

    flow_index: FlowIndex
    nodes: tuple[Node, ...]  #: sorted by name
    ids: IntArray  #: (nodes,) their ids
    node: IntArray  #: (stats,) the position in ``nodes`` of each entry of ``stats``
    stats: FlowStats
    _indexes: dict[tuple[str, str], IntArray] = field(default_factory=dict, compare=False)

    @classmethod
    def from_loads(cls, loads: NodeLoads, without: Collection[str] = ()) -> Self:
        """Build the table of the current round.

        :param without: names of nodes that are left out
        """
        known = (node for node in loads.nodes.values() if node.name not in without)
        nodes = tuple(sorted(known, key=lambda node: node.name))
        flow_sides = [node.stats.flow_sides for node in nodes]
        stats = FlowStats.empty()
        if nodes:
            stats = FlowStats(np.concatenate(flow_sides), np.concatenate([node.stats.values for node in nodes], axis=1))
        ids = np.array([node.id for node in nodes], dtype=np.intp)
        return cls(loads.flow_index, nodes, ids, np.repeat(np.arange(len(nodes)), list(map(len, flow_sides))), stats)

    def indexes(self, method: str, side: str) -> IntArray:
        """Positions in ``stats`` of the entries of one method on one side."""
        places = self._indexes.get((method, side))
        if places is None:
            here = self.stats.flow_sides % METHOD_SIDES == method_side(method, side)
            places = self._indexes[method, side] = np.flatnonzero(here)
        return places

    def per_node(self, method: str, side: str, values: FloatArray) -> FloatArray:
        """(nodes,) sums of (stats,) ``values`` of one method on one side."""
        index = self.indexes(method, side)
        return np.bincount(self.node[index], values[index], minlength=len(self.nodes)).astype(np.float64)

    def serving(self, side: str) -> IntArray:
        """Positions of the nodes that serve ``side``."""
        return np.array([position for position, node in enumerate(self.nodes) if node.serves(side)], dtype=np.intp)

    def keys(self, node: IntArray, flow_sides: IntArray) -> IntArray:
        """Keys of flow-nodes, which stay the same in all rounds while flows keep their numbers.

        :param node: positions in ``nodes``
        :param flow_sides: of the same length
        """
        return flow_node_keys(self.ids[node], flow_sides)
