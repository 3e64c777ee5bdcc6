"""What owners of spaces report: in Redis, and as metrics.

A report in Redis expires, so that a removed space is not shown.  As metrics of policies and of
history, at the level of each space, reports are batches, once a second.  The free share and the time of an expansion
are means: of several spaces larger ones, and those that expand more, count more.  Contracted bytes and expansions of a
tenant are those of its containers' spaces, too.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from sluice_core.describe import MetricInfo
from sluice_core.messages.elasticity import WHOLE_CLUSTER
from sluice_core.messages.nodes import MetricBatch
from sluice_core.messages.policies import CLUSTER, CONTAINER, TENANT
from sluice_core.store.keys import Keys
from sluice_core.store.operation import Operation, decoded, scripted, timed_script
from sluice_motif_control.messages import SpaceStatus

#: Seconds for which a report is shown; reports are written every one or two seconds.
LIFE: Final = 15.0
#: Spaces that are shown; those reported longest ago are removed first.
MOST: Final = 10_000

#: KEYS: when spaces were reported, reports.  ARGV: seconds of a life, most reports, then path, document, ….
_WRITE: Final = timed_script("""
for i = 3, #ARGV, 2 do
  redis.call('ZADD', KEYS[1], now, ARGV[i])
  redis.call('HSET', KEYS[2], ARGV[i], ARGV[i + 1])
end
local over = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', '(' .. string.format('%.6f', now - tonumber(ARGV[1])))
local rest = redis.call('ZRANGE', KEYS[1], 0, -tonumber(ARGV[2]) - 1)
for _, names in ipairs({over, rest}) do
  for _, name in ipairs(names) do
    redis.call('ZREM', KEYS[1], name)
    redis.call('HDEL', KEYS[2], name)
  end
end
redis.call('EXPIRE', KEYS[1], 3600)
redis.call('EXPIRE', KEYS[2], 3600)
return 1
""")

#: KEYS: as above.  ARGV: seconds of a life.  Returns reports.
_READ: Final = timed_script("""
local found = {}
for _, name in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], now - tonumber(ARGV[1]), '+inf')) do
  found[#found + 1] = redis.call('HGET', KEYS[2], name) or nil
end
return found
""")


def write_spaces(keys: Keys, statuses: Iterable[SpaceStatus]) -> Operation[bool]:
    """Write reports, replacing earlier ones."""
    words = [word for one in statuses for word in (one.path.encode("utf-8", "surrogateescape"), one.encode())]
    return scripted(_WRITE, _names(keys), (str(LIFE), MOST, *words), bool)


def read_spaces(keys: Keys) -> Operation[list[SpaceStatus]]:
    """Read the present reports, by path; reports that cannot be decoded are left out."""

    def parse(reply: list[bytes]) -> list[SpaceStatus]:
        found = (decoded(SpaceStatus, "space", raw) for raw in reply)
        return sorted((one for one in found if one is not None), key=lambda one: one.path)

    return scripted(_READ, _names(keys), (str(LIFE),), parse)


def _names(keys: Keys) -> tuple[str, str]:
    return keys.motif_spaces, keys.motif_space_reports


FREE_SPACE: Final = "FREE_SPACE"
CONTRACTED: Final = "CONTRACTED"
EXPANSIONS_SEC: Final = "EXPANSIONS_SEC"
EXPANSION_TIME: Final = "EXPANSION_TIME"
#: The node's name in these batches of metrics.
REPORTER: Final = "motifs"

_LEVELS: Final = (CONTAINER, TENANT, CLUSTER)
MOTIF_METRICS: Final = (
    MetricInfo(FREE_SPACE, "fraction", "free share of the target of a space", _LEVELS),
    MetricInfo(CONTRACTED, "bytes", "bytes of contracted objects of a space", _LEVELS),
    MetricInfo(EXPANSIONS_SEC, "per_second", "objects of a space whose bytes were made for readers", _LEVELS),
    MetricInfo(EXPANSION_TIME, "seconds", "mean time of such an expansion", _LEVELS),
)

_Rows = dict[str, dict[str, float]]


def space_batches(spaces: Iterable[SpaceStatus], window: int, number: int) -> list[MetricBatch]:
    """One batch of each metric; spaces without expansions have no value of their time.

    :param window: unix second at which the window began
    :param number: counts these batches
    """
    free: _Rows = {}
    targets: _Rows = {}
    contracted: _Rows = {}
    rates: _Rows = {}
    times: _Rows = {}
    made: _Rows = {}
    for space in spaces:
        level = space.level if space.level in _LEVELS else CLUSTER
        path = "" if space.path == WHOLE_CLUSTER else space.path
        _add(free, level, path, space.free)
        _add(targets, level, path, float(max(space.target, 1)))
        if space.expansions_per_second > 0:
            _add(times, level, path, space.expansion_time)
            _add(made, level, path, space.expansions_per_second)
        for place in _with_tenant(level, path):
            _add(contracted, *place, float(space.contracted))
            _add(rates, *place, space.expansions_per_second)
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
