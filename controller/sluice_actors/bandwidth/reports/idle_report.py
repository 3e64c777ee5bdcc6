"""How promises are shown while nothing of them moves: rows that stand.

They are made once, and again when what is promised or what of it is lacking changes; not when somebody begins or ends.
So nothing is written of them while that stays the same, however many there are (``IdleFlowReport`` in
``sluice_core.messages.bandwidth_report``).

Those who were seen come before members of groups of whom nothing ever moved, and methods take turns: where there is
room for the first of them only, each method has its part of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Final

import numpy as np

from sluice_actors.bandwidth.arrays import IntArray
from sluice_actors.bandwidth.reports.shortfall import TOLERANCE, IdleFloor, IdleFloors
from sluice_core.messages.bandwidth_report import CachedJson, IdleFlowReport

#: What is lacking of an idle floor is shown to within this part of it.
_STEADY: Final = 0.001


@dataclass(slots=True)
class IdleFloorRows:
    """The rows as they stand."""

    _promises: IdleFlowReport = field(default_factory=IdleFlowReport)
    _of: Mapping[str, IdleFloors] = field(default_factory=dict)
    _parts: Mapping[str, float] = field(default_factory=dict)
    _places: Mapping[str, IntArray] = field(default_factory=dict)

    def step(self, idle: Mapping[str, IdleFloors], lacking: Mapping[str, float], most: int) -> IdleFlowReport:
        """Those of ``most`` promises, active or not; the same as before while nothing changed.

        :param lacking: method → the part of all its floors that the cluster lacks
        """
        parts = {method: self._part(method, lacking.get(method, 0.0)) for method in idle}
        same = all(several.of_same(self._of.get(method)) for method, several in idle.items())
        if not same or parts != self._parts:
            chosen = _chosen(idle, most)
            self._promises = IdleFlowReport(
                tuple(_row(idle[method].one(place), parts[method]) for method, place in chosen)
            )
            self._places = {
                method: np.array([place for of, place in chosen if of == method], dtype=np.intp) for method in idle
            }
        self._of, self._parts = idle, parts
        return self._promises

    def count(self, idle: Mapping[str, IdleFloors]) -> int:
        """Of how many of them nothing moves."""
        return sum(idle[method].count(places) for method, places in self._places.items())

    def _part(self, method: str, part: float) -> float:
        part = part if part > TOLERANCE else 0.0
        before = self._parts.get(method, part)
        return before if abs(part - before) <= _STEADY else part


def _chosen(idle: Mapping[str, IdleFloors], most: int) -> list[tuple[str, int]]:
    """Methods and places of those that are shown."""
    found = []
    for unseen in (False, True):
        lines = [[(method, place) for place in several.places(unseen)] for method, several in idle.items()]
        found += [one for turn in zip_longest(*lines) for one in turn if one is not None]
    return found[:most]


def _row(one: IdleFloor, part: float) -> CachedJson:
    """As before, unless what it lacks has changed."""
    if one.row is None or one.part != part:
        one.row, one.part = _made(one, part), part
    return one.row


def _made(one: IdleFloor, part: float) -> CachedJson:
    short = one.floor * part
    return CachedJson(
        account=one.account,
        container=one.container,
        method=one.own.method,
        policy=one.policy,
        floor=one.floor,
        ceiling=one.own.ceiling,
        share=0.0,
        measured=0.0,
        waiting=0.0,
        active=False,
        met=one.floor - short,
        short=short,
        policies=[one.own.policy],
    )
