"""Checks that the change stream that a follower reads is still the same history.

Redis replicates asynchronously: a server that takes over after a failover may lack the last changes.  While it is at a
smaller epoch, every follower detects that.  After further writes, its epoch may be equal or larger, with other changes
under the numbers of the lost ones.  So a follower keeps a digest of its last entry, and compares it with the digest of
the stream's entry of this number: when it connects, once a second while idle, and with each read of changes, in the
same round trip (``sluice_core.store.change_stream``).

A change that was trimmed from the stream cannot be compared; a follower that far behind reloads everything.
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
#: ARGV[2] bytes.  ARGV[1] is the entry's id; empty: that of the newest change.  Empty when it is not in the stream.
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

#: Bytes of each name and value of an entry that are digested, besides its length: a change may be megabytes, and many
#: nodes request it each second.  The first bytes hold the time of the change to the microsecond, and its author.
_DIGESTED: Final = 1024


def entry_digest(fields: Mapping[bytes, bytes]) -> str:
    """The digest of an entry of the change stream, equal to that of :data:`DIGEST`."""
    parts = (part for pair in fields.items() for part in pair)
    joined = b"".join(b"%d:%b" % (len(part), part[:_DIGESTED]) for part in parts)
    return hashlib.sha1(joined, usedforsecurity=False).hexdigest()


def digest_command(keys: Keys, epoch: int | None = None) -> Command:
    """The command for the digest of change ``epoch``, or of the newest; parse the reply with :func:`parse_digest`."""
    entry = "" if epoch is None else f"{epoch}-0"
    # not EVALSHA: after a restart of Redis no client repeats it among other commands
    return ("EVAL", DIGEST.source, 2, keys.changes, keys.epoch, entry, _DIGESTED)


def parse_digest(reply: bytes) -> str:
    """The digest; empty when the change is not in the stream."""
    return reply.decode()


def change_digest(keys: Keys, epoch: int) -> Operation[str]:
    """The digest of change ``epoch``; empty when it is not in the stream."""
    return Operation((digest_command(keys, epoch),), lambda replies: parse_digest(replies[0]))


class HistoryCheck:
    """The history, epoch and digest of the last change of one follower."""

    def __init__(self) -> None:
        self._known: tuple[Head, str] | None = None

    def follow(self, change: Change) -> None:
        """Record ``change``, as it was read, as the follower's last change."""
        self.restart(Head(change.history, change.epoch), change.digest)

    def restart(self, position: Head, digest: str) -> None:
        """Record that the follower is at ``position``, whose change has ``digest``; empty if unknown."""
        self._known = (position, digest) if digest else None

    def digest(self, position: Head) -> str:
        """The digest of the change at ``position``; empty when it is not known."""
        return self._known[1] if self._known is not None and self._known[0] == position else ""

    def broken(self, position: Head, actual: str) -> bool:
        """Whether the stream has another change under the follower's epoch.

        :param actual: result of :func:`change_digest`; it is kept when no digest of ``position`` is known yet
        """
        if not actual:
            return False
        known = self.digest(position)
        if not known:
            self.restart(position, actual)
        return known not in ("", actual)
