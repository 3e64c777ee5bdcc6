"""What owners of spaces report, in Redis: a report has a life, so that nothing is shown of a space that is no more."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from sluice_core.store.keys import Keys
from sluice_core.store.operation import Operation, decoded, scripted, timed_script
from sluice_motif_control.messages import SpaceStatus

#: Seconds for which a report is shown; it is written every second or two.
LIFE: Final = 15.0
#: Spaces that are shown; those that were reported longest ago go first.
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

#: KEYS: as above.  ARGV: seconds of a life.  Answers reports.
_READ: Final = timed_script("""
local found = {}
for _, name in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], now - tonumber(ARGV[1]), '+inf')) do
  found[#found + 1] = redis.call('HGET', KEYS[2], name) or nil
end
return found
""")


def write_spaces(keys: Keys, statuses: Iterable[SpaceStatus]) -> Operation[bool]:
    """Keep reports, in the place of those before."""
    words = [word for one in statuses for word in (one.path.encode("utf-8", "surrogateescape"), one.encode())]
    return scripted(_WRITE, _names(keys), (str(LIFE), MOST, *words), bool)


def read_spaces(keys: Keys) -> Operation[list[SpaceStatus]]:
    """What is reported now, by path; what cannot be decoded is left out."""

    def parse(reply: list[bytes]) -> list[SpaceStatus]:
        found = (decoded(SpaceStatus, "space", raw) for raw in reply)
        return sorted((one for one in found if one is not None), key=lambda one: one.path)

    return scripted(_READ, _names(keys), (str(LIFE),), parse)


def _names(keys: Keys) -> tuple[str, str]:
    return keys.motif_spaces, keys.motif_space_reports
