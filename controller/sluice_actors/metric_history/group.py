"""Groups of series: the paths that are kept, each with a column for each metric, and the rest as a sum.

Theory of operation

* A *group* is one or several metrics at one level; a path in it has a series of each metric.
* The busiest paths of each group have series of their own.  The room is divided evenly among groups, and room that one
  does not need goes to the others.
* A path's *score* is the weight of its last windows: each window counts, older ones less and less.  Only the highest
  values of a window are considered, so that a window with many paths is cheap.
* A path with series is replaced only by a path with :data:`_LEAD` times its score, so that two paths that are about
  equally busy do not alternate.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from sluice_actors.bandwidth.fairness.water_filling import water_fill
from sluice_actors.metric_history.sample_buffer import SampleBuffer
from sluice_actors.metric_history.samples import GroupKey, WindowSample

_LEAD: Final = 2.0
#: The part of a score that is left after each ranking.
_DECAY: Final = 0.9
#: Scores that are remembered for each path that the group may keep.
_REMEMBERED: Final = 2


@dataclass(slots=True)
class Ranking:
    """The scores of the paths of one group."""

    _scores: dict[str, float] = field(default_factory=dict)

    def add(self, weights: Mapping[str, float], most: int) -> None:
        """Add a window with the weights of paths; only the ``most`` greatest of them count."""
        shown = max(1, _REMEMBERED * most)
        top = weights if len(weights) <= shown else heapq.nlargest(shown, weights, key=weights.__getitem__)
        scores = self._scores
        for path in top:
            scores[path] = scores.get(path, 0.0) + abs(weights[path])

    def forget(self, path: str) -> None:
        """Remove the score of ``path``, until it moves again."""
        self._scores.pop(path, None)

    def known(self, kept: Iterable[str]) -> set[str]:
        """The paths that could have series: those with a score, and those that have some now."""
        return {*self._scores, *kept}

    def choose(self, kept: Collection[str], room: int) -> list[str]:
        """Return the paths that have series from now on, at most ``room``; and age the scores.

        :param kept: the paths that have series now
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

    :param room: the maximum number of series
    :param wanted: group → its paths
    :param costs: group → series of each path of it
    """
    names = list(wanted)
    parts = water_fill(room, [1.0] * len(names), [float(wanted[name] * costs[name]) for name in names])
    return {name: int(part / costs[name] + 1e-6) for name, part in zip(names, parts, strict=True)}


#: Paths that are considered where a group has no room yet.
_AT_LEAST: Final = 100
#: For a group with many paths, only windows of seconds that are a multiple of this count for the ranking.
_RANKED_EVERY: Final = 5


@dataclass(slots=True)
class SeriesGroup:
    """``step`` is that of the finest resolution in which its series are kept, ``heard`` the time of its last window.

    ``paths`` has the columns of each path that is kept, one for each metric.  ``rests`` has the column of the rest of
    a metric that adds up, and ``of`` the number of paths in the last rest.
    """

    key: GroupKey
    step: int
    heard: float
    ranking: Ranking = field(default_factory=Ranking)
    paths: dict[str, tuple[int, ...]] = field(default_factory=dict)
    adds: frozenset[str] = frozenset()
    rests: dict[str, int] = field(default_factory=dict)
    of: int = 0

    @property
    def wanted(self) -> int:
        """The number of paths that could have series."""
        return len(self.ranking.known(self.paths))

    def put(self, sample: WindowSample, buffer: SampleBuffer) -> None:
        """Store the values of the paths that are kept, and the sum of the others."""
        self.heard = sample.window + sample.period
        self.adds = sample.adds
        most = max(len(self.paths), _AT_LEAST)
        if len(sample.weights) <= most or sample.window % _RANKED_EVERY == 0:
            self.ranking.add(sample.weights, most)
        self.of = len(sample.weights) - sum(path in sample.weights for path in self.paths)
        columns: list[int] = []
        found: list[float] = []
        for place, metric in enumerate(self.key.metrics):
            values = sample.values[place]
            absent = 0.0 if metric in sample.adds else math.nan
            kept = [values.get(path, absent) for path in self.paths]
            columns += [one[place] for one in self.paths.values()]
            found += kept
            if metric in self.rests:
                columns.append(self.rests[metric])
                found.append(self._rest(values, kept))
        if columns:
            buffer.put(sample.window, sample.period, np.array(columns), np.array(found))

    def _rest(self, values: Mapping[str, float], kept: list[float]) -> float:
        """The sum of the paths without series; rounding must not make it negative."""
        return max(math.fsum(values.values()) - math.fsum(kept), 0.0) if self.of else 0.0
