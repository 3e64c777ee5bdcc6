"""Writes the decisions of policy actors to the store.

* One task makes one commit at a time, so the assignments of a policy keep their order.
* A commit has the actor's state at that moment, not the states before: an actor is *dirty* or not, and any number of
  changes while Redis is unreachable becomes one write.
* A commit holds the assignments and the state of up to some hundred policies, and expects the version
  of each policy's document.  A policy that was deleted or replaced meanwhile makes it a conflict, so a
  deleted policy never gets an assignment back; the others of that commit are then written in halves.
* In a team each commit carries the ownership of its policies.  Policies that another host owns by now are
  left out and stopped here, and the rest is written.
* A commit whose answer was lost is made again; it puts the same documents, so repeating it is harmless.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from sluice_actors.policies.actor import PolicyActor
from sluice_actors.runtime.actor import BACKOFF_LAST, HEALTHY_AFTER
from sluice_actors.runtime.event_log import LogEvent, ignore_event
from sluice_actors.runtime.services import Ownership, Service, Spawn, repeat_forever
from sluice_core.errors import Conflict, Fenced, PeerError
from sluice_core.messages.events import POLICY_SUSPENDED
from sluice_core.messages.policies import Assignment, PolicyState
from sluice_core.store.fencing import slot_of
from sluice_core.store.records import Draft
from sluice_core.store.store import AsyncStore
from sluice_dsl.plan import assignment_for

log = logging.getLogger(__name__)

#: Seconds; the decisions of one window come within a few milliseconds, and become one commit after this wait.
_GATHER: Final = 0.005
BATCH: Final = 500
#: Seconds for the last write when the host ends.
_LAST_WRITE: Final = 2.0

AssignmentsById = Mapping[str, Assignment]


@dataclass(frozen=True, slots=True)
class _Entry:
    """The documents to write for one policy at one moment."""

    actor: PolicyActor
    want: AssignmentsById
    puts: list[Assignment]
    drops: list[str]
    state: PolicyState

    @property
    def size(self) -> int:
        return len(self.puts) + len(self.drops) + 1


def wanted_assignments(actor: PolicyActor) -> dict[str, Assignment]:
    """The assignments that ``actor`` wants to be in force now, by id."""
    assignments = (
        assignment_for(actor.policy, actor.plan, number, actor.created, predicate, member)
        for member, number, predicate in actor.in_force()
    )
    return {one.id: one for one in assignments}


@dataclass(slots=True)
class DecisionWriter(Service):
    """Implements ``sluice_actors.policies.actor.DecisionListener`` on a store.

    :param by: the name of the writer
    :param committed: called with the assignments that came into force and those that left it
    :param batch: assignments and states in one change at most
    """

    store: AsyncStore
    by: str
    ownership: Ownership
    committed: Callable[[Iterable[Assignment], Iterable[Assignment]], None]
    batch: int = BATCH
    #: The history to write into; empty allows any.
    history: str = ""
    #: Called with an actor whose policy's document has another version than the one it was made from, or whose policy
    #: another host owns now.
    on_lost: Callable[[PolicyActor], None] = lambda actor: None
    log_event: LogEvent = ignore_event
    _actors: dict[str, PolicyActor] = field(default_factory=dict)
    _written: dict[str, AssignmentsById] = field(default_factory=dict)
    _dirty: dict[str, PolicyActor] = field(default_factory=dict)
    _work: asyncio.Event = field(default_factory=asyncio.Event)
    # Policy → time of its last failure.
    _failed: dict[str, float] = field(default_factory=dict)

    def start(self, spawn: Spawn) -> None:
        spawn(repeat_forever("write", self._step))

    async def close(self) -> None:
        """Write the pending decisions, for at most 2 s."""
        try:
            async with asyncio.timeout(_LAST_WRITE):
                await self.flush()
        except (PeerError, TimeoutError) as error:
            log.warning("%d policies were not written at the end: %s", self.pending, error)

    @property
    def pending(self) -> int:
        """The number of policies that wait to be written."""
        return len(self._dirty)

    def track(self, actor: PolicyActor, stored: Iterable[Assignment]) -> None:
        """Write for ``actor`` from now on; ``stored`` are the assignments of its policy in the store.

        Stored assignments that are not in force are dropped; those in force and not stored are put.
        """
        self._actors[actor.policy] = actor
        self.reconcile(actor, stored)

    def reconcile(self, actor: PolicyActor, stored: Iterable[Assignment]) -> None:
        """Correct the store where it differs from what ``actor`` wants."""
        known = {one.id: one for one in stored}
        if known:
            self._written[actor.policy] = known
        else:
            self._written.pop(actor.policy, None)
        if known != wanted_assignments(actor):
            self.changed(actor)

    def forget(self, policy: str) -> None:
        """Write nothing more for ``policy``."""
        self._actors.pop(policy, None)
        self._written.pop(policy, None)
        self._dirty.pop(policy, None)
        self._failed.pop(policy, None)

    def changed(self, actor: PolicyActor) -> None:
        if self._current(actor):
            self._dirty[actor.policy] = actor
            self._work.set()

    def failed(self, actor: PolicyActor, error: Exception) -> None:
        self.changed(actor)
        now = time.monotonic()
        before = self._failed.get(actor.policy)
        self._failed[actor.policy] = now
        if before is None or now - before > BACKOFF_LAST + HEALTHY_AFTER:  # otherwise it never worked in between
            text = f"policy `{actor.policy}` is suspended: {actor.reason}"
            self.log_event(POLICY_SUSPENDED, text, policy=actor.policy)

    async def _step(self) -> None:
        await self._work.wait()
        await asyncio.sleep(_GATHER)
        try:
            await self.flush()
        except PeerError as error:
            raise PeerError(f"{self.pending} policies wait to be written: {error}") from error

    async def flush(self) -> None:
        """Write the state of every dirty actor.

        :raises PeerError: when the store is unreachable; the actors that were not written stay dirty
        """
        while self._dirty:
            if not self.ownership.acting:
                raise PeerError("cut off from the team of actor hosts")
            entries = self._next_entries()
            try:
                await self._commit(entries)
            except BaseException:
                # These are older than the ones that became dirty meanwhile, so they go first.
                mine = {entry.actor.policy: entry.actor for entry in entries if self._current(entry.actor)}
                self._dirty = {**mine, **self._dirty}
                raise
        self._work.clear()

    def _next_entries(self) -> list[_Entry]:
        entries: list[_Entry] = []
        size = 0
        for actor in self._dirty.values():
            entry = self._entry(actor)
            if entries and size + entry.size > self.batch:
                break
            size += entry.size
            entries.append(entry)
        for entry in entries:
            del self._dirty[entry.actor.policy]
        return entries

    def _entry(self, actor: PolicyActor) -> _Entry:
        written = self._written.get(actor.policy, {})
        want = wanted_assignments(actor)
        puts = [one for name, one in want.items() if written.get(name) != one]
        drops = [name for name in written if name not in want]
        return _Entry(actor, want, puts, drops, actor.state())

    async def _commit(self, entries: list[_Entry]) -> None:
        draft = Draft(
            by=self.by,
            puts=tuple(put for entry in entries for put in entry.puts),
            drops=tuple(drop for entry in entries for drop in entry.drops),
            states=tuple(entry.state for entry in entries),
            expect={f"policy/{entry.actor.policy}": entry.actor.version for entry in entries},
            history=self.history,
            fence=self.ownership.fence(entry.actor.policy for entry in entries),
        )
        try:
            await self.store.commit(draft)
        except Fenced as fenced:
            await self._leave_out(entries, fenced.slot)
            return
        except Conflict as conflict:
            await self._halve(entries, conflict)
            return
        for entry in entries:
            name = entry.actor.policy
            before = self._written.get(name, {})
            self.committed(entry.puts, [before[drop] for drop in entry.drops if drop in before])
            if not self._current(entry.actor):
                continue
            if entry.want:
                self._written[name] = entry.want
            else:
                self._written.pop(name, None)

    async def _leave_out(self, entries: list[_Entry], slot: str) -> None:
        """Drop the entries of policies in ``slot``, which another host owns now."""
        self.ownership.refused(slot)
        rest = []
        for entry in entries:
            if slot_of(entry.actor.policy) == slot:
                self.on_lost(entry.actor)
            elif self._current(entry.actor):
                rest.append(self._entry(entry.actor))
        if rest:
            await self._commit(rest)

    async def _halve(self, entries: list[_Entry], conflict: Conflict) -> None:
        """Write all of ``entries`` except those in conflict."""
        head = await self.store.head()
        if self.history and head.history != self.history:
            raise PeerError(f"history is `{head.history}` now, not `{self.history}`") from conflict
        if len(entries) == 1:
            actor = entries[0].actor
            log.info("policy `%s` was changed by another writer: %s", actor.policy, conflict)
            self.on_lost(actor)
            return
        middle = len(entries) // 2
        for part in (entries[:middle], entries[middle:]):
            half = [self._entry(entry.actor) for entry in part if self._current(entry.actor)]
            if half:
                await self._commit(half)

    def _current(self, actor: PolicyActor) -> bool:
        return self._actors.get(actor.policy) is actor
