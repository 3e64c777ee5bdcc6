"""A group of series: the paths that are kept, each with a column for each metric, and the rest as a sum."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from sluice_actors.metric_history.ranking import Ranking
from sluice_actors.metric_history.sample_buffer import SampleBuffer
from sluice_actors.metric_history.samples import GroupKey, Sample

#: Paths that are looked at where a group has no room yet.
_AT_LEAST: Final = 100
#: Of a group with many paths only windows of such seconds count for the ranking.
_RANKED_EVERY: Final = 5


@dataclass(slots=True)
class Group:
    """``step`` is that of the finest resolution in which its series are kept, ``heard`` the time of its last window.

    ``paths`` has the columns of each path that is kept, one for each metric.  ``rests`` has the column of the rest of
    a metric that adds up, and ``of`` how many paths the rest had last.
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
        """How many paths could have series."""
        return len(self.ranking.known(self.paths))

    def put(self, sample: Sample, buffer: SampleBuffer) -> None:
        """Take the values of the paths that are kept, and the sum of those that are not."""
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
        """The sum of the targets that are not kept one by one; rounding must not make it negative."""
        return max(math.fsum(values.values()) - math.fsum(kept), 0.0) if self.of else 0.0
