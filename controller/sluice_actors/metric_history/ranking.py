"""Which paths have series of their own: of each group the busiest, as many as there is room for.

Theory of operation

* A *group* is one or several metrics at one level; a path in it has a series of each metric.
* The room is divided evenly among groups, and what one does not need is the others'.
* A path's *score* is what it moved lately: each window counts, older ones ever less.  Only the highest values of a
  window are looked at, so that a window with many paths costs little.
* Who has series is displaced only by somebody with :data:`_LEAD` times its score, so that two paths that are about
  equally busy do not take turns.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from sluice_actors.bandwidth.fairness.water_filling import water_fill

_LEAD: Final = 2.0
#: What is left of a score after each ranking.
_DECAY: Final = 0.9
#: Scores that are remembered for each place that a group has.
_REMEMBERED: Final = 2


@dataclass(slots=True)
class Ranking:
    """The scores of the paths of one group."""

    _scores: dict[str, float] = field(default_factory=dict)

    def add(self, weights: Mapping[str, float], most: int) -> None:
        """A window in which paths weigh so much; about ``most`` of them are of interest."""
        shown = max(1, _REMEMBERED * most)
        top = weights if len(weights) <= shown else heapq.nlargest(shown, weights, key=weights.__getitem__)
        scores = self._scores
        for path in top:
            scores[path] = scores.get(path, 0.0) + abs(weights[path])

    def forget(self, path: str) -> None:
        """``path`` has a score no more, until it moves again."""
        self._scores.pop(path, None)

    def known(self, kept: Iterable[str]) -> set[str]:
        """The paths that could have series: those with a score, and those that have some now."""
        return {*self._scores, *kept}

    def choose(self, kept: Collection[str], room: int) -> list[str]:
        """The paths that have series from now on, at most ``room``; and age the scores.

        :param kept: those that have some now
        """
        scores = {**dict.fromkeys(kept, 0.0), **self._scores}

        def rank(path: str) -> tuple[float, bool]:
            here = path in kept
            return scores[path] * (_LEAD if here else 1.0), here

        chosen = heapq.nlargest(room, scores, key=rank)
        remembered = heapq.nlargest(_REMEMBERED * max(room, 1), scores, key=rank)
        self._scores = {path: scores[path] * _DECAY for path in remembered}
        return chosen


def divide_room(room: int, wanted: Mapping[str, int], costs: Mapping[str, int]) -> dict[str, int]:
    """How many paths of each group can have series.

    :param room: series in all
    :param wanted: group → its paths
    :param costs: group → series of each path of it
    """
    names = list(wanted)
    parts = water_fill(room, [1.0] * len(names), [float(wanted[name] * costs[name]) for name in names])
    return {name: int(part / costs[name] + 1e-6) for name, part in zip(names, parts, strict=True)}
