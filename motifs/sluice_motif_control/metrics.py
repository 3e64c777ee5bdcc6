"""What spaces hold and cost, as metrics of policies and of history: at the level of each space, once a second.

The free share and the time of an expansion are means: of several spaces larger ones, and those that expand more, count
more.  Contracted bytes and expansions of a tenant are those of its containers' spaces, too.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from sluice_core.describe import MetricInfo
from sluice_core.messages.elasticity import WHOLE_CLUSTER
from sluice_core.messages.nodes import MetricBatch
from sluice_core.messages.policies import CLUSTER, CONTAINER, TENANT
from sluice_motif_control.messages import SpaceStatus

FREE_SPACE: Final = "FREE_SPACE"
CONTRACTED: Final = "CONTRACTED"
EXPANSIONS_SEC: Final = "EXPANSIONS_SEC"
EXPANSION_TIME: Final = "EXPANSION_TIME"
#: In the place of a node in batches of metrics.
REPORTER: Final = "motifs"

_LEVELS: Final = (CONTAINER, TENANT, CLUSTER)
MOTIF_METRICS: Final = (
    MetricInfo(FREE_SPACE, "fraction", "free share of the target of a space", _LEVELS),
    MetricInfo(CONTRACTED, "bytes", "bytes that objects of a space have given up", _LEVELS),
    MetricInfo(EXPANSIONS_SEC, "per_second", "objects of a space made again for who read them", _LEVELS),
    MetricInfo(EXPANSION_TIME, "seconds", "mean time of such an expansion", _LEVELS),
)

_Rows = dict[str, dict[str, float]]


def space_batches(spaces: Iterable[SpaceStatus], window: int, number: int) -> list[MetricBatch]:
    """One batch of each metric; spaces without expansions say nothing of their time.

    :param window: unix second at which the window began
    :param number: counts these batches
    """
    free: _Rows = {}
    targets: _Rows = {}
    contracted: _Rows = {}
    rates: _Rows = {}
    times: _Rows = {}
    made: _Rows = {}
    for one in spaces:
        level = one.level if one.level in _LEVELS else CLUSTER
        path = "" if one.path == WHOLE_CLUSTER else one.path
        _add(free, level, path, one.free)
        _add(targets, level, path, float(max(one.target, 1)))
        if one.expansions_per_second > 0:
            _add(times, level, path, one.expansion_time)
            _add(made, level, path, one.expansions_per_second)
        for place in _with_tenant(level, path):
            _add(contracted, *place, float(one.contracted))
            _add(rates, *place, one.expansions_per_second)
    return [
        MetricBatch(REPORTER, FREE_SPACE, window, number, free, weights=targets),
        MetricBatch(REPORTER, CONTRACTED, window, number, contracted),
        MetricBatch(REPORTER, EXPANSIONS_SEC, window, number, rates),
        MetricBatch(REPORTER, EXPANSION_TIME, window, number, times, weights=made),
    ]


def _with_tenant(level: str, path: str) -> list[tuple[str, str]]:
    return [(level, path), (TENANT, path.partition("/")[0])] if level == CONTAINER else [(level, path)]


def _add(rows: _Rows, level: str, path: str, value: float) -> None:
    found = rows.setdefault(level, {})
    found[path] = found.get(path, 0.0) + value
