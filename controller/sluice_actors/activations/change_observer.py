"""Activations for assignments that the API, not an actor host, puts into force and takes back.

The API writes static policies and deployments.  It also ends a dynamic policy or a controller that is deleted,
disabled or stopped.  Every actor host sees these changes in the stream; the host that owns the policy calls the service
(``sluice_actors.activations.calls``), exactly as for its own decisions.

A change names a dropped assignment by its id alone, so every host remembers the assignments in force of filters that
have an activation.  A change may come while no host owns its policy, because the owner has just ended.  The host that
takes the policy over within some seconds makes the call: services must accept a call twice, so this is safe.  After a
gap in the stream, the host compares the assignments in force with those that it remembers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Final

from sluice_actors.activations.calls import Activations, owned_name
from sluice_actors.runtime.services import Ownership
from sluice_core.describe import SERVICE
from sluice_core.messages.policies import NAME, TENANT, Assignment, Change, Target
from sluice_core.messages.registry import CALL_DONE
from sluice_core.store import fencing
from sluice_core.store.store import AsyncStore

#: The prefix of actor hosts as writers of a change; they make the calls for their own writes at once.
ACTORS: Final = "actors@"
#: Seconds; longer than the team needs to detect a lost host and to reassign its slots.
_REMEMBERED: Final = 12.0
_MOST_REMEMBERED: Final = 10_000


@dataclass(frozen=True, slots=True)
class _News:
    at: float
    slot: str
    assignment: Assignment
    undo: bool


@dataclass(slots=True)
class ChangeObserver:
    """Follows the change stream for :class:`Activations`."""

    store: AsyncStore
    activations: Activations
    ownership: Ownership
    clock: Callable[[], float]
    _in_force: dict[str, Assignment] = field(default_factory=dict)
    _keywords: frozenset[str] = frozenset()
    _history: str | None = None
    # Slots that this host gained, whose calls that no service has accepted yet are still to be made.
    _unchecked: set[str] = field(default_factory=set)
    _not_ours: deque[_News] = field(default_factory=lambda: deque(maxlen=_MOST_REMEMBERED))

    async def reread(self, history: str) -> None:
        """Read everything; within one history, a difference from the remembered assignments is a missed change.

        Under another history there is nothing to compare, and nodes keep their assignments until they adopt it.

        :raises PeerError: when Redis is unreachable
        """
        before, self._in_force = self._in_force, await self._read()
        known = self._history is not None and self._history in ("", history)
        self._history = history
        if known:
            for name in sorted(before.keys() - self._in_force.keys()):
                self._request_call(before[name], undo=True)
            for name, one in self._in_force.items():
                if before.get(name) != one:
                    self._request_call(one, undo=False)

    async def _read(self) -> dict[str, Assignment]:
        """Read the assignments in force of all filters that have an activation."""
        keys, keywords = self.store.keys, self.activations.keywords
        in_force: dict[str, Assignment] = {}
        names = await self.store.run(fencing.hash_fields(keys.assignments)) if keywords else []
        for part in fencing.chunks(names):
            for one in await self.store.run(fencing.assignments(keys, part)):
                if one.keyword in keywords:
                    in_force[one.id] = one
        self._keywords = keywords
        return in_force

    async def apply(self, change: Change) -> None:
        """Requests the calls that follow from ``change``, which was applied to the activations before.

        :raises PeerError: when Redis is unreachable
        """
        if self.activations.keywords - self._keywords:
            # This read may already contain later changes, so the puts of this change count as new in any case.
            self._in_force = await self._read()
        self._keywords = self.activations.keywords
        put = {one.id for one in change.puts}
        old = [self._in_force.pop(name, None) for name in (*change.drops, *put)]
        self._in_force.update({one.id: one for one in change.puts if one.keyword in self._keywords})
        if change.by.startswith(ACTORS):
            return
        for gone in old:
            if gone is not None and not (gone.id in put and self._same(gone, self._in_force.get(gone.id))):
                self._request_call(gone, undo=True)
        for one in change.puts:
            self._request_call(one, undo=False)

    async def reconcile(self) -> None:
        """Make the calls to federated services that no host made, or that no service accepted.

        Remove the states of filters that are no longer registered, whose services cannot be called.

        :raises PeerError: when Redis is unreachable; it is tried again
        """
        keywords = self.activations.service_keywords
        slots = self._unchecked
        if not slots:
            return
        states = await self.store.service_states()
        self._unchecked = set()
        for assignment in list(self._in_force.values()):
            if assignment.keyword in keywords and fencing.slot_of(owned_name(assignment.policy)) in slots:
                state = states.get(assignment.id)
                if state is None or state.state != CALL_DONE or dict(state.params) != dict(assignment.params):
                    self.activations.call(assignment, undo=False)
        for state in states.values():
            gone = Assignment(
                state.assignment,
                state.policy,
                SERVICE,
                "delete" if state.undo else "set",
                state.keyword,
                Target(TENANT, NAME, state.target),
                params=state.params,
                place=state.place,
            )
            if gone.id in self._in_force or fencing.slot_of(owned_name(gone.policy)) not in slots:
                continue
            if gone.keyword not in keywords:
                self.activations.states.keep(gone.id, None)
            else:
                self.activations.call(gone, undo=gone.verb == "set")

    def slots_gained(self, slots: Collection[str]) -> None:
        """Handle slots that this host took over: no host may have handled their latest changes."""
        self._unchecked.update(slots)
        since = self.clock() - _REMEMBERED
        for news in self._not_ours:
            if news.at >= since and news.slot in slots:
                self.activations.call(news.assignment, news.undo)

    @staticmethod
    def _same(gone: Assignment, now: Assignment | None) -> bool:
        """Whether ``now`` replaces an assignment of the same filter and target, so one call that sets it is enough."""
        return now is not None and (gone.keyword, gone.verb, gone.path()) == (now.keyword, now.verb, now.path())

    def _request_call(self, assignment: Assignment, undo: bool) -> None:
        if assignment.keyword not in self._keywords:
            return
        name = owned_name(assignment.policy)
        if self.ownership.owns(name):
            self.activations.call(assignment, undo)
        else:
            self._not_ours.append(_News(self.clock(), fencing.slot_of(name), assignment, undo))
