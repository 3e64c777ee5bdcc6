"""The stats of all nodes beside each other, as one round of the allocation sees them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Self

import numpy as np

from sluice_actors.bandwidth.arrays import FloatArray, IntArray
from sluice_actors.bandwidth.loads.flow_index import METHOD_SIDES, FlowIndex, flow_node_keys, method_side
from sluice_actors.bandwidth.loads.flow_stats import FlowStats
from sluice_actors.bandwidth.loads.node_loads import Node, NodeLoads


@dataclass(frozen=True, slots=True)
class LoadTable:
    """The columns of all nodes, one after the other."""

    flow_index: FlowIndex
    nodes: tuple[Node, ...]  #: sorted by name
    ids: IntArray  #: (nodes,) their ids
    node: IntArray  #: (stats,) the position in ``nodes`` of each entry of ``stats``
    stats: FlowStats
    _indexes: dict[tuple[str, str], IntArray] = field(default_factory=dict, compare=False)

    @classmethod
    def from_loads(cls, loads: NodeLoads, without: Collection[str] = ()) -> Self:
        """Build the table of this moment.

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
        found = self._indexes.get((method, side))
        if found is None:
            here = self.stats.flow_sides % METHOD_SIDES == method_side(method, side)
            found = self._indexes[method, side] = np.flatnonzero(here)
        return found

    def per_node(self, method: str, side: str, values: FloatArray) -> FloatArray:
        """(nodes,) sums of (stats,) ``values`` of one method on one side."""
        index = self.indexes(method, side)
        return np.bincount(self.node[index], values[index], minlength=len(self.nodes)).astype(np.float64)

    def serving(self, side: str) -> IntArray:
        """Positions of the nodes that serve ``side``."""
        return np.array([position for position, node in enumerate(self.nodes) if node.serves(side)], dtype=np.intp)

    def keys(self, node: IntArray, flow_sides: IntArray) -> IntArray:
        """Keys of flow-nodes, which stay the same in all rounds as long as flows keep their numbers.

        :param node: positions in ``nodes``
        :param flow_sides: of the same length
        """
        return flow_node_keys(self.ids[node], flow_sides)
