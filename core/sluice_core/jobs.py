"""The common part of all kinds of jobs: rewrites of stored objects, expansions of motifs, operations on volumes.

A job is long work that Redis keeps as a document with a state: the API submits it, and a process that claims it runs
it.

* Ids (:func:`new_job_id`) sort by submission time.  A request that may be repeated under its caller's key has an id of
  its own (:func:`request_id`): the repeated request finds the job of the first.
* A claim is a lease, since its holder may stop: it expires, and each report renews it.  Claims are fenced.  Each names
  the reporter (the number of a claim, the name of a daemon, the bytes of a document), and a report of another process
  is refused, so a process that was suspended cannot write after its lease.
* Jobs that have ended are kept, up to a number (:func:`longest_ended`), so that their outcome can be read.

Leases of rewrites and expansions lie in a sorted set, name → unix time at which the lease ends; unclaimed work that may
be claimed has 0 there.  The time is that of Redis, since workers run on many machines.  :func:`lease_script` has the
operations that scripts use.  An operation on a volume records in its document when it was claimed; each write of it
names the bytes that it replaces (``MessageHash.replace``).
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Iterable
from typing import Any, Final

from sluice_core.store.operation import Script, timed_script

#: Values of a report in place of a lease's seconds: the work is done; the work is given back, to be claimed at once.
ENDED: Final = 0
GIVEN_BACK: Final = -1

_LEASES: Final = """
-- the name whose lease has ended first, or the first of a list if there is one, for so many seconds from now
local function claim_lease(leases, seconds, waiting)
  local name = redis.call('ZRANGEBYSCORE', leases, '-inf', now, 'LIMIT', 0, 1)[1]
  if not name and waiting then name = redis.call('LPOP', waiting) end
  if name then redis.call('ZADD', leases, now + tonumber(seconds), name) end
  return name
end
-- a held lease, for so many seconds from now: 0 when the work is done, less to give it back
local function renew_lease(leases, name, seconds)
  seconds = tonumber(seconds)
  if seconds == 0 then return redis.call('ZREM', leases, name) end
  return redis.call('ZADD', leases, seconds < 0 and 0 or now + seconds, name)
end
"""


def lease_script(source: str) -> Script:
    """Return a script that has ``now``, ``claim_lease`` and ``renew_lease``."""
    return timed_script(_LEASES + source)


def new_job_id(created: int) -> str:
    """
    :param created: unix milliseconds
    """
    return f"{created:012x}-{secrets.token_hex(4)}"


def request_id(digits: int, *said: Any) -> str:
    """Return a digest of ``said``, plain data: equal for equal requests."""
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()[:digits]


def longest_ended(times: Iterable[tuple[float, str]], kept: int) -> list[str]:
    """Return the ids of jobs to delete: all but the last ``kept``.

    :param times: when each job ended, and its id
    """
    ended = sorted(times)
    return [name for _, name in ended[: max(len(ended) - kept, 0)]]
