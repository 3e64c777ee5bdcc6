"""Leases of items with motifs in Redis: one process in the cluster may change an object.

Theory of operation.

* A lease is a key that expires.  Its value is a token, greater than that of each earlier lease: it is taken from
  the clock if that is ahead of the last one, so a Redis that lost its data does not start again.
* Redis may lose leases: it was restarted, wiped, or a replica that lagged behind replaced it.  In each case its
  run id changes.  The first call to another run records its time.  Until all leases that an earlier run may
  have granted have expired, no lease is granted.

Time is that of Redis, since daemons run on many machines.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from sluice_core.errors import PeerError
from sluice_core.store.keys import Keys
from sluice_core.store.operation import Operation, Script, scripted
from sluice_core.store.store import Store
from sluice_motifs.storage.leases import LASTS
from sluice_motifs.storage.shim import Lease

#: KEYS: the lease, the state of this run.  ARGV: milliseconds of a lease.
#: Returns the token, nothing while another lease is valid, or minus the milliseconds until leases are granted again.
ACQUIRE: Final = Script("""
local run = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')
local time = redis.call('TIME')
local micros = tonumber(time[1]) * 1000000 + tonumber(time[2])
local known = redis.call('HMGET', KEYS[2], 'run', 'since', 'token')
local since = tonumber(known[2] or '0')
if known[1] ~= run or since > micros then
  since = micros
  redis.call('HSET', KEYS[2], 'run', run, 'since', string.format('%.0f', since))
end
local wait = since / 1000 + tonumber(ARGV[1]) - micros / 1000
if wait > 0 then return string.format('%.0f', -math.ceil(wait)) end
if redis.call('EXISTS', KEYS[1]) == 1 then return false end
local token = string.format('%.0f', math.max(tonumber(known[3] or '0') + 1, micros))
redis.call('HSET', KEYS[2], 'token', token)
redis.call('SET', KEYS[1], token, 'PX', ARGV[1])
return token
""")

#: KEYS: the lease.  ARGV: token, milliseconds of a lease.  Returns 1 when it is still that lease.
RENEW: Final = Script("""
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
""")

#: KEYS: leases.  ARGV: their tokens.  Returns how many were still valid.
RELEASE: Final = Script("""
local released = 0
for number, lease in ipairs(KEYS) do
  if redis.call('GET', lease) == ARGV[number] then released = released + redis.call('DEL', lease) end
end
return released
""")


class RedisLeases:
    """Leases of the whole cluster; implements ``Leases``.

    :param lasts: seconds
    """

    def __init__(self, store: Store, lasts: float = LASTS) -> None:
        self._store = store
        self._lasts = lasts

    def acquire(self, item: str) -> Lease | None:
        token = self._store.run(acquire_lease(self._store.keys, item, self._lasts))
        return None if token is None else Lease(item, token)

    def renew(self, lease: Lease) -> bool:
        return self._store.run(renew_lease(self._store.keys, lease.item, lease.token, self._lasts))

    def release(self, *held: Lease) -> None:
        if held:
            self._store.run(release_leases(self._store.keys, {one.item: one.token for one in held}))


def acquire_lease(keys: Keys, item: str, lasts: float = LASTS) -> Operation[int | None]:
    """The token of a new lease of ``item``; None while another one is valid.

    :raises PeerError: when run, while Redis may have lost leases that are still valid
    """

    def parse(reply: Any) -> int | None:
        token = None if reply is None else int(reply)
        if token is not None and token < 0:
            raise PeerError(f"leases of motifs may be forgotten, there are none for another {-token / 1000:.1f} s")
        return token

    return scripted(ACQUIRE, (keys.motif_lease(item), keys.motif_leases), (_milliseconds(lasts),), parse)


def renew_lease(keys: Keys, item: str, token: int, lasts: float = LASTS) -> Operation[bool]:
    """Let a lease last from now on; return False when it has expired."""
    return scripted(RENEW, (keys.motif_lease(item),), (token, _milliseconds(lasts)), bool)


def release_leases(keys: Keys, tokens: Mapping[str, int]) -> Operation[int]:
    """Release leases, by item; return how many had not expired."""
    return scripted(RELEASE, tuple(map(keys.motif_lease, tokens)), tokens.values(), int)


def _milliseconds(seconds: float) -> int:
    return max(1, round(seconds * 1000))
