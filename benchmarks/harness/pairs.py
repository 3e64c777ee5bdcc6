"""Arithmetic on paired measurements.

A *cycle* is one block of requests against each instance, one right after the other.  Machines drift
between cycles and hardly within one, so only ratios within a cycle are compared, and the
median is taken.  Two plain instances in each cycle show the meaning of a ratio.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

#: The instances of a cycle: with Sluice, without, and without once more.
SLUICE, PLAIN, TWIN = "sluice", "plain", "twin"
INSTANCES = (SLUICE, PLAIN, TWIN)
#: Orders of start: of identical instances the one that was started earlier is a little slower.
ORDERS = ((SLUICE, PLAIN, TWIN), (TWIN, PLAIN, SLUICE), (PLAIN, SLUICE, TWIN))

Cycle = Mapping[str, float]


def quantile(values: Sequence[float], fraction: float) -> float:
    """The smallest value that at least ``fraction`` of ``values`` do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(fraction * len(ordered)) - 1)]


@dataclass(frozen=True, slots=True)
class Comparison:
    """``ratio`` is with Sluice to plain, ``twins`` plain to plain, both medians over the cycles.

    ``band`` is the factor by which nine in ten single pairs of plain instances differ at most.
    """

    ratio: float
    twins: float
    band: float
    low: float
    high: float
    medians: Mapping[str, float]
    cycles: int

    def beside(self) -> str:
        """The figures needed to interpret the ratio."""
        return f"plain/plain {self.twins:.3f}, half of the pairs {self.low:.3f}..{self.high:.3f}"

    def milliseconds(self, digits: int = 1) -> str:
        """The medians of all instances, which are in seconds, as milliseconds."""
        return " / ".join(f"{self.medians[name] * 1e3:.{digits}f}" for name in INSTANCES) + " ms"

    def in_band(self, more_is_better: bool = False) -> bool:
        """True unless Sluice is worse than plain by more than plain differs from plain."""
        return self.ratio >= 1 / self.band if more_is_better else self.ratio <= self.band

    def band_text(self, more_is_better: bool = False) -> str:
        """The worse edge of the band as a target."""
        return f"≥ {1 / self.band:.3f} (band)" if more_is_better else f"≤ {self.band:.3f} (band)"


def compare(cycles: Sequence[Cycle]) -> Comparison:
    """Ratios out of at least one cycle; each compares Sluice with both plain instances."""
    ratios = [cycle[SLUICE] / cycle[other] for cycle in cycles for other in (PLAIN, TWIN)]
    twins = [cycle[TWIN] / cycle[PLAIN] for cycle in cycles]
    return Comparison(
        ratio=statistics.median(ratios),
        twins=statistics.median(twins),
        band=math.exp(quantile([abs(math.log(one)) for one in twins], 0.9)),
        low=quantile(ratios, 0.25),
        high=quantile(ratios, 0.75),
        medians={name: statistics.median(cycle[name] for cycle in cycles) for name in INSTANCES},
        cycles=len(cycles),
    )


def rotated(number: int) -> tuple[str, ...]:
    """The order of cycle ``number``: each instance is first equally often, and each before each other."""
    turn = number % 3
    order = INSTANCES[turn:] + INSTANCES[:turn]
    return order if number // 3 % 2 == 0 else order[::-1]
