"""The busiest objects of a worker, in bounded memory: space-saving, with ageing.

A worker may see any number of objects and counts at most ``limit`` of them.  Which objects have a cell follows the
algorithm of Metwally, Agrawal and El Abbadi ("Efficient computation of frequent and top-k elements in
data streams", 2005): a newcomer takes the cell of the object with the fewest hits and inherits its
number.  Hits are halved every :data:`AGEING` seconds, so that past requests do not keep cells.

Consequences for the reported values:

* Hits only rank.  Values are counted from the allocation of an object's cell, so they are never too
  high; they are exact for as long as it keeps the cell.
* An object with more than one in ``limit`` of its worker's requests keeps its cell: with 1000 cells
  and 500 requests per second, one with more than 0.5 requests per second.
* A rarer one may lose its cell between two of its requests, and then has no values.

An object is reported from its second request on, so uploads of new objects send nothing.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Final

from sluice_metrics.meter.cell import Cell

#: Number of objects that a worker counts.
LIMIT: Final = 1000
#: Seconds after which hits are halved.
AGEING: Final = 10.0
#: Number of requests from which an object is reported.
REPORTED_FROM: Final = 2


class BusiestObjects:
    """The cells of the busiest objects; ``make`` returns a new one for a path."""

    def __init__(self, make: Callable[[str], Cell], limit: int = LIMIT) -> None:
        self._make = make
        self._limit = limit
        self._cells: dict[str, Cell] = {}
        #: Hits when they were pushed (they may have grown), a number against ties, the cell.
        self._heap: list[tuple[int, int, Cell]] = []
        self._pushed = 0

    def __len__(self) -> int:
        return len(self._cells)

    def hit(self, path: str) -> Cell:
        """Return the cell of an object at a request."""
        cell = self._cells.get(path)
        if cell is None:
            inherited = self._take_away() if len(self._cells) >= self._limit else 0
            cell = self._cells[path] = self._make(path)
            cell.hits = inherited
            self._push(cell)
        cell.hits += 1
        cell.seen += 1
        return cell

    def find(self, path: str) -> Cell | None:
        """Return the cell of an object; None when it has none."""
        return self._cells.get(path)

    def cells(self) -> list[Cell]:
        """All of them."""
        return list(self._cells.values())

    def age(self) -> None:
        """Halve the hits; objects without hits and without news lose their cells."""
        for path, cell in list(self._cells.items()):
            cell.hits //= 2
            if not cell.hits and not (cell.dirty and cell.seen >= REPORTED_FROM):
                del self._cells[path]
                cell.leave()
        self._heap.clear()
        for cell in self._cells.values():
            self._push(cell)

    def _push(self, cell: Cell) -> None:
        self._pushed += 1
        heapq.heappush(self._heap, (cell.hits, self._pushed, cell))

    def _take_away(self) -> int:
        """Remove the cell of the rarest object; return its hits."""
        heap = self._heap
        while True:
            hits, number, cell = heap[0]
            if cell.hits == hits:
                heapq.heappop(heap)
                del self._cells[cell.path]
                cell.leave()
                return hits
            heapq.heapreplace(heap, (cell.hits, number, cell))
