"""The rows of idle floors, which stay as they are while nothing about them changes.

They are made anew when objectives change, or what is missing of them; not when a flow begins or ends.  So nothing is
written of them meanwhile, however many there are (``IdleFlowReport`` in ``sluice_core.messages.bandwidth_report``).

Floors that were seen come before members of groups of which nothing ever moved, and methods take turns, so that each
method has its part where there is room for a few.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Final

import numpy as np

from sluice_actors.bandwidth.arrays import IntArray
from sluice_actors.bandwidth.reports.idle_floors import IdleFloor, IdleFloors
from sluice_actors.bandwidth.reports.shortfall import TOLERANCE, asked_rates
from sluice_core.messages.bandwidth_report import CachedJson, IdleFlowReport

#: What is missing of an idle floor is reported to within this part of it.
_PRECISION: Final = 0.001


@dataclass(slots=True)
class IdleFloorRows:
    """The rows of the last round."""

    _report: IdleFlowReport = field(default_factory=IdleFlowReport)
    _idle: Mapping[str, IdleFloors] = field(default_factory=dict)
    _parts: Mapping[str, float] = field(default_factory=dict)
    _positions: Mapping[str, IntArray] = field(default_factory=dict)

    def update(self, idle: Mapping[str, IdleFloors], lacking: Mapping[str, float], most: int) -> IdleFlowReport:
        """The rows of at most ``most`` floors, active or not; the same object while nothing changes.

        :param lacking: method → the part of all its floors that the cluster lacks
        """
        parts = {method: self._part(method, lacking.get(method, 0.0)) for method in idle}
        same = all(floors.has_same_floors(self._idle.get(method)) for method, floors in idle.items())
        if not same or parts != self._parts:
            chosen = _chosen(idle, most)
            self._report = IdleFlowReport(tuple(_row(idle[method][at], parts[method]) for method, at in chosen))
            self._positions = {
                method: np.array([at for other, at in chosen if other == method], dtype=np.intp) for method in idle
            }
        self._idle, self._parts = idle, parts
        return self._report

    def count(self, idle: Mapping[str, IdleFloors]) -> int:
        """How many of the rows are of idle floors."""
        return sum(idle[method].count(positions) for method, positions in self._positions.items())

    def _part(self, method: str, part: float) -> float:
        part = part if part > TOLERANCE else 0.0
        before = self._parts.get(method, part)
        return before if abs(part - before) <= _PRECISION else part


def _chosen(idle: Mapping[str, IdleFloors], most: int) -> list[tuple[str, int]]:
    """Methods and positions of the floors that are reported."""
    chosen = []
    for unseen in (False, True):
        lines = [[(method, at) for at in floors.positions(unseen)] for method, floors in idle.items()]
        chosen += [pair for turn in zip_longest(*lines) for pair in turn if pair is not None]
    return chosen[:most]


def _row(floor: IdleFloor, part: float) -> CachedJson:
    """The row of before, unless what is missing has changed."""
    if floor.row is None or floor.part != part:
        floor.row, floor.part = _new_row(floor, part), part
    return floor.row


def _new_row(floor: IdleFloor, part: float) -> CachedJson:
    short = floor.floor * part
    return CachedJson(
        **floor.flow._asdict(),
        floor=floor.floor,
        ceiling=floor.own.ceiling,
        share=0.0,
        measured=0.0,
        waiting=0.0,
        active=False,
        met=floor.floor - short,
        short=short,
        policies=[floor.own.policy],
        **asked_rates(floor.own),
    )
