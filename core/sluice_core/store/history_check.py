"""Whether the change stream that a follower reads is still the same history.

Redis replicates asynchronously: a server that takes over after a failover may lack the last changes.  While it is at a
smaller epoch, every follower sees that.  After others have written to it, its epoch may be the same or larger again,
with other changes under the numbers of the lost ones.  So a follower remembers a digest of the entry that it is at, and
compares it with that of the entry that the stream has under this number: when it connects, once a second at rest, and
with each reading of changes, in the same round trip (``sluice_core.store.change_stream``).

A change that was trimmed from the stream cannot be compared; a follower that far back loads everything anyway.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Final

from sluice_core.messages.policies import Change
from sluice_core.store.keys import Keys
from sluice_core.store.operation import Command, Operation, Script
from sluice_core.store.records import Head

#: The digest of an entry of the change stream: sha1 of all its names and values, of each its length and the first
#: ARGV[2] bytes.  ARGV[1] is the entry's id; empty: that of the newest change.  Nothing when it is not in the stream.
DIGEST: Final = Script("""
local id = ARGV[1]
if id == '' then id = (redis.call('GET', KEYS[2]) or '0') .. '-0' end
local found = redis.call('XRANGE', KEYS[1], id, id)[1]
if not found then return '' end
local parts = {}
for i, part in ipairs(found[2]) do
  parts[i] = string.format('%d:', #part) .. string.sub(part, 1, tonumber(ARGV[2]))
end
return redis.sha1hex(table.concat(parts))
""")

#: Bytes of each name and value of an entry that are digested, beside its length: a change may be megabytes, and many
#: ask each second.  The first ones hold the time of the change to the microsecond, and who made it.
_DIGESTED: Final = 1024


def entry_digest(fields: Mapping[bytes, bytes]) -> str:
    """The digest of an entry of the change stream: the same as that of :data:`DIGEST`."""
    parts = (part for pair in fields.items() for part in pair)
    joined = b"".join(b"%d:%b" % (len(part), part[:_DIGESTED]) for part in parts)
    return hashlib.sha1(joined, usedforsecurity=False).hexdigest()


def digest_command(keys: Keys, epoch: int | None = None) -> Command:
    """Asks for the digest of change ``epoch``, or of the newest; read the reply with :func:`parse_digest`."""
    entry = "" if epoch is None else f"{epoch}-0"
    # not EVALSHA: among other commands nobody sends it again after a restart of Redis
    return ("EVAL", DIGEST.source, 2, keys.changes, keys.epoch, entry, _DIGESTED)


def parse_digest(reply: bytes) -> str:
    """The digest; empty when the change is not in the stream."""
    return reply.decode()


def change_digest(keys: Keys, epoch: int) -> Operation[str]:
    """The digest of change ``epoch``; empty when it is not in the stream."""
    return Operation((digest_command(keys, epoch),), lambda replies: parse_digest(replies[0]))


class HistoryCheck:
    """The history, epoch and digest of the change that one follower is at."""

    def __init__(self) -> None:
        self._known: tuple[Head, str] | None = None

    def follow(self, change: Change) -> None:
        """Remember ``change``, as it was read, as the one that the follower is at."""
        self.restart(Head(change.history, change.epoch), change.digest)

    def restart(self, position: Head, digest: str) -> None:
        """The follower is at ``position`` now, whose change has ``digest``; empty when that is not known."""
        self._known = (position, digest) if digest else None

    def digest(self, position: Head) -> str:
        """The digest of the change at ``position``; empty when it is not known."""
        return self._known[1] if self._known is not None and self._known[0] == position else ""

    def broken(self, position: Head, actual: str) -> bool:
        """True when the stream has another change under the follower's epoch.

        :param actual: result of :func:`change_digest`; it is remembered when nothing is known of ``position`` yet
        """
        if not actual:
            return False
        known = self.digest(position)
        if not known:
            self.restart(position, actual)
        return known not in ("", actual)
