"""Expansions of all items, in Redis: created by the API, processed by one daemon at a time.

A daemon claims an operation for :data:`LEASE` seconds and renews that with each report.  If it is killed, another one
claims it and starts again: an expanded item costs a view only.  Time is that of Redis.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from sluice_core.jobs import ENDED, lease_script, longest_ended
from sluice_core.store.keys import Keys
from sluice_core.store.operation import MessageHash, Operation, Script, decoded, nothing, scripted
from sluice_motif_control.messages import CANCELLED, MotifOperation

#: Seconds for which an operation belongs to the daemon after a claim or report.
LEASE: Final = 15.0
#: Ended operations that are kept.
KEPT: Final = 100

#: The most operations, ended ones included.
JOBS: Final = MessageHash(MotifOperation, lambda keys: keys.motif_operations)

#: KEYS: operations, leases, owners.  ARGV: seconds of a lease, daemon.  Returns the document, or nothing.
_CLAIM: Final = lease_script("""
local id = claim_lease(KEYS[2], ARGV[1])
if not id then return false end
local document = redis.call('HGET', KEYS[1], id)
if not document then
  redis.call('ZREM', KEYS[2], id)
  return false
end
redis.call('HSET', KEYS[3], id, ARGV[2])
return document
""")

#: KEYS: operations, leases, owners.  ARGV: id, daemon, document, seconds of a lease (0: it has ended).
#: Returns whether it still belongs to the daemon.
_REPORT: Final = lease_script("""
if redis.call('HGET', KEYS[3], ARGV[1]) ~= ARGV[2] or not redis.call('ZSCORE', KEYS[2], ARGV[1]) then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
renew_lease(KEYS[2], ARGV[1], ARGV[4])
if ARGV[4] == '0' then redis.call('HDEL', KEYS[3], ARGV[1]) end
return 1
""")

#: KEYS: as above.  ARGV: id, document of the cancelled operation.  Returns whether it had not ended.
_CANCEL: Final = Script("""
if redis.call('ZREM', KEYS[2], ARGV[1]) == 0 then return 0 end
redis.call('HDEL', KEYS[3], ARGV[1])
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
return 1
""")


def create_operation(keys: Keys, operation: MotifOperation) -> Operation[None]:
    """Create an operation."""
    operations, leases, _ = _names(keys)
    commands = (("HSET", operations, operation.id, operation.encode()), ("ZADD", leases, 0, operation.id))
    return Operation(commands, nothing, atomic=True)


def claim_operation(keys: Keys, daemon: str, lease: float = LEASE) -> Operation[MotifOperation | None]:
    """Claim an operation that no daemon processes; return None without one."""
    return scripted(
        _CLAIM, _names(keys), (str(lease), daemon), lambda reply: decoded(MotifOperation, "operation", reply or None)
    )


def report_operation(
    keys: Keys, operation: MotifOperation, daemon: str, ended: bool = False, lease: float = LEASE
) -> Operation[bool]:
    """Write the progress of a claimed operation, and renew its lease; False when it was cancelled or claimed again."""
    arguments = (operation.id, daemon, operation.encode(), str(ENDED if ended else lease))
    return scripted(_REPORT, _names(keys), arguments, bool)


def cancel_operation(keys: Keys, cancelled: MotifOperation) -> Operation[bool]:
    """End an operation; False when it has ended.

    :param cancelled: as it is to be shown, in the state CANCELLED
    """
    if cancelled.state != CANCELLED:
        raise ValueError(f"operation `{cancelled.id}` is {cancelled.state}, expected {CANCELLED}")
    return scripted(_CANCEL, _names(keys), (cancelled.id, cancelled.encode()), bool)


def forget_operations(keys: Keys, known: Mapping[str, MotifOperation], kept: int = KEPT) -> Operation[bool]:
    """Delete all ended operations except the last ``kept``."""
    ended = ((operation.ended, name) for name, operation in known.items() if operation.ended)
    return JOBS.delete(keys, *longest_ended(ended, kept))


def _names(keys: Keys) -> tuple[str, str, str]:
    return keys.motif_operations, keys.motif_operation_leases, keys.motif_operation_owners
