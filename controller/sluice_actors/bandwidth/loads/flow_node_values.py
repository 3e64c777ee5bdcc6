"""A number for each flow-node that is remembered from one round to the next, such as the rate assigned last."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from sluice_actors.bandwidth.arrays import FloatArray, IntArray
from sluice_actors.bandwidth.loads.flow_index import METHOD_SIDES, flow_node_keys, renumber, split_keys


@dataclass(slots=True)
class FlowNodeValues:
    """A map in two arrays: ``keys`` of flow-nodes (see ``flow_index``), sorted, and the value of each."""

    keys: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    values: FloatArray = field(default_factory=lambda: np.empty(0))

    @classmethod
    def from_unsorted(cls, keys: IntArray, values: FloatArray) -> FlowNodeValues:
        """Build from keys in any order, each of them once."""
        order = np.argsort(keys)
        return cls(keys[order], values[order])

    def __len__(self) -> int:
        return len(self.keys)

    def get(self, keys: IntArray, missing: float) -> FloatArray:
        """The value of each of ``keys``, or ``missing``."""
        if not len(self.keys):
            return np.full(len(keys), missing)
        at = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[at] == keys, self.values[at], missing)

    def renumber(self, moved: IntArray) -> FlowNodeValues:
        """The same after ``FlowIndex.keep``, whose answer ``moved`` is."""
        ids, flow_sides = split_keys(self.keys)
        stay = moved[flow_sides // METHOD_SIDES] >= 0
        return FlowNodeValues(
            flow_node_keys(ids[stay], renumber(flow_sides[stay], METHOD_SIDES, moved)), self.values[stay]
        )
