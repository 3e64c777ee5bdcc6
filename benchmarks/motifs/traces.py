"""Synthetic traces of opens with a given popularity, temporal locality and sizes, each from a seed.

An open repeats one of the opens right before it (temporal locality) with a given probability; otherwise its item
is drawn by popularity, which follows Zipf's law.  Sizes are log-normal.  Items without an open do not
exist: the bytes of a trace are those of the items in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class Locality:
    """The parameters of a trace.

    :param repeats: the probability that an open repeats an earlier one
    :param distance: opens between the two, on the average; geometric
    :param zipf: the exponent of the popularity
    :param items: that popularity chooses from
    :param median: bytes of an item
    :param sigma: of the logarithm of sizes
    """

    name: str
    repeats: float
    distance: int = 30
    zipf: float = 0.9
    items: int = 20_000
    median: int = 64 << 10
    sigma: float = 1.5


@dataclass(frozen=True, slots=True)
class Trace:
    """Opens by slot, and the bytes of each slot; a slot without an open has none."""

    opens: Sequence[int]
    sizes: Sequence[int]


def make_trace(locality: Locality, opens: int, seed: int) -> Trace:
    """Return the same trace for the same arguments.

    :param opens: their number
    """
    random = np.random.default_rng(seed)
    popularity = np.cumsum(np.arange(1, locality.items + 1) ** -locality.zipf)
    drawn = np.searchsorted(popularity, random.random(opens) * popularity[-1]).tolist()
    repeated = (random.random(opens) < locality.repeats).tolist()
    distances = random.geometric(1 / locality.distance, opens).tolist()
    trace: list[int] = []
    for place, slot in enumerate(drawn):
        again = repeated[place] and distances[place] <= place
        trace.append(trace[place - distances[place]] if again else slot)
    sizes = np.maximum(1, random.lognormal(np.log(locality.median), locality.sigma, locality.items)).astype(np.int64)
    present = np.bincount(trace, minlength=locality.items) > 0
    return Trace(trace, np.where(present, sizes, 0).tolist())
