"""A team of actor hosts that divides the policies, controllers and services among its members.

Theory of operation

* tooz reports the members (``sluice_actors.hosts.members``); a hash ring over them gives the host that *should* own a
  slot.  Members may see this differently for a moment, so a view alone permits nothing.
* Redis has the *owner* of each slot, under a term that changes with each claim (``sluice_core.store.fencing``).
  :meth:`Team.rebalance` claims the slots that the ring gives this host, and releases those that it does not, or that
  another host has claimed.  Every change carries the ownership under which it was decided, and is refused if that has
  ended.
* A host does not claim back a slot that another host took before it has read the members again: otherwise a host that
  learns late of a new member would take back the slots that the new member has just claimed.
* A host that is cut off from Redis learns nothing and can change nothing.  It remembers its slots: if no other host
  has claimed them when the connection is back, the decisions made meanwhile are still valid and are written.
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

#: Polls of the members after another host's claim was found: the first may have begun before the claim.
_POLLS: Final = 2
#: Points of each host on the ring: the shares of two hosts then differ by a few per cent.
_POINTS: Final = 256


@dataclass(frozen=True, slots=True)
class SlotChanges:
    """Slots that this host gained and lost; a slot may be in both, if another host owned it meanwhile."""

    gained: frozenset[str] = frozenset()
    lost: frozenset[str] = frozenset()


class OwnerRing:
    """Maps each slot to its owner among some members."""

    def __init__(self, members: Iterable[str]) -> None:
        self.members = tuple(members)
        self._ring = HashRing(self.members, partitions=_POINTS)

    def host(self, name: str) -> str:
        """The owner of ``name``; empty without members."""
        if not self.members:
            return ""
        (found,) = self._ring.get_nodes(name.encode("utf-8", "surrogateescape"))
        return str(found)


class Team:
    """Ownership by a team; the host calls :meth:`rebalance` after each change of the members or slots."""

    def __init__(self, store: AsyncStore, host: str, url: str, beat: float) -> None:
        self.host = host
        self._store = store
        self._members = Members(url, host, f"{store.keys.prefix}:team", beat, self._members_seen)
        self._ring = OwnerRing(())
        self._held: dict[str, str] = {}
        # Slot → number of polls that must be complete before this host claims it from another one.
        self._contested: dict[str, int] = {}
        self._polls = 0
        #: Called on the host's loop after results of :meth:`owns` may have changed.
        self.on_change: Callable[[], None] = lambda: None

    def start(self) -> None:
        """Join the team, on the running loop."""
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
        """The fence of a change for these names; names of other owners get a fence that no change passes."""
        slots = {fencing.slot_of(name) for name in names}
        return {slot: self._held.get(slot, "0") for slot in slots}

    # -- called by the host

    @property
    def members(self) -> tuple[str, ...]:
        """The live members; none while this host is cut off."""
        return self._ring.members

    @property
    def acting(self) -> bool:
        """False while this host is cut off, or was suspended: nothing is written."""
        return self.host in self._ring.members and self._members.fresh

    @property
    def owned_slots(self) -> frozenset[str]:
        """The slots that this host owns."""
        return frozenset(self._held)

    async def rebalance(self) -> SlotChanges:
        """Claim the slots that this host should own, release the others.

        Lost slots are not owned any more when this returns; gained slots are, under another term.  The caller stops the
        actors of lost slots before it waits for anything else.

        :raises PeerError: when Redis is unreachable; the host then keeps its slots in memory
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
        """Handle a change that was refused because of ``slot``: another host owns it."""
        if self._held.pop(slot, None) is not None:
            log.info("slot `%s` has passed to another host", slot)
        self._contest((slot,))
        self.on_change()

    async def release_slots(self) -> None:
        """Release all slots at the end, so that the other hosts need not wait for a time-out.

        :raises PeerError: when Redis is unreachable
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
        """Handle a claim of another host on ``slots``: that host may know more members, so read the members first."""
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
            log.info("the team is %s", ", ".join(members) or "unknown: nothing is written until it is known")
            self._ring = OwnerRing(members)
            self.on_change()
        elif settled:
            self.on_change()
