"""The totals of one path, as the meter and its helpers share them."""

from __future__ import annotations

from typing import Final

from sluice_core.metrics.sketch import Sketch

#: Greatest number of columns of a worker.
MOST_COLUMNS: Final = 256
#: The columns in which removed cells count.
_NOWHERE: Final[list[float]] = [0] * MOST_COLUMNS


class CellSketch:
    """A sketch, and the buckets that changed since the last delivery to the agent."""

    __slots__ = ("changed", "counts")

    def __init__(self) -> None:
        self.counts: Sketch = {}
        self.changed: set[int] = set()

    def renew(self) -> None:
        """Mark every bucket as changed: the agent may not know any."""
        self.changed.update(self.counts)

    def news(self) -> Sketch:
        """The sketch of the changed buckets."""
        return {bucket: self.counts[bucket] for bucket in self.changed}


class Cell:
    """The totals of a tenant, a container or an object.

    ``born`` shows the agent that counting restarted.  ``sketches`` are by name.  ``hits`` ranks objects, ``seen``
    counts an object's requests since the allocation of its cell, ``uploads`` a container's uploads since the last
    sample.  A cell that is ``gone`` still accepts counts of requests that hold it, for any set of columns, but is not
    reported.
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
