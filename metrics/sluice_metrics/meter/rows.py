"""The rows of one worker: a cell for each counted path, and the cells with news for the agent.

A changed cell is in a list once, so the cost of :meth:`Rows.changed` depends on the changed cells, not on all cells.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from typing import Final

from sluice_core.metrics.sketch import pack
from sluice_core.metrics.totals import birth
from sluice_metrics.meter.busiest import REPORTED_FROM, BusiestObjects
from sluice_metrics.meter.cell import Cell

Row = tuple[str, int, tuple[float, ...]]

#: Number of sweeps in the time after which rows are dropped.
_SWEEPS: Final = 4


class Rows:
    """The cells of tenants, containers and the busiest objects."""

    def __init__(self, clock: Callable[[], float], forget: float, most_objects: int) -> None:
        """
        :param clock: the machine's monotonic clock, the same for worker and agent
        :param forget: seconds after which a path without news is dropped
        :param most_objects: number of objects that are counted separately
        """
        self._clock = clock
        self._forget = forget
        self._most_objects = most_objects
        self._width = 0
        self._levels: list[int] = []
        self._dirty: list[Cell] = []
        self._swept = clock()
        self._last_birth = 0
        #: Tenants and containers by path; never another dictionary.
        self.cells: dict[str, Cell] = {}
        #: The busiest objects; None when no metric counts objects.
        self.objects: BusiestObjects | None = None

    def move(self, moved: list[int | None], levels: list[int], with_objects: bool, sketches: set[str]) -> None:
        """Change the columns of all cells.

        :param moved: for each column its former number; None for a new one
        :param levels: the columns that are levels
        :param with_objects: whether single objects are counted
        :param sketches: names of the kept sketches
        """
        self._width, self._levels = len(moved), levels
        if not with_objects:
            for cell in self._all():
                if cell.seen:
                    cell.leave()
            self.objects = None
        elif self.objects is None and self._most_objects:
            self.objects = BusiestObjects(self._make, self._most_objects)
        for cell in self._all():
            cell.values = [0 if column is None else cell.values[column] for column in moved]
            cell.sketches = {name: sketch for name, sketch in cell.sketches.items() if name in sketches}

    def add(self, path: str) -> Cell:
        """Add the cell of a new path."""
        cell = self.cells[path] = self._make(path)
        return cell

    def touch(self, *cells: Cell) -> None:
        """Mark ``cells`` as changed."""
        for cell in cells:
            if not cell.dirty:
                cell.dirty = True
                self._dirty.append(cell)

    def touch_all(self) -> None:
        """Mark every row with a value as changed."""
        for cell in self._all():
            if any(cell.values):
                self.touch(cell)
            for sketch in cell.sketches.values():
                sketch.renew()

    def changed(self) -> list[Row]:
        """Return rows that changed since their delivery; drop idle ones."""
        now = self._clock()
        self._dirty = [cell for cell in self._dirty if not cell.gone]
        for cell in self._dirty:
            cell.touched = now
        if now - self._swept >= self._forget / _SWEEPS:
            self._swept = now
            self._sweep(now)
        return [(cell.path, cell.born, tuple(cell.values)) for cell in self._dirty if _is_news(cell)]

    def delivered(self, rows: Iterable[Row]) -> None:
        """These ``rows`` of ``changed`` reached the agent; counts since then stay changed."""
        for path, born, values in rows:
            cell = self._find(path)
            if cell is not None and cell.born == born and tuple(cell.values) == tuple(values):
                cell.dirty = False
                for sketch in cell.sketches.values():
                    sketch.changed.clear()
        self._dirty = [cell for cell in self._dirty if cell.dirty]

    def sketches(self, name: str, rows: Iterable[Row]) -> list[list[float]]:
        """Return for each of ``rows`` the changed buckets of its sketch ``name``, packed; empty without changes."""
        cells = (self._find(path) for path, _, _ in rows)
        found = (None if cell is None else cell.sketches.get(name) for cell in cells)
        return [[] if sketch is None else pack(sketch.news()) for sketch in found]

    def _all(self) -> list[Cell]:
        return [*self.cells.values(), *(() if self.objects is None else self.objects.cells())]

    def _find(self, path: str) -> Cell | None:
        cell = self.cells.get(path)
        return self.objects.find(path) if cell is None and self.objects is not None else cell

    def _make(self, path: str) -> Cell:
        born = max(birth(self._clock), self._last_birth + 1)
        self._last_birth = born
        cell = Cell(path, born, self._width)
        cell.touched = self._clock()
        return cell

    def _sweep(self, now: float) -> None:
        """Drop rows that are idle and have no level, unless a request still holds them."""
        idle = [
            path
            for path, cell in self.cells.items()
            if not cell.dirty and now - cell.touched >= self._forget and not any(cell.values[n] for n in self._levels)
        ]
        for path in idle:
            held = weakref.ref(self.cells.pop(path))
            survivor = held()
            if survivor is not None:  # a request without events so far counts here later
                self.cells[path] = survivor
                for sketch in survivor.sketches.values():
                    sketch.renew()  # the agent drops it, too


def _is_news(cell: Cell) -> bool:
    """Whether to report a cell to the agent; objects only from their second request on."""
    return not cell.seen or cell.seen >= REPORTED_FROM
