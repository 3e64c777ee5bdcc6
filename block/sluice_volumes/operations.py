"""The operations on volumes' data in Redis: pools, calibrations, tiers, records, and operations in progress.

Theory of operation.

* An operation is written before the request to Cinder or a konnector.  A process that works on it claims it first
  (:func:`claim`): the request that submitted it, a request that reads it, or an actor host.  A claim ends when the
  result is written (:func:`release`), and :data:`LEASE` seconds after it was made, since its owner may have stopped.
* There is one operation on a volume at a time: one operation must not undo the work of another.
* Each write of an operation names the bytes that it replaces.  So of two processes that claim the same one, one wins,
  and an owner that was only suspended can no longer write.
* Operations that have ended are kept, so that their outcome can be read; :func:`forget` deletes the oldest.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from sluice_core.jobs import longest_ended
from sluice_core.store.keys import Keys
from sluice_core.store.operation import Command, MessageHash, Operation, Script, decoded, nothing, scripted
from sluice_volumes.messages import (
    DONE,
    KONNECTOR_TOLD,
    UNDER_WAY,
    Pool,
    PoolCalibration,
    Tier,
    VolumeOperation,
    VolumeRecord,
    VolumeReport,
)

#: Seconds of a claim; longer than Cinder and a konnector may take to answer.
LEASE: Final = 90.0
#: Seconds for which a report of volumes is kept; it is written every five.
RETENTION: Final = 15.0

#: KEYS: operations.  ARGV: id, document, volume (empty: none yet), the state of documents in progress.
_CREATE: Final = Script(
    """
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1 then return ARGV[1] end
for _, document in ipairs(ARGV[3] ~= '' and redis.call('HVALS', KEYS[1]) or {}) do
  local other = cjson.decode(document)
  if other.volume == ARGV[3] and other.state == ARGV[4] then return other.id end
end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
return ''
"""
)

#: Name → pool, from the last discovery.
POOLS: Final = MessageHash(Pool, lambda keys: keys.pools, "name")
#: Name of a pool → its measured capacity.
CALIBRATIONS: Final = MessageHash(PoolCalibration, lambda keys: keys.pool_calibrations, "pool")
TIERS: Final = MessageHash(Tier, lambda keys: keys.tiers, "name")
#: Volume id → Sluice's data; missing for volumes that Sluice did not create or adopt.
RECORDS: Final = MessageHash(VolumeRecord, lambda keys: keys.volumes)
#: Operations, also ended ones.
JOBS: Final = MessageHash(VolumeOperation, lambda keys: keys.volume_operations)


def write_pools(keys: Keys, pools: Iterable[Pool]) -> Operation[None]:
    """Replace all known pools by ``pools``."""
    words = [word for one in pools for word in (one.name, one.encode())]
    commands: tuple[Command, ...] = (("DEL", keys.pools), *((("HSET", keys.pools, *words),) if words else ()))
    return Operation(commands, nothing, atomic=True)


def write_volume_report(keys: Keys, report: VolumeReport) -> Operation[None]:
    """Write the recent activity of volumes, for :data:`RETENTION` seconds."""
    return Operation((("SET", keys.volume_report, report.encode(), "EX", int(RETENTION)),), nothing)


def read_volume_report(keys: Keys) -> Operation[tuple[VolumeReport | None, float]]:
    """Read the recent activity of volumes, and its age in seconds by the clock of Redis."""

    def parse(replies: list[Any]) -> tuple[VolumeReport | None, float]:
        raw, left = replies
        report = decoded(VolumeReport, keys.volume_report, raw)
        return report, math.inf if report is None else RETENTION - left / 1000

    return Operation((("GET", keys.volume_report), ("PTTL", keys.volume_report)), parse)


def create_operation(keys: Keys, operation: VolumeOperation) -> Operation[str]:
    """Write a new operation.

    :returns: empty when it was written; else the id of the obstacle: itself, when one with that id exists, or another
        operation on the same volume that has not ended
    """
    arguments = (operation.id, operation.encode(), operation.volume, UNDER_WAY)
    return scripted(_CREATE, (keys.volume_operations,), arguments, lambda reply: str(reply.decode()))


def is_free(operation: VolumeOperation, now: float) -> bool:
    """Whether it is in progress and unclaimed."""
    return operation.state == UNDER_WAY and not 0 <= now - operation.claimed < LEASE


def is_untold(operation: VolumeOperation) -> bool:
    """Whether a volume was detached by force from a konnector that was not notified yet."""
    return operation.state == DONE and operation.data.get(KONNECTOR_TOLD) is False


def claim(keys: Keys, operation: VolumeOperation, now: float) -> tuple[VolumeOperation, Operation[bool]]:
    """Return the claimed operation, and the command that writes it, whose result is False when another process was
    faster.
    """
    claimed = replace(operation, claimed=now)
    return claimed, JOBS.replace(keys, operation, claimed)


def release(keys: Keys, claimed: VolumeOperation, found: VolumeOperation) -> Operation[bool]:
    """Write the new state of a claimed operation, and release the claim; return False when the claim was lost."""
    return JOBS.replace(keys, claimed, replace(found, claimed=0.0))


def forget(keys: Keys, known: Mapping[str, VolumeOperation], kept: int) -> Operation[bool]:
    """Delete all but the last ``kept`` of the ended operations, except those of which a konnector must be notified."""
    ended = ((one.ended, name) for name, one in known.items() if one.state != UNDER_WAY and not is_untold(one))
    return JOBS.delete(keys, *longest_ended(ended, kept))
