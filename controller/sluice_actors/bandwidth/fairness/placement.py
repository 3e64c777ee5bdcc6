"""Places the rates of flows on nodes: near the weights, and within the capacities.

Iterative proportional fitting.  Each node has a scale, at most 1, and a flow is split among its nodes in proportion to
weight × scale.  The scale of an overloaded node gets smaller, that of a node with free capacity greater again.  So a
flow leaves a full node in proportion, as far as it has other nodes, and nothing jumps from round to round.  What cannot
leave is then cut in proportion on each node that is still overloaded.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from sluice_actors.bandwidth.arrays import BoolArray, FloatArray
from sluice_actors.bandwidth.fairness.parts import SideParts

#: Rounds of fitting on one side, and the work (rounds × parts) above which there are fewer.
MOST_ROUNDS: Final = 400
LEAST_ROUNDS: Final = 24
WORK: Final = 5_000_000
#: A node's scale changes at most so much in one round, and is never less than this.
STEP: Final = 4.0
LEAST_SCALE: Final = 1e-280
#: Fitted when no node carries more than this above its capacity, and none that was relieved has so much room.
EXACT: Final = 1e-4
#: The rounds end when none brings any flow so much of its target.
STILL: Final = 2e-6


class Placement(NamedTuple):
    """(nodes,) ``scale``, (parts,) ``rates`` within the capacities, and (flows,) payload that these carry."""

    scale: FloatArray
    rates: FloatArray
    carried: FloatArray


def round_limit(parts: int, most: int = MOST_ROUNDS, least: int = LEAST_ROUNDS) -> int:
    """How many rounds may be spent on ``parts`` parts."""
    return int(min(max(WORK // max(parts, 1), least), most))


def place_rates(place: SideParts, target: FloatArray, scale: FloatArray | None = None) -> Placement:
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
    return Placement(scale, rates, np.minimum(carried_payload(place, rates), target))


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
