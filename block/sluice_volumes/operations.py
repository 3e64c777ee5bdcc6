"""What Redis keeps of volumes, read and written: pools, calibrations, tiers, records, and operations under way.

Theory of operation.

* An operation is written before Cinder or a konnector is asked.  Whoever works at it claims it first
  (:func:`claim`): the request that ordered it, a request that looks at it, or an actor host.  A claim ends when what
  was found is written (:func:`release`), and :data:`LEASE` seconds after it was made, since its owner may have died.
* There is one operation on a volume at a time: what one undoes must not be what another does.
* Each write of an operation names the bytes that it replaces.  So of two that claim the same one, one wins, and an
  owner that was only asleep writes nothing any more.
* Operations that have ended are kept for those who ask how they ended; :func:`forget` takes the oldest.
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

#: Seconds for which an operation belongs to who claimed it; longer than Cinder and a konnector may take to answer.
LEASE: Final = 90.0
#: Seconds for which a report of volumes is kept; it is written every five.
RETENTION: Final = 15.0

#: KEYS: operations.  ARGV: id, document, volume (empty: none yet), what a document's state is while it is under way.
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

#: Name → pool, as the last discovery saw them.
POOLS: Final = MessageHash(Pool, lambda keys: keys.pools, "name")
#: Name of a pool → what was measured of it.
CALIBRATIONS: Final = MessageHash(PoolCalibration, lambda keys: keys.pool_calibrations, "pool")
TIERS: Final = MessageHash(Tier, lambda keys: keys.tiers, "name")
#: Volume id → what we know of it; nothing of one that was not made or adopted by us.
RECORDS: Final = MessageHash(VolumeRecord, lambda keys: keys.volumes)
#: Operations, those that have ended included.
JOBS: Final = MessageHash(VolumeOperation, lambda keys: keys.volume_operations)


def write_pools(keys: Keys, pools: Iterable[Pool]) -> Operation[None]:
    """Replace all known pools by ``pools``."""
    words = [word for one in pools for word in (one.name, one.encode())]
    commands: tuple[Command, ...] = (("DEL", keys.pools), *((("HSET", keys.pools, *words),) if words else ()))
    return Operation(commands, nothing, atomic=True)


def write_volume_report(keys: Keys, report: VolumeReport) -> Operation[None]:
    """Keep what volumes did lately, for :data:`RETENTION` seconds."""
    return Operation((("SET", keys.volume_report, report.encode(), "EX", int(RETENTION)),), nothing)


def read_volume_report(keys: Keys) -> Operation[tuple[VolumeReport | None, float]]:
    """What volumes did lately, and how many seconds old that is by the clock of Redis."""

    def parse(replies: list[Any]) -> tuple[VolumeReport | None, float]:
        raw, left = replies
        report = decoded(VolumeReport, keys.volume_report, raw)
        return report, math.inf if report is None else RETENTION - left / 1000

    return Operation((("GET", keys.volume_report), ("PTTL", keys.volume_report)), parse)


def create_operation(keys: Keys, operation: VolumeOperation) -> Operation[str]:
    """Write a new operation.

    :returns: empty when it was written; else the id of what stands in its way: itself, when there is one of that id, or
        another operation on the same volume that has not ended
    """
    arguments = (operation.id, operation.encode(), operation.volume, UNDER_WAY)
    return scripted(_CREATE, (keys.volume_operations,), arguments, lambda reply: str(reply.decode()))


def is_free(operation: VolumeOperation, now: float) -> bool:
    """Whether it is under way and nobody works at it."""
    return operation.state == UNDER_WAY and not 0 <= now - operation.claimed < LEASE


def is_untold(operation: VolumeOperation) -> bool:
    """Whether a volume was detached by force from a konnector that has not been told yet."""
    return operation.state == DONE and operation.data.get(KONNECTOR_TOLD) is False


def claim(keys: Keys, operation: VolumeOperation, now: float) -> tuple[VolumeOperation, Operation[bool]]:
    """The operation as claimed, and the command that writes it, which gives False when another process was faster."""
    claimed = replace(operation, claimed=now)
    return claimed, JOBS.replace(keys, operation, claimed)


def release(keys: Keys, claimed: VolumeOperation, found: VolumeOperation) -> Operation[bool]:
    """Write what a claimed operation has become, and give up the claim; False when the claim was lost."""
    return JOBS.replace(keys, claimed, replace(found, claimed=0.0))


def forget(keys: Keys, known: Mapping[str, VolumeOperation], kept: int) -> Operation[bool]:
    """Forget all but the last ``kept`` of the operations that have ended, and those that a konnector is to know of."""
    ended = ((one.ended, name) for name, one in known.items() if one.state != UNDER_WAY and not is_untold(one))
    return JOBS.delete(keys, *longest_ended(ended, kept))
