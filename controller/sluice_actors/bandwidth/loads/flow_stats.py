"""How flows fare on one side of nodes, a column for each place: the last second, and means over the last ones."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final, NamedTuple, Self

import numpy as np

from sluice_actors.bandwidth.arrays import BoolArray, FloatArray, IntArray
from sluice_core.messages.bandwidth import SIDES

#: Seconds over which bytes and transfers are averaged, exponentially.
MEAN: Final = 4.0
#: Seconds after which a place where a flow has no transfer any more is not one of its places.
LEFT: Final = 3.0
#: What nodes tell of each second: bytes, transfers open, those that wait.
_TOLD: Final = 3
_IDLE: Final = 2 * _TOLD


class Trace(NamedTuple):
    """One flow on one side of one node.

    ``moved``, ``open`` and ``waiting`` as of the last second, ``bytes``, ``transfers`` and ``held`` are their means,
    ``idle`` how many seconds there was no transfer.
    """

    moved: float = 0.0
    open: float = 0.0
    waiting: float = 0.0
    bytes: float = 0.0
    transfers: float = 0.0
    held: float = 0.0
    idle: float = 0.0

    @property
    def active(self) -> bool:
        """True when something moved or was open in the last second."""
        return self.moved > 0 or self.open > 0

    @property
    def presence(self) -> float:
        """1 while there are transfers, less and less when there are none any more."""
        return max(1.0 - self.idle / LEFT, 0.0)


@dataclass(frozen=True, slots=True)
class Traces:
    """Several of them; ``values`` has a row for each field of :class:`Trace`."""

    places: IntArray
    values: FloatArray

    @classmethod
    def empty(cls) -> Self:
        return cls(np.empty(0, dtype=np.intp), np.empty((len(Trace._fields), 0)))

    @property
    def moved(self) -> FloatArray:
        return self._of(0)

    @property
    def open(self) -> FloatArray:
        return self._of(1)

    @property
    def waiting(self) -> FloatArray:
        return self._of(2)

    @property
    def bytes(self) -> FloatArray:
        return self._of(3)

    @property
    def transfers(self) -> FloatArray:
        return self._of(4)

    @property
    def held(self) -> FloatArray:
        return self._of(5)

    @property
    def idle(self) -> FloatArray:
        return self._of(_IDLE)

    @property
    def active(self) -> BoolArray:
        """As :attr:`Trace.active`."""
        return (self.moved > 0) | (self.open > 0)

    @property
    def presence(self) -> FloatArray:
        """As :attr:`Trace.presence`."""
        return np.maximum(1.0 - self.idle / LEFT, 0.0)

    def _of(self, row: int) -> FloatArray:
        found: FloatArray = self.values[row]
        return found

    def take(self, index: IntArray) -> Traces:
        """Those at ``index``."""
        return Traces(self.places[index], self.values[:, index])

    def find(self, place: int) -> Trace | None:
        """One of them, when ``places`` is sorted."""
        at = int(np.searchsorted(self.places, place))
        if at == len(self.places) or self.places[at] != place:
            return None
        return Trace(*self.values[:, at].tolist())

    def followed(self, places: IntArray, told: FloatArray, seconds: float, sides: Collection[str]) -> Traces:
        """Another second, which stands for ``seconds``.

        :param places: sorted, as are the answer's
        :param told: (3, places) what moved, was open, and waited
        :param sides: where workers are, if that is known
        """
        part = 1.0 - math.exp(-seconds / MEAN)
        if np.array_equal(places, self.places):
            return self._again(told, part, seconds)
        at = np.searchsorted(self.places, places)
        known = np.zeros(len(places), dtype=bool)
        within = at < len(self.places)
        known[within] = self.places[at[within]] == places[within]
        before = self.values[:, at[known]]
        values = np.zeros((len(Trace._fields), len(places)))
        values[:_TOLD] = values[_TOLD:_IDLE] = told
        values[_TOLD:_IDLE, known] = before[_TOLD:_IDLE] + part * (told[:, known] - before[_TOLD:_IDLE])
        values[_IDLE, known] = before[_IDLE]
        values[_IDLE] = np.where((told[0] > 0) | (told[1] > 0), 0.0, values[_IDLE] + seconds)
        if len(before[0]) == len(self.places):
            return Traces(places, values)
        silent = np.ones(len(self.places), dtype=bool)
        silent[at[known]] = False
        return _merged(Traces(places, values), self._without(silent, part, seconds, sides))

    def _again(self, told: FloatArray, part: float, seconds: float) -> Traces:
        """The same places told of another second."""
        values = np.empty_like(self.values)
        values[:_TOLD] = told
        means = self.values[_TOLD:_IDLE]
        values[_TOLD:_IDLE] = means + part * (told - means)
        values[_IDLE] = np.where((told[0] > 0) | (told[1] > 0), 0.0, self.values[_IDLE] + seconds)
        return Traces(self.places, values)

    def _without(self, silent: BoolArray, part: float, seconds: float, sides: Collection[str]) -> Traces:
        """Those that were not told of, as long as they count."""
        values = self.values[:, silent]
        values[:_TOLD] = 0.0
        values[_TOLD:_IDLE] -= part * values[_TOLD:_IDLE]
        values[_IDLE] += seconds
        stay = values[_IDLE] < LEFT
        places = self.places[silent]
        if sides:
            served = np.array([side in sides for side in SIDES])
            stay &= served[places % len(SIDES)]
        return Traces(places[stay], values[:, stay])


def _merged(one: Traces, other: Traces) -> Traces:
    places = np.concatenate((one.places, other.places))
    order = np.argsort(places, kind="stable")
    return Traces(places[order], np.concatenate((one.values, other.values), axis=1)[:, order])
