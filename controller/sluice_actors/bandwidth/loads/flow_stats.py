"""Bytes and transfers of flows on a node, a column for each flow-side: of the last second, and means over several."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np

from sluice_actors.bandwidth.arrays import BoolArray, FloatArray, IntArray
from sluice_core.messages.bandwidth import SIDES

#: Seconds over which bytes and transfers are averaged, exponentially.
MEAN_SECONDS: Final = 4.0
#: A flow that had no transfer on a node for this many seconds counts as gone from it.
LEFT_SECONDS: Final = 3.0
#: What nodes report for each second: bytes moved, open transfers, waiting ones.
_REPORTED: Final = 3
_IDLE: Final = 2 * _REPORTED
#: These, their means, and how long there was no transfer.
COLUMNS: Final = _IDLE + 1


class _Column:
    """One row of ``FlowStats.values``."""

    def __init__(self, row: int) -> None:
        self._row = row

    def __get__(self, stats: Any, owner: object = None) -> FloatArray:
        column: FloatArray = stats.values[self._row]
        return column


@dataclass(frozen=True, slots=True)
class FlowStats:
    """Numbers of flow-sides in columns."""

    flow_sides: IntArray  #: (stats,) see ``flow_index``
    values: FloatArray  #: (COLUMNS, stats)

    moved = _Column(0)  #: (stats,) bytes in the last second
    open = _Column(1)  #: (stats,) transfers in the last second
    waiting = _Column(2)  #: (stats,) of these, the ones that Sluice holds back
    mean_moved = _Column(3)
    mean_open = _Column(4)
    mean_waiting = _Column(5)
    idle = _Column(_IDLE)  #: (stats,) seconds for which there was no transfer

    @classmethod
    def empty(cls) -> Self:
        """Stats without flow-sides: columns without entries."""
        return cls(np.empty(0, dtype=np.intp), np.empty((COLUMNS, 0)))

    @property
    def active(self) -> BoolArray:
        """(stats,) true when something moved or was open in the last second."""
        return (self.moved > 0) | (self.open > 0)

    @property
    def presence(self) -> FloatArray:
        """(stats,) 1 while there are transfers, then decreasing to 0."""
        return np.maximum(1.0 - self.idle / LEFT_SECONDS, 0.0)

    def select(self, index: IntArray) -> FlowStats:
        """The entries at the positions ``index``."""
        return FlowStats(self.flow_sides[index], self.values[:, index])

    def advanced(self, flow_sides: IntArray, reported: FloatArray, seconds: float, sides: Collection[str]) -> FlowStats:
        """The stats after another report, which stands for ``seconds``.

        :param flow_sides: the reported ones, sorted; those of the result are sorted too
        :param reported: (3, flow_sides) bytes moved, open transfers, waiting ones
        :param sides: the sides where the node has workers, if known
        """
        part = 1.0 - math.exp(-seconds / MEAN_SECONDS)
        if np.array_equal(flow_sides, self.flow_sides):
            return self._advanced_in_place(reported, part, seconds)
        at = np.searchsorted(self.flow_sides, flow_sides)
        known = np.zeros(len(flow_sides), dtype=bool)
        within = at < len(self.flow_sides)
        known[within] = self.flow_sides[at[within]] == flow_sides[within]
        before = self.values[:, at[known]]
        values = np.zeros((COLUMNS, len(flow_sides)))
        values[:_REPORTED] = values[_REPORTED:_IDLE] = reported
        values[_REPORTED:_IDLE, known] = before[_REPORTED:_IDLE] + part * (reported[:, known] - before[_REPORTED:_IDLE])
        values[_IDLE, known] = before[_IDLE]
        values[_IDLE] = np.where((reported[0] > 0) | (reported[1] > 0), 0.0, values[_IDLE] + seconds)
        if len(before[0]) == len(self.flow_sides):
            return FlowStats(flow_sides, values)
        silent = np.ones(len(self.flow_sides), dtype=bool)
        silent[at[known]] = False
        return _merged(FlowStats(flow_sides, values), self._decayed(silent, part, seconds, sides))

    def _advanced_in_place(self, reported: FloatArray, part: float, seconds: float) -> FlowStats:
        """The same flow-sides after another second."""
        values = np.empty_like(self.values)
        values[:_REPORTED] = reported
        means = self.values[_REPORTED:_IDLE]
        values[_REPORTED:_IDLE] = means + part * (reported - means)
        values[_IDLE] = np.where((reported[0] > 0) | (reported[1] > 0), 0.0, self.values[_IDLE] + seconds)
        return FlowStats(self.flow_sides, values)

    def _decayed(self, silent: BoolArray, part: float, seconds: float, sides: Collection[str]) -> FlowStats:
        """The flow-sides that were not reported, until they count as gone."""
        values = self.values[:, silent]
        values[:_REPORTED] = 0.0
        values[_REPORTED:_IDLE] -= part * values[_REPORTED:_IDLE]
        values[_IDLE] += seconds
        stay = values[_IDLE] < LEFT_SECONDS
        flow_sides = self.flow_sides[silent]
        if sides:
            served = np.array([side in sides for side in SIDES])
            stay &= served[flow_sides % len(SIDES)]
        return FlowStats(flow_sides[stay], values[:, stay])


def _merged(first: FlowStats, other: FlowStats) -> FlowStats:
    flow_sides = np.concatenate((first.flow_sides, other.flow_sides))
    order = np.argsort(flow_sides, kind="stable")
    return FlowStats(flow_sides[order], np.concatenate((first.values, other.values), axis=1)[:, order])
