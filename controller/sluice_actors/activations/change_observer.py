"""Activations for what is put into force and taken back by others than actor hosts.

Static policies and deployments are written by the API, and so is the end of a dynamic policy or of a controller that
somebody deletes, disables or stops.  Every actor host sees these changes in the stream; the one that owns the policy
calls the service (``sluice_actors.activations.calls``), exactly as for what it decides itself.

A change tells of a drop by its id alone, so what is in force of filters that have an activation is
remembered, by every host.  What nobody owned when it came, because its owner had just died, is called by whoever
owns it within some seconds: rather twice than never, which services must bear anyway.  When the stream has a gap,
what is in force then is compared with what was.
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

#: What hosts call themselves when they write; they call for what they write as soon as it is written.
ACTORS: Final = "actors@"
#: Longer than it takes until a host is missed and its slots are owned by another.
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
    # Slots that became ours, of which calls to services that were not accepted yet are still to be made.
    _unchecked: set[str] = field(default_factory=set)
    _not_ours: deque[_News] = field(default_factory=lambda: deque(maxlen=_MOST_REMEMBERED))

    async def reread(self, history: str) -> None:
        """Read everything; in the same history a difference from what was known is a change that happened meanwhile.

        Another history says nothing of that, and nodes go on with what they had until it is adopted.

        :raises PeerError: when Redis is away
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
        """Read the assignments in force of the filters that have an activation."""
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

        :raises PeerError: when Redis is away
        """
        if self.activations.keywords - self._keywords:
            # which may be later than this change, so its puts are news in any case
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
        """Make the calls to federated services that no host made, or that were not accepted.

        States of filters that are registered no more, whose services nobody can call, are forgotten.

        :raises PeerError: when Redis is away; it is tried again
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
        """Handle slots taken over: no host may have handled their latest changes."""
        self._unchecked.update(slots)
        since = self.clock() - _REMEMBERED
        for news in self._not_ours:
            if news.at >= since and news.slot in slots:
                self.activations.call(news.assignment, news.undo)

    @staticmethod
    def _same(gone: Assignment, now: Assignment | None) -> bool:
        """Whether an assignment is replaced by one of the same filter and target, so that setting it anew is enough."""
        return now is not None and (gone.keyword, gone.verb, gone.path()) == (now.keyword, now.verb, now.path())

    def _request_call(self, assignment: Assignment, undo: bool) -> None:
        if assignment.keyword not in self._keywords:
            return
        name = owned_name(assignment.policy)
        if self.ownership.owns(name):
            self.activations.call(assignment, undo)
        else:
            self._not_ours.append(_News(self.clock(), fencing.slot_of(name), assignment, undo))
