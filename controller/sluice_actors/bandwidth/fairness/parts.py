"""The parts of one side, sorted so that sums over flows and over nodes are fast."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from sluice_actors.bandwidth.arrays import FloatArray, IntArray
from sluice_actors.bandwidth.fairness.problem import Side

#: A part weighs at least this part of the mean over its flow, so that an active flow keeps a little everywhere.
LEAST: Final = 0.01


@dataclass(frozen=True, slots=True)
class SideParts:
    """The parts of a side, sorted by flow; ``weight`` adds up to 1 for each flow."""

    capacity: FloatArray
    flow: IntArray
    node: IntArray
    weight: FloatArray
    copies: FloatArray
    order: IntArray  #: where each part stood in the side
    present: IntArray  #: flows that have parts
    starts: IntArray  #: the first part of each of them

    def per_flow(self, values: FloatArray) -> FloatArray:
        """Sums of (parts,) over each flow; 0 for flows without parts."""
        sums = np.zeros(len(self.copies))
        if len(self.present):
            sums[self.present] = np.add.reduceat(values, self.starts)
        return sums

    def per_node(self, values: FloatArray) -> FloatArray:
        """Sums of (parts,) over each node."""
        return np.bincount(self.node, values, minlength=len(self.capacity)).astype(np.float64, copy=False)

    def split(self, scale: FloatArray) -> FloatArray:
        """(parts,) the portion of its flow on each node when nodes are scaled by (nodes,) ``scale``."""
        pulled = self.weight * scale[self.node]
        sums = self.per_flow(pulled)
        return pulled / np.where(sums > 0, sums, 1.0)[self.flow]

    def absent(self) -> FloatArray:
        """(flows,) inf for flows without parts on this side, which it does not hold back, else 0."""
        missing = np.full(len(self.copies), np.inf)
        missing[self.present] = 0.0
        return missing

    def unsorted(self, values: FloatArray) -> FloatArray:
        """(parts,) ``values`` in the original order of the side."""
        back = np.empty_like(values)
        back[self.order] = values
        return back


def sort_parts(side: Side) -> SideParts:
    """Sort the parts of ``side``, and scale the weights of each flow to a sum of 1."""
    order = np.argsort(side.flow, kind="stable")
    flow = np.asarray(side.flow, dtype=np.intp)[order]
    node = np.asarray(side.node, dtype=np.intp)[order]
    starts = np.flatnonzero(np.diff(flow, prepend=-1))
    capacity = np.maximum(np.asarray(side.capacity, dtype=np.float64), 0.0)
    copies = np.asarray(side.copies, dtype=np.float64)
    ones = np.ones(len(flow))
    made = SideParts(capacity, flow, node, ones, copies, order, flow[starts], starts)
    given = np.asarray(side.weight, dtype=np.float64)[order]
    mean = made.per_flow(given) / np.maximum(made.per_flow(ones), 1.0)
    weight = np.maximum(given, LEAST * np.where(mean > 0, mean, 1.0)[flow])
    weight /= made.per_flow(weight)[flow]
    return SideParts(capacity, flow, node, weight, copies, order, flow[starts], starts)
