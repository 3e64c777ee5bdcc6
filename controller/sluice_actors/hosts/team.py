"""A team of actor hosts that divides what there is to do.

Theory of operation

* Who is there is said by tooz (``sluice_actors.hosts.members``); who *should* own a slot by a hash ring over these.
  Members may see this differently for a moment, so a view alone entitles to nothing.
* Who *owns* a slot stands in Redis, under a term that changes with each claim (``sluice_core.store.fencing``).
  :meth:`Team.rebalance` claims what the ring gives us and gives up what it does not, or what somebody else
  has claimed.  Every change carries the ownership under which it was decided, and is refused if it is over.
* A slot that somebody else took is not claimed back before we have looked again who is there: otherwise a host that
  hears late of a newcomer would take from it what it was just given.
* Cut off from Redis we know nothing new and can change nothing.  What is held is kept in mind: if nobody has
  claimed it when we are back, the decisions made meanwhile still stand and are written.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

from sluice_actors.hosts.members import HashRing, Members
from sluice_core.store import fencing
from sluice_core.store.store import AsyncStore

log = logging.getLogger(__name__)

#: A look that began after somebody else's claim was found is at the latest the second one heard of.
_POLLS: Final = 2
#: Points of each host on the ring: two hosts' shares then differ by a few per cent.
_POINTS: Final = 256


@dataclass(frozen=True, slots=True)
class SlotChanges:
    """Slots that this host gained and lost; a slot may be in both, when another host had it meanwhile."""

    gained: frozenset[str] = frozenset()
    lost: frozenset[str] = frozenset()


class OwnerRing:
    """Which of some members owns which slot."""

    def __init__(self, members: Iterable[str]) -> None:
        self.members = tuple(members)
        self._ring = HashRing(self.members, partitions=_POINTS)

    def host(self, name: str) -> str:
        """Whose ``name`` is; empty without members."""
        if not self.members:
            return ""
        (found,) = self._ring.get_nodes(name.encode("utf-8", "surrogateescape"))
        return str(found)


class Team:
    """Ownership by a team; the host calls :meth:`rebalance` whenever it is told of a change."""

    def __init__(self, store: AsyncStore, host: str, url: str, beat: float) -> None:
        self.host = host
        self._store = store
        self._members = Members(url, host, f"{store.keys.prefix}:team", beat, self._members_seen)
        self._ring = OwnerRing(())
        self._held: dict[str, str] = {}
        # Slot → number of looks that must have been taken before it is claimed from somebody else.
        self._contested: dict[str, int] = {}
        self._polls = 0
        #: Called on the host's loop after answers of :meth:`owns` may have changed.
        self.on_change: Callable[[], None] = lambda: None

    def start(self) -> None:
        """Join, on the running loop."""
        self._members.start()

    async def close(self) -> None:
        """Leave."""
        await self._members.close()

    # -- Ownership

    def owns(self, name: str) -> bool:
        """Whether this host runs the policy or controller ``name``, by the leases it holds."""
        return fencing.slot_of(name) in self._held

    def owns_slot(self, slot: str) -> bool:
        """Whether this host holds the lease of ``slot``."""
        return slot in self._held

    def fence(self, names: Iterable[str]) -> dict[str, str]:
        """The fence of a change for these names; names that are not ours get a fence that no change passes."""
        slots = {fencing.slot_of(name) for name in names}
        return {slot: self._held.get(slot, "0") for slot in slots}

    # -- what the host asks

    @property
    def members(self) -> tuple[str, ...]:
        """The live members; none while this host is cut off."""
        return self._ring.members

    @property
    def acting(self) -> bool:
        """False while we are cut off, or have slept: nothing is written."""
        return self.host in self._ring.members and self._members.fresh

    @property
    def owned_slots(self) -> frozenset[str]:
        """The slots that are ours."""
        return frozenset(self._held)

    async def rebalance(self) -> SlotChanges:
        """Claim what should be ours, give up what is not.

        What was lost is not owned any more when this returns; what was gained is, under another term.  The caller
        stops the actors of what was lost before it waits for anything else.

        :raises PeerError: when Redis is away; what was ours stays so in our mind
        """
        ring = self._ring
        if not self.acting:
            return SlotChanges()
        found = await self._store.run(fencing.owners(self._store.keys))
        taken = {slot for slot, owner in self._held.items() if found.get(slot) != owner}
        self._complain(taken, found)
        wanted = {slot for slot in fencing.all_slots() if ring.host(f"slot/{slot}") == self.host}
        kept = {slot: owner for slot, owner in self._held.items() if slot not in taken and slot in wanted}
        lost = frozenset(self._held.keys() - kept.keys())
        self._held = kept
        self._contest(taken)
        gained = sorted(wanted - kept.keys() - self._contested.keys())
        if gained:
            self._held = kept | await self._store.run(fencing.claim(self._store.keys, self.host, gained))
        return SlotChanges(frozenset(gained), lost)

    def refused(self, slot: str) -> None:
        """A change was refused because of ``slot``: it is not ours, whatever we believed."""
        if self._held.pop(slot, None) is not None:
            log.info("slot `%s` has passed to another host", slot)
        self._contest((slot,))
        self.on_change()

    async def release_slots(self) -> None:
        """Release all slots at the end, so that no host waits for them.

        :raises PeerError: when Redis is away
        """
        held, self._held = self._held, {}
        if held:
            await self._store.run(fencing.release(self._store.keys, held))

    def report(self) -> dict[str, Any]:
        """The team's part of the host's report."""
        return {
            "members": list(self.members),
            "acting": self.acting,
            "slots": len(self._held),
            "term": max(map(fencing.owner_term, self._held.values()), default=0),
            "lag": round(self._members.silence, 3),
        }

    def _contest(self, slots: Iterable[str]) -> None:
        """Handle a claim of another host on ``slots``: it may know more of the members than this one, so look again
        first.
        """
        for slot in slots:
            self._contested.setdefault(slot, self._polls + _POLLS)

    def _complain(self, taken: set[str], found: dict[str, str]) -> None:
        if any(fencing.owner_host(found.get(slot, "")) == self.host for slot in taken):
            log.error("another process claims slots as `%s`; every actor host needs an id of its own", self.host)

    def _members_seen(self, members: tuple[str, ...]) -> None:
        self._polls += 1
        settled = [slot for slot, look in self._contested.items() if look <= self._polls]
        for slot in settled:
            del self._contested[slot]
        if members != self._ring.members:
            log.info("the team is %s", ", ".join(members) or "not to be seen: nothing is written until it is")
            self._ring = OwnerRing(members)
            self.on_change()
        elif settled:
            self.on_change()
