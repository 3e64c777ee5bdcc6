"""Places the rates of flows on nodes: near the weights, and within the capacities.

Iterative proportional fitting.  Each node has a scale, at most 1, and a flow is split among its nodes in proportion to
weight × scale.  The scale of an overloaded node gets smaller, that of a node with free capacity greater again.  So a
flow leaves a full node in proportion, as far as it has other nodes, and nothing jumps from round to round.  What cannot
leave is then cut in proportion on each node that is still overloaded.

The parts of a side are sorted first, so that sums over flows and over nodes are fast.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from sluice_actors.bandwidth.arrays import BoolArray, FloatArray, IntArray
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


#: The rounds of fitting on one side: at most, at least, and the work (rounds × parts) above which there are fewer.
MOST_ROUNDS: Final = 400
LEAST_ROUNDS: Final = 24
WORK: Final = 5_000_000
#: The greatest factor by which a node's scale changes in one round, and its least value.
STEP: Final = 4.0
LEAST_SCALE: Final = 1e-280
#: Fitted when no overload exceeds this part of a capacity, and no node with a reduced scale has this much room.
EXACT: Final = 1e-4
#: The rounds end when none changes the payload of any flow by this part of its target.
STILL: Final = 2e-6


class PlacedRates(NamedTuple):
    """(nodes,) ``scale``, (parts,) ``rates`` within the capacities, and (flows,) payload that these carry."""

    scale: FloatArray
    rates: FloatArray
    carried: FloatArray


def round_limit(parts: int, most: int = MOST_ROUNDS, least: int = LEAST_ROUNDS) -> int:
    """How many rounds may be spent on ``parts`` parts."""
    return int(min(max(WORK // max(parts, 1), least), most))


def place_rates(place: SideParts, target: FloatArray, scale: FloatArray | None = None) -> PlacedRates:
    """Place (flows,) ``target`` bytes per second of payload, beginning with (nodes,) ``scale``."""
    scale = np.ones(len(place.capacity)) if scale is None else scale
    bytes_here = target * place.copies
    before = np.zeros_like(target)
    wanted = np.maximum(target, 1e-300)
    for _ in range(round_limit(len(place.flow))):
        rates = place.split(scale) * bytes_here[place.flow]
        ratio = capacity_ratios(place.capacity, place.per_node(rates))
        if not misfit_nodes(scale, ratio).any():
            break
        kept = rates * np.minimum(ratio, 1.0)[place.node]
        carried = carried_payload(place, kept)
        if np.all(np.abs(np.minimum(carried, target) - before) <= STILL * wanted):
            break
        before = np.minimum(carried, target)
        scale = rescale(scale, ratio)
    rates = rates * np.minimum(ratio, 1.0)[place.node]
    return PlacedRates(scale, rates, np.minimum(carried_payload(place, rates), target))


def capacity_ratios(capacity: FloatArray, load: FloatArray) -> FloatArray:
    """(nodes,) capacity / load; inf where there is no load."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = capacity / load
    return np.where(load > 0, ratio, np.inf)


def misfit_nodes(scale: FloatArray, ratio: FloatArray) -> BoolArray:
    """(nodes,) true for overloaded nodes, and for those with a smaller scale than they need."""
    found: BoolArray = (ratio < 1 - EXACT) | ((scale < 1) & (ratio > 1 + EXACT))
    return found


def rescale(scale: FloatArray, ratio: FloatArray) -> FloatArray:
    """(nodes,) the scales of the next round."""
    return np.clip(scale * np.clip(ratio, 1 / STEP, STEP), LEAST_SCALE, 1.0)


def carried_payload(place: SideParts, rates: FloatArray) -> FloatArray:
    """(flows,) payload that (parts,) ``rates`` carry; inf for flows without parts on this side."""
    return place.per_flow(rates) / place.copies + place.absent()


def trim_to_share(place: SideParts, rates: FloatArray, share: FloatArray) -> FloatArray:
    """(parts,) ``rates``, cut in proportion to what carries (flows,) ``share``."""
    now = carried_payload(place, rates)
    with np.errstate(divide="ignore", invalid="ignore"):
        factor = np.where(now > share, share / now, 1.0)
    return rates * factor[place.flow]
