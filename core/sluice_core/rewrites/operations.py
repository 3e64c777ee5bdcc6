"""Rewrite jobs in Redis: how they are ordered, how rewriters share them, and how far they are.

Theory of operation.

* A job has a list of *units* to do.  The first is the listing of its account, which adds a unit for each container; of
  a job for the cluster it is the list of accounts, which adds a listing for each.
* A rewriter claims a unit for :data:`LEASE` seconds and renews that with each report.  A lease that ended is claimed
  again, from the last name that was reported: a rewriter that is killed costs no more than one page done twice, and
  an object that was rewritten twice is the same object.
* Each claim has a number, greater than any before in the job.  A report names it; one of an older claim is refused.
  So a rewriter that was only asleep counts nothing twice.
* A job has ended when nothing is to do and nothing is leased.
* Rates hold over all rewriters: each piece of work reserves its place on one time line (generic cell rate algorithm).

Time is that of Redis, since rewriters run on many machines.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Protocol

from sluice_core.rewrites.messages import (
    CANCELLED,
    PAUSED,
    RUNNING,
    RewriteCounts,
    RewriteJob,
    RewriteProgress,
    RewriteUnit,
)
from sluice_core.store.keys import Keys
from sluice_core.store.operation import Operation, decoded, read_messages, scripted
from sluice_core.store.scripts import Script

#: Seconds for which a unit belongs to a rewriter after it claimed it or reported.
LEASE: Final = 30.0
#: Seconds by which rates may be exceeded for a moment.
BURST: Final = 0.5
_MAX_EXAMPLES: Final = 20
_SEPARATOR: Final = "\0"
_NO_COUNTS: Final = RewriteCounts()

_NOW: Final = """
local time = redis.call('TIME')
local now = tonumber(time[1]) + tonumber(time[2]) / 1000000
"""

#: KEYS: jobs, units to do of the job, progress.  ARGV: id, document.
CREATE: Final = Script(
    _NOW
    + """
if redis.call('HSETNX', KEYS[1], ARGV[1], ARGV[2]) == 0 then return 0 end
redis.call('RPUSH', KEYS[2], '')
redis.call('HSET', KEYS[3], 'started', string.format('%.3f', now), 'listings', 1)
return 1
"""
)

#: KEYS: jobs, to do, leases, markers, progress.  ARGV: id, seconds of a lease, what a running job's document holds.
#: Answers path, marker, token; or nothing.
CLAIM: Final = Script(
    _NOW
    + """
local document = redis.call('HGET', KEYS[1], ARGV[1])
if not document or cjson.decode(document).state ~= ARGV[3] then return false end
local unit = redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', now, 'LIMIT', 0, 1)[1] or redis.call('LPOP', KEYS[2])
if not unit then return false end
local token = redis.call('HINCRBY', KEYS[5], 'token', 1)
redis.call('ZADD', KEYS[3], now + tonumber(ARGV[2]), unit)
local known = redis.call('HGET', KEYS[4], unit)
local marker = known and cjson.decode(known).marker or ''
redis.call('HSET', KEYS[4], unit, cjson.encode({marker = marker, token = token}))
return {unit, marker, string.format('%.0f', token)}
"""
)

#: KEYS: jobs, to do, leases, markers, progress, failures.  ARGV: id, path of the unit, token, seconds of a lease
#: (0: the unit is done, -1: it is given back), marker, failures that are kept, number of units to add, those, number
#: of failures, those, then pairs of a counter and what to add to it.
#: Answers the state that the job was told to be in, or nothing when the claim is not valid any more.  A job of which
#: nothing is left is done.
REPORT: Final = Script(
    _NOW
    + """
local id, unit, seconds, at = ARGV[1], ARGV[2], tonumber(ARGV[4]), 7
local function take()
  local list, count = {}, tonumber(ARGV[at])
  for i = at + 1, at + count do list[#list + 1] = ARGV[i] end
  at = at + count + 1
  return list
end
local units, failures = take(), take()
local document, known = redis.call('HGET', KEYS[1], id), redis.call('HGET', KEYS[4], unit)
if not document or not known then return false end
if string.format('%.0f', cjson.decode(known).token) ~= ARGV[3] then return false end
for _, one in ipairs(units) do redis.call('RPUSH', KEYS[2], one) end
for _, one in ipairs(failures) do redis.call('LPUSH', KEYS[6], one) end
if #failures > 0 then redis.call('LTRIM', KEYS[6], 0, ARGV[6] - 1) end
for i = at, #ARGV, 2 do redis.call('HINCRBY', KEYS[5], ARGV[i], ARGV[i + 1]) end
if seconds == 0 then
  redis.call('ZREM', KEYS[3], unit)
  redis.call('HDEL', KEYS[4], unit)
else
  local token = tonumber(ARGV[3])
  if seconds < 0 then token = redis.call('HINCRBY', KEYS[5], 'token', 1) end
  redis.call('ZADD', KEYS[3], seconds < 0 and 0 or now + seconds, unit)
  redis.call('HSET', KEYS[4], unit, cjson.encode({marker = ARGV[5], token = token}))
end
if redis.call('LLEN', KEYS[2]) == 0 and redis.call('ZCARD', KEYS[3]) == 0 then
  redis.call('HSET', KEYS[5], 'ended', string.format('%.3f', now))
  redis.call('HSET', KEYS[1], id, (string.gsub(document, '"state":"%a+"', '"state":"done"', 1)))
end
return cjson.decode(document).state
"""
)

#: KEYS: jobs, to do, leases, markers, progress.  ARGV: id, the new state, the states from which that can be.
#: Answers the document, or nothing when there is no such job or it is in another state or has ended.
ORDER: Final = Script(
    _NOW
    + """
local document = redis.call('HGET', KEYS[1], ARGV[1])
if not document or redis.call('HGET', KEYS[5], 'ended') then return false end
local job, fits = cjson.decode(document), false
for i = 3, #ARGV do fits = fits or job.state == ARGV[i] end
if not fits then return false end
local changed = string.gsub(document, '"state":"%a+"', '"state":"' .. ARGV[2] .. '"', 1)
redis.call('HSET', KEYS[1], ARGV[1], changed)
local since = redis.call('HGET', KEYS[5], 'paused_at')
if ARGV[2] == 'paused' and not since then
  redis.call('HSET', KEYS[5], 'paused_at', string.format('%.3f', now))
elseif ARGV[2] ~= 'paused' and since then
  redis.call('HINCRBYFLOAT', KEYS[5], 'paused', string.format('%.3f', now - tonumber(since)))
  redis.call('HDEL', KEYS[5], 'paused_at')
end
if ARGV[2] == 'cancelled' then
  redis.call('DEL', KEYS[2], KEYS[3], KEYS[4])
  redis.call('HSET', KEYS[5], 'ended', string.format('%.3f', now))
end
return changed
"""
)

#: KEYS: the time line.  ARGV: seconds that the work takes at the rate, seconds of burst.  Answers seconds to wait.
RESERVE: Final = Script(
    _NOW
    + """
local at = math.max(now - tonumber(ARGV[2]), tonumber(redis.call('GET', KEYS[1]) or '0'))
redis.call('SET', KEYS[1], string.format('%.6f', at + tonumber(ARGV[1])), 'EX', 86400)
return string.format('%.6f', math.max(0, at - now))
"""
)


class _Reply(Protocol):
    def __getitem__(self, index: int) -> bytes: ...


def create_job(keys: Keys, job: RewriteJob) -> Operation[bool]:
    """Order ``job``; False when there is one of this id already."""
    names = (keys.rewrites, keys.rewrite(job.id, "units"), keys.rewrite(job.id, "progress"))
    return scripted(CREATE, names, (job.id, job.encode()), bool)


def read_jobs(keys: Keys) -> Operation[dict[str, RewriteJob]]:
    """Id → job, all of them."""
    return read_messages(RewriteJob, keys.rewrites)


def order(keys: Keys, job_id: str, state: str) -> Operation[RewriteJob | None]:
    """Have a job paused, running again or cancelled; None when it cannot be, or there is none.

    A job that is in this state already stays so.
    """
    origins = {PAUSED: (RUNNING, PAUSED), RUNNING: (PAUSED, RUNNING), CANCELLED: (RUNNING, PAUSED)}[state]
    return scripted(
        ORDER, _names(keys, job_id), (job_id, state, *origins), lambda reply: decoded(RewriteJob, job_id, reply)
    )


def delete_job(keys: Keys, job_id: str) -> Operation[bool]:
    """Forget a job and all that is known of it; False when there is none."""
    rest = (*_names(keys, job_id)[1:], keys.rewrite(job_id, "pace"), keys.rewrite(job_id, "failures"))
    commands = (("HDEL", keys.rewrites, job_id), ("DEL", *rest))
    return Operation(commands, lambda replies: bool(replies[0]), atomic=True)


def claim_unit(keys: Keys, job_id: str, lease: float = LEASE) -> Operation[RewriteUnit | None]:
    """A unit of a running job; None when there is nothing to do."""

    def parse(reply: _Reply | None) -> RewriteUnit | None:
        if reply is None:
            return None
        return RewriteUnit(job_id, _text(reply[0]), _text(reply[1]), int(reply[2]))

    return scripted(CLAIM, _names(keys, job_id), (job_id, str(lease), RUNNING), parse)


def report_unit(
    keys: Keys,
    unit: RewriteUnit,
    marker: str,
    counts: RewriteCounts = _NO_COUNTS,
    units: Iterable[str] = (),
    more: Mapping[str, int] | None = None,
    lease: float = LEASE,
    failures: Sequence[tuple[str, str]] = (),
) -> Operation[str | None]:
    """Report that everything of a unit up to the name ``marker`` is done, and keep it for ``lease`` seconds more.

    :param units: paths of units that were found
    :param more: further counters of :class:`RewriteProgress`
    :param lease: 0 when the unit is done, -1 to give it back
    :param failures: objects that failed, with the reason; the last twenty are kept as examples
    :returns: the state that the job is told to be in; None when the unit is not ours any more
    """
    added = [name.encode("utf-8", "surrogateescape") for name in units]
    counters = {**_counters(counts), **(more or {})}
    words = [str(word) for pair in counters.items() for word in pair]
    rows = [json.dumps(row) for row in failures][-_MAX_EXAMPLES:]
    head = (unit.job, _raw(unit.path), str(unit.token), str(lease), _raw(marker), str(_MAX_EXAMPLES))
    arguments: list[str | bytes | int] = [*head, str(len(added)), *added, str(len(rows)), *rows, *words]
    names = (*_names(keys, unit.job), keys.rewrite(unit.job, "failures"))
    return scripted(REPORT, names, arguments, lambda reply: None if reply is None else _text(reply))


def reserve(keys: Keys, job_id: str, seconds: float, burst: float = BURST) -> Operation[float]:
    """Reserve a place for work that takes ``seconds`` at the job's rate; seconds to wait for it.

    With ``-seconds`` a place is given back that is not used after all.
    """
    return scripted(RESERVE, (keys.rewrite(job_id, "pace"),), (f"{seconds:.6f}", str(burst)), float)


def read_progress(keys: Keys, job_id: str, now: float | None = None) -> Operation[RewriteProgress]:
    """How far a job is.

    :param now: unix seconds, to tell the claims that still hold
    """
    moment = time.time() if now is None else now

    def parse(replies: list[Any]) -> RewriteProgress:
        found = {_text(name): value for name, value in replies[0].items()}
        numbers = {name: int(float(found.get(name, 0))) for name in _NUMBERS}
        counts = RewriteCounts(
            **{name: numbers[name] for name in _COUNTS},
            skipped=_reasons(found, "skipped"),
            failed=_reasons(found, "failed"),
        )
        return RewriteProgress(
            counts,
            numbers["containers"],
            numbers["containers_done"],
            numbers["objects"],
            numbers["bytes"],
            numbers["listings"],
            int(replies[1]),
            float(found.get("started", 0.0)),
            float(found.get("ended", 0.0)),
            float(found.get("paused", 0.0)),
            tuple((path, reason) for path, reason in map(json.loads, replies[2])),
        )

    commands = (
        ("HGETALL", keys.rewrite(job_id, "progress")),
        ("ZCOUNT", keys.rewrite(job_id, "leases"), f"({moment:.3f}", "+inf"),
        ("LRANGE", keys.rewrite(job_id, "failures"), 0, -1),
    )
    return Operation(commands, parse)


_COUNTS: Final = ("seen", "rewritten", "rewritten_bytes", "seen_bytes", "unchanged")
_NUMBERS: Final = (*_COUNTS, "containers", "containers_done", "objects", "bytes", "listings")


def _counters(counts: RewriteCounts) -> dict[str, int]:
    found = {name: getattr(counts, name) for name in _COUNTS}
    for name in ("skipped", "failed"):
        found |= {f"{name}{_SEPARATOR}{reason}": number for reason, number in getattr(counts, name).items()}
    return {name: number for name, number in found.items() if number}


def _reasons(found: Mapping[str, Any], name: str) -> dict[str, int]:
    begin = f"{name}{_SEPARATOR}"
    return {key.removeprefix(begin): int(value) for key, value in sorted(found.items()) if key.startswith(begin)}


def _names(keys: Keys, job_id: str) -> tuple[str, ...]:
    return (keys.rewrites, *(keys.rewrite(job_id, part) for part in ("units", "leases", "markers", "progress")))


def _raw(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")
