"""The totals of one path, as the meter and its helpers share them."""

from __future__ import annotations

from typing import Final

from sluice_core.metrics.sketch import Sketch

#: Columns that a worker can count at most.
MOST_COLUMNS: Final = 256
#: Where cells that are gone count.
_NOWHERE: Final[list[float]] = [0] * MOST_COLUMNS


class CellSketch:
    """A sketch, and its buckets that changed since the agent heard of them."""

    __slots__ = ("changed", "counts")

    def __init__(self) -> None:
        self.counts: Sketch = {}
        self.changed: set[int] = set()

    def renew(self) -> None:
        """The agent may not know any bucket."""
        self.changed.update(self.counts)

    def news(self) -> Sketch:
        """The sketch of what changed."""
        return {bucket: self.counts[bucket] for bucket in self.changed}


class Cell:
    """The totals of a tenant, a container or an object.

    ``born`` tells the agent that counting began anew.  ``sketches`` are by name.  ``hits`` ranks objects, ``seen``
    counts an object's requests since it has a cell, ``uploads`` a container's since the last one that was sampled.
    A cell that is ``gone`` takes counts of requests that still hold it, and nobody hears of them, whatever columns
    there are then.
    """

    __slots__ = (
        "__weakref__", "born", "dirty", "gone", "hits", "path", "seen", "sketches", "touched", "uploads", "values",
    )  # fmt: skip

    def __init__(self, path: str, born: int, size: int) -> None:
        self.path = path
        self.born = born
        self.values: list[float] = [0] * size
        self.sketches: dict[str, CellSketch] = {}
        self.dirty = False
        self.touched = 0.0
        self.hits = 0
        self.seen = 0
        self.uploads = 0
        self.gone = False

    def leave(self) -> None:
        """Mark the cell as ``gone``."""
        self.gone = True
        self.values = _NOWHERE
