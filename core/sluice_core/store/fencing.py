"""Ownership of policies by actor hosts: slots, their owners, and how a stale owner is refused.

Policies (and all other objects with a name and one actor) are divided into :data:`SLOTS` slots by the hash of their id.
A host owns a slot under a *term*: one atomic script writes ``<term> <host>`` with a term that was never used before.
A host that decides something for a policy puts the ownership from its claim into ``Draft.fence``.  Once another host
has claimed the slot, the commit script refuses the draft, independently of the host's own state, suspension and clock
(Kleppmann calls such a term a fencing token).

What a new owner reads *after* its claim is final: the former owner can no longer write.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from sluice_core.messages.policies import Assignment, Policy, PolicyState, policy_of_assignment
from sluice_core.store.keys import Keys
from sluice_core.store.operation import Operation, Script, decoded, scripted

#: Enough slots to divide evenly between a dozen hosts, few enough to be checked in every commit.
SLOTS: Final = 256
#: Documents read by one command, so that Redis is not blocked for longer than a few milliseconds.
CHUNK: Final = 1000

#: Claim slots.  KEYS: owners.  ARGV: host, slots.  Returns the new ownership of each.
CLAIM: Final = Script("""
local term = redis.call('HINCRBY', KEYS[1], '*', 1)
local owner = string.format('%.0f', term) .. ' ' .. ARGV[1]
for i = 2, #ARGV do redis.call('HSET', KEYS[1], ARGV[i], owner) end
return owner
""")

#: Release slots.  KEYS: owners.  ARGV: pairs of slot and the ownership that ends, if it is still in force.
RELEASE: Final = Script("""
local count = 0
for i = 1, #ARGV, 2 do
  if redis.call('HGET', KEYS[1], ARGV[i]) == ARGV[i + 1] then
    count = count + redis.call('HDEL', KEYS[1], ARGV[i])
  end
end
return count
""")


def slot_of(name: str) -> str:
    """The slot of a policy's id, or of another name with one responsible host."""
    return str(zlib.crc32(name.encode("utf-8", "surrogateescape")) % SLOTS)


def all_slots() -> Iterator[str]:
    """Every slot."""
    return map(str, range(SLOTS))


def claim(keys: Keys, host: str, slots: Sequence[str]) -> Operation[dict[str, str]]:
    """Claim ``slots``; return slot → ownership, for :attr:`Draft.fence`."""
    return scripted(CLAIM, (keys.owners,), (host, *slots), lambda owner: dict.fromkeys(slots, owner.decode()))


def release(keys: Keys, held: Mapping[str, str]) -> Operation[int]:
    """Release these slots unless another host owns them; return the number of released slots."""
    return scripted(RELEASE, (keys.owners,), [word for pair in held.items() for word in pair], int)


def owners(keys: Keys) -> Operation[dict[str, str]]:
    """Slot → ownership, of all slots that have one."""

    def parse(replies: list[Any]) -> dict[str, str]:
        return {slot.decode(): owner.decode() for slot, owner in replies[0].items() if slot != b"*"}

    return Operation((("HGETALL", keys.owners),), parse)


def owner_term(owner: str) -> int:
    """The term in an ownership; 0 when ``owner`` is not one."""
    term = owner.partition(" ")[0]
    return int(term) if term.isdigit() else 0


def owner_host(owner: str) -> str:
    """The host in an ownership."""
    return owner.partition(" ")[2]


def hash_fields(key: str) -> Operation[list[str]]:
    """The fields of a hash: ids of policies, of states, of assignments."""
    return Operation((("HKEYS", key),), lambda replies: [name.decode() for name in replies[0]])


def policies(keys: Keys, wanted: Sequence[str]) -> Operation[list[tuple[Policy, int, PolicyState | None]]]:
    """Return policies with their versions and states, read together; missing ones are left out."""
    if not wanted:
        return Operation((), lambda _: [])
    commands = (
        ("HMGET", keys.policies, *wanted),
        ("HMGET", keys.versions, *(f"policy/{name}" for name in wanted)),
        ("HMGET", keys.states, *wanted),
    )

    def parse(replies: list[Any]) -> list[tuple[Policy, int, PolicyState | None]]:
        stored = []
        for name, raw, version, state in zip(wanted, *replies, strict=True):
            policy = decoded(Policy, name, raw)
            if policy is not None:
                stored.append((policy, int(version or 0), decoded(PolicyState, name, state)))
        return stored

    return Operation(commands, parse, atomic=True)


def assignments(keys: Keys, wanted: Sequence[str]) -> Operation[list[Assignment]]:
    """Return the assignments with these ids; missing ones are left out."""
    if not wanted:
        return Operation((), lambda _: [])

    def parse(replies: list[Any]) -> list[Assignment]:
        found = (decoded(Assignment, name, raw) for name, raw in zip(wanted, replies[0], strict=True))
        return [one for one in found if one is not None]

    return Operation((("HMGET", keys.assignments, *wanted),), parse)


def chunks(wanted: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield ``wanted`` in parts for one command each."""
    return (wanted[at : at + CHUNK] for at in range(0, len(wanted), CHUNK))


def assignments_of_policies(assignments: Iterable[str], policies: Collection[str]) -> list[str]:
    """The ids of assignments that belong to ``policies``."""
    return [name for name in assignments if policy_of_assignment(name) in policies]
