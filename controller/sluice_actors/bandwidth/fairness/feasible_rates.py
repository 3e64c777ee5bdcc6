"""Rates within the capacities of nodes, and how what is still free is given to flows that can use it.

In each round nodes offer their free capacity, and a flow takes the smaller offer of both sides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from sluice_actors.bandwidth.arrays import FloatArray, IntArray
from sluice_actors.bandwidth.fairness.parts import SideParts
from sluice_actors.bandwidth.fairness.placement import carried_payload, round_limit, trim_to_share

ROUNDS: Final = 40
LEAST_ROUNDS: Final = 10
#: The rounds end when one gives less than this part of all rates.
STILL: Final = 1e-6


@dataclass(slots=True)
class FeasibleRates:
    """(flows,) ``share`` and (parts,) ``rates`` on each of both sides, always within the capacities."""

    sides: Sequence[SideParts]
    share: FloatArray
    rates: Sequence[FloatArray]

    @classmethod
    def within(cls, sides: Sequence[SideParts], rates: Sequence[FloatArray], most: FloatArray) -> FeasibleRates:
        """What both sides carry of ``rates``, at most (flows,) ``most`` of each flow."""
        share = np.minimum(most, np.minimum(*map(carried_payload, sides, rates)))
        return cls(sides, share, [trim_to_share(*each, share) for each in zip(sides, rates, strict=True)])

    def free_capacity(self) -> list[FloatArray]:
        """(nodes,) free capacity, of both sides."""
        both = zip(self.sides, self.rates, strict=True)
        return [np.maximum(place.capacity - place.per_node(given), 0.0) for place, given in both]

    def fill(self, most: FloatArray, pull: FloatArray, tenant: IntArray, bound: FloatArray) -> None:
        """Give free capacity away until (flows,) ``most`` and (tenants,) ``bound`` are reached or paths are full.

        :param pull: (flows,) nodes offer their free capacity in proportion to it
        """
        for _ in range(round_limit(max(len(one.flow) for one in self.sides), ROUNDS, LEAST_ROUNDS)):
            lacks = np.maximum(most - self.share, 0.0)
            left = np.maximum(bound - np.bincount(tenant, self.share, minlength=len(bound)), 0.0)
            lacks = np.minimum(lacks, left[tenant])
            pulls = np.where(lacks > 1e-9 * most, pull, 0.0)
            if not pulls.any():
                return
            offers = [_offers(*one, pulls) for one in zip(self.sides, self.free_capacity(), strict=True)]
            more = np.minimum(np.minimum(*map(carried_payload, self.sides, offers)), lacks)
            sums = np.bincount(tenant, more, minlength=len(bound))
            more *= np.divide(left, sums, out=np.ones_like(sums), where=sums > left)[tenant]
            if more.sum() <= STILL * self.share.sum():
                return
            self.share = self.share + more
            self.rates = [
                given + trim_to_share(place, offer, more)
                for place, given, offer in zip(self.sides, self.rates, offers, strict=True)
            ]


def _offers(place: SideParts, room: FloatArray, pull: FloatArray) -> FloatArray:
    """(parts,) the free capacity of nodes by weight × pull; bounded so that rates stay finite."""
    wishes = place.weight * (pull * place.copies)[place.flow]
    sums = place.per_node(wishes)
    finite = np.where(np.isfinite(room), room, np.finfo(np.float64).max ** 0.5)
    return wishes * np.where(sums > 0, finite / np.where(sums > 0, sums, 1.0), 0.0)[place.node]
