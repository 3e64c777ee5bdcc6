"""How a flow's share is split among the places where it is: a weight for each, any number above 0.

Where its bytes are held back, the share is split by where its transfers are: bytes follow the share, and would only
repeat the split of before.  On the other side it is split by where its bytes are: objects lie where they lie.

Transfers are at a proxy because clients chose it, and stay; their mean over some seconds counts.  At an object server
they are because it is slow: the next request of each client goes to another, so they pile up where the share is too
small.  There a share in proportion to a mean of them comes too late and swings; the root of how many there were in
the last second is what holds still (ADR 0033).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Self

import numpy as np

from sluice_actors.bandwidth.arrays import FloatArray, IntArray
from sluice_actors.bandwidth.fairness.water_filling import water_fill_groups
from sluice_actors.bandwidth.loads.flow_node_values import Spots
from sluice_actors.bandwidth.loads.flow_stats import Traces

#: One chunk, which who moves next to nothing must be free to move.
CHUNK: Final = 65536.0
#: Room to grow of those that take less than they may.
ROOM: Final = 1.25
#: Transfers held back, as a mean over time, from which a flow counts as waiting.
WAITS: Final = 0.05
LITTLE: Final = 0.02
#: What transfers at an object server pull: a bit more than their root.
_ROOT: Final = 0.6
#: The part of the mean that object servers where there happens to be none count as.
_NONE: Final = 0.05


@dataclass(slots=True)
class Parts:
    """Flows on one side, each on one node or several: ``flow`` (sorted) and ``node`` are where these stand in theirs.

    ``spots`` as of ``Table.spots``; ``weight`` is said by :func:`weigh_held` and :func:`weigh_free`.
    """

    count: int
    flow: IntArray
    node: IntArray
    spots: IntArray
    traces: Traces
    weight: FloatArray

    @classmethod
    def none(cls, count: int) -> Self:
        """Of so many flows no part."""
        nothing = np.empty(0, dtype=np.intp)
        return cls(count, nothing, nothing, nothing, Traces.empty(), np.empty(0))

    def sums(self, values: FloatArray) -> FloatArray:
        """(flows,) of (parts,) ``values``."""
        return np.bincount(self.flow, values, minlength=self.count).astype(np.float64, copy=False)

    def nodes_of(self, flow: int) -> IntArray:
        """The nodes that one of the flows is on."""
        return self.node[slice(*np.searchsorted(self.flow, (flow, flow + 1)).tolist())]

    def portions(self) -> FloatArray:
        """(parts,) weights that add up to 1 for each flow."""
        return self.weight / self.sums(self.weight)[self.flow]


def weigh_held(parts: Parts, piled: bool, assigned: FloatArray, before: Spots) -> None:
    """Say what parts weigh where their bytes are held back.

    :param piled: transfers pile up here where it is slow
    :param assigned: (parts,) what each might move in the last second, infinite where that is not known
    :param before: the part of its flow that each spot was to be in the last second
    """
    presence = parts.traces.presence
    transfers, moved = parts.traces.transfers * presence, parts.traces.bytes * presence
    weights = _piled(parts, presence) if piled else _mixed(parts, transfers, moved)
    parts.weight = _at_least(parts, _without_idle(parts, weights, assigned, before))


def weigh_free(parts: Parts) -> None:
    """Say it for the other side."""
    presence = parts.traces.presence
    transfers, moved = parts.traces.transfers * presence, parts.traces.bytes * presence
    parts.weight = _at_least(parts, _mixed(parts, moved, transfers))


def _at_least(parts: Parts, weights: FloatArray) -> FloatArray:
    """No part is nothing."""
    most = np.zeros(parts.count)
    np.maximum.at(most, parts.flow, weights)
    least = np.where(most > 0, 1e-3 * most, 1.0)
    return np.maximum(weights, least[parts.flow])


def _piled(parts: Parts, presence: FloatArray) -> FloatArray:
    """By the transfers of the last second, with less force than in proportion."""
    count = parts.sums(np.ones(len(parts.flow)))
    mean = parts.sums(parts.traces.open) / np.maximum(count, 1)
    return ((parts.traces.open + _NONE * mean[parts.flow]) * presence) ** _ROOT


def _mixed(parts: Parts, first: FloatArray, second: FloatArray) -> FloatArray:
    """The proportions of the first, with a little of the second, for what the first does not see."""
    one, two = (np.where(sums == 0, 1.0, sums) for sums in (parts.sums(first), parts.sums(second)))
    return first / one[parts.flow] + LITTLE * second / two[parts.flow]


def _without_idle(parts: Parts, weights: FloatArray, assigned: FloatArray, before: Spots) -> FloatArray:
    """Leave to parts that do not take what they may only what they take, and room to grow.

    What a part got is not exactly what its weight said, when nodes are full; so its last weight is mended.
    """
    traces, last = parts.traces, before.get(parts.spots, math.nan)
    takes = np.maximum(traces.moved, traces.bytes) * ROOM + CHUNK
    waits = np.maximum(traces.waiting, traces.held) > WAITS
    with np.errstate(divide="ignore", invalid="ignore"):
        limits = np.where(waits | np.isnan(last), np.inf, last * takes / assigned)
    several = parts.sums(np.ones(len(parts.flow))) > 1
    some = parts.sums(np.isinf(limits)) > 0
    given = water_fill_groups(parts.flow, weights, limits, several & some)
    return np.where((several & ~some)[parts.flow], limits, np.where(several[parts.flow], given, weights))
