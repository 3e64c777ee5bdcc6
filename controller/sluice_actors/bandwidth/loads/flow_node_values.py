"""What is remembered of spots (a flow on one side of one node) from one round to the next: a number for each."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from sluice_actors.bandwidth.arrays import FloatArray, IntArray
from sluice_actors.bandwidth.loads.flow_index import KINDS
from sluice_actors.bandwidth.loads.table import apart, renumbered, spots


@dataclass(slots=True)
class Spots:
    """``keys`` (as of ``Table.spots``) are sorted."""

    keys: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    values: FloatArray = field(default_factory=lambda: np.empty(0))

    @classmethod
    def of(cls, keys: IntArray, values: FloatArray) -> Spots:
        """In any order, each key once."""
        order = np.argsort(keys)
        return cls(keys[order], values[order])

    def __len__(self) -> int:
        return len(self.keys)

    def get(self, keys: IntArray, missing: float) -> FloatArray:
        """What each of ``keys`` has, or ``missing``."""
        if not len(self.keys):
            return np.full(len(keys), missing)
        at = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[at] == keys, self.values[at], missing)

    def find(self, key: int) -> float | None:
        """What one key has."""
        at = int(np.searchsorted(self.keys, key))
        return float(self.values[at]) if at < len(self.keys) and self.keys[at] == key else None

    def renumber(self, moved: IntArray) -> Spots:
        """The same after flows were numbered anew."""
        nodes, places = apart(self.keys)
        stay = moved[places // KINDS] >= 0
        return Spots(spots(nodes[stay], renumbered(places[stay], KINDS, moved)), self.values[stay])
