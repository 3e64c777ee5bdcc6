"""How a flow's share is split among its nodes: a weight for each, any number above 0.

On the side where Sluice throttles, the share is split by where the flow's transfers are: bytes follow the share, and
would only repeat the last split.  On the other side it is split by where its bytes are, because objects do not move.

Clients choose a proxy, and their transfers stay there; the mean number over some seconds counts.  At an object server
transfers accumulate because it is slow: the next request of a client goes to any server, so transfers pile up where the
share is too small.  A share in proportion to their mean follows too late there and oscillates; the root of their number
in the last second is stable (ADR 0033).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Self

import numpy as np

from sluice_actors.bandwidth.arrays import FloatArray, IntArray
from sluice_actors.bandwidth.fairness.water_filling import water_fill_groups
from sluice_actors.bandwidth.loads.flow_index import FlowNodeValues
from sluice_actors.bandwidth.loads.flow_stats import FlowStats

#: Bytes of one chunk; a flow that is nearly idle may always move this many.
CHUNK: Final = 65536.0
#: A flow that moves less than it may gets what it moves times this, so that it can grow.
GROWTH_ROOM: Final = 1.25
#: Mean number of transfers held back from which a flow counts as waiting.
MIN_WAITING: Final = 0.05
SMALL_WEIGHT: Final = 0.02
#: The weight at an object server is the number of its transfers to this power: a bit more than the root.
_EXPONENT: Final = 0.6
#: An object server where a flow has no transfer at the moment counts as this part of the flow's mean.
_NONE: Final = 0.05


@dataclass(slots=True)
class FlowParts:
    """The parts of ``count`` flows on one side: a part is one flow on one node.

    :func:`set_throttled_weights` and :func:`set_unthrottled_weights` set ``weight``.
    """

    count: int
    flow: IntArray  #: (parts,) the index of the flow, sorted
    node: IntArray  #: (parts,) the position of the node in ``LoadTable.nodes``
    keys: IntArray  #: (parts,) as of ``LoadTable.keys``
    stats: FlowStats  #: a column for each part
    weight: FloatArray  #: (parts,)

    @classmethod
    def none(cls, count: int) -> Self:
        """Flows that have no part on this side."""
        nothing = np.empty(0, dtype=np.intp)
        return cls(count, nothing, nothing, nothing, FlowStats.empty(), np.empty(0))

    def sums(self, values: FloatArray) -> FloatArray:
        """(flows,) sums of (parts,) ``values``."""
        return np.bincount(self.flow, values, minlength=self.count).astype(np.float64, copy=False)

    def nodes_of(self, flow: int) -> IntArray:
        """The nodes of one flow."""
        return self.node[slice(*np.searchsorted(self.flow, (flow, flow + 1)).tolist())]

    def portions(self) -> FloatArray:
        """(parts,) weights that add up to 1 for each flow."""
        return self.weight / self.sums(self.weight)[self.flow]


def set_throttled_weights(parts: FlowParts, piled: bool, assigned: FloatArray, before: FlowNodeValues) -> None:
    """Weigh the parts of the side where bytes are held back.

    :param piled: transfers pile up on slow nodes of this side
    :param assigned: (parts,) bytes per second that each was allowed in the last second, infinite if unknown
    :param before: the portion of its flow that each part had in the last second
    """
    presence = parts.stats.presence
    transfers, moved = parts.stats.mean_open * presence, parts.stats.mean_moved * presence
    weights = _piled(parts, presence) if piled else _mixed(parts, transfers, moved)
    parts.weight = _at_least(parts, _without_idle(parts, weights, assigned, before))


def set_unthrottled_weights(parts: FlowParts) -> None:
    """Weigh the parts of the other side."""
    presence = parts.stats.presence
    transfers, moved = parts.stats.mean_open * presence, parts.stats.mean_moved * presence
    parts.weight = _at_least(parts, _mixed(parts, moved, transfers))


def _at_least(parts: FlowParts, weights: FloatArray) -> FloatArray:
    """A part weighs at least a thousandth of the heaviest of its flow."""
    most = np.zeros(parts.count)
    np.maximum.at(most, parts.flow, weights)
    least = np.where(most > 0, 1e-3 * most, 1.0)
    return np.maximum(weights, least[parts.flow])


def _piled(parts: FlowParts, presence: FloatArray) -> FloatArray:
    """By the transfers of the last second, less than in proportion."""
    count = parts.sums(np.ones(len(parts.flow)))
    mean = parts.sums(parts.stats.open) / np.maximum(count, 1)
    return ((parts.stats.open + _NONE * mean[parts.flow]) * presence) ** _EXPONENT


def _mixed(parts: FlowParts, first: FloatArray, second: FloatArray) -> FloatArray:
    """In proportion to ``first``, and a little to ``second`` for parts where ``first`` is 0."""
    one, two = (np.where(sums == 0, 1.0, sums) for sums in (parts.sums(first), parts.sums(second)))
    return first / one[parts.flow] + SMALL_WEIGHT * second / two[parts.flow]


def _without_idle(parts: FlowParts, weights: FloatArray, assigned: FloatArray, before: FlowNodeValues) -> FloatArray:
    """Limit parts that do not move their allowed rate to their current rate and room to grow.

    When nodes are full a part does not get exactly the portion of its weight, so its last portion is corrected.
    """
    stats, last = parts.stats, before.get(parts.keys, math.nan)
    takes = np.maximum(stats.moved, stats.mean_moved) * GROWTH_ROOM + CHUNK
    waits = np.maximum(stats.waiting, stats.mean_waiting) > MIN_WAITING
    with np.errstate(divide="ignore", invalid="ignore"):
        limits = np.where(waits | np.isnan(last), np.inf, last * takes / assigned)
    several = parts.sums(np.ones(len(parts.flow))) > 1
    some = parts.sums(np.isinf(limits)) > 0
    given = water_fill_groups(parts.flow, weights, limits, several & some)
    return np.where((several & ~some)[parts.flow], limits, np.where(several[parts.flow], given, weights))
