"""Calls of services that are registered for a policy's action: when it is set, changed or taken back.

An activation is registered per filter (``sluice_core.activation``).  A call follows the commit that it is about, so
a service learns only of actions in force.  The host makes a call at least once, and again when the answer of the commit
was lost, so a service must accept the same call twice.  The last call about an assignment counts: while a service is
slow, a call that is out of date before its turn is never sent.  Calls about one assignment keep their order.

A call is lost when the host ends between its commit and the call, and when the service refuses all attempts.  The log
has both cases; the second one is counted.

The filter of a third party (``Activation.service``) is enforced by its calls alone.  Therefore Redis keeps the answer
of its service, for ``enforced`` of its policy (:class:`ServiceStates`).  A call that failed is made again, with growing
pauses, until the service accepts it or it is out of date.  A host that takes over makes the calls that no service has
accepted yet.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Final

from sluice_actors.runtime.services import Service, Spawn, repeat_forever
from sluice_core.activation import ActivationCall, Outcome, activate, activation_call
from sluice_core.connections.url_allowlist import UrlAllowlist
from sluice_core.errors import DecodeError
from sluice_core.messages.policies import Assignment, Change, Entry
from sluice_core.messages.registry import ACTIVATION, CALL_DONE, CALL_FAILED, Activation, ServiceState
from sluice_core.process.logs import log_fields, request_id
from sluice_core.store.store import AsyncStore

log = logging.getLogger(__name__)


@dataclass(slots=True)
class ServiceStates(Service):
    """The states that are not written to Redis yet; they wait while Redis is unreachable."""

    store: AsyncStore
    _unwritten: dict[str, ServiceState | None] = field(default_factory=dict)
    _work: asyncio.Event = field(default_factory=asyncio.Event)

    def keep(self, assignment: str, state: ServiceState | None) -> None:
        """Write the state of an assignment's call soon; None removes it."""
        self._unwritten[assignment] = state
        self._work.set()

    def start(self, spawn: Spawn) -> None:
        """Start writing states."""
        spawn(repeat_forever("service states", self._write))

    async def _write(self) -> None:
        await self._work.wait()
        self._work.clear()
        changes, self._unwritten = self._unwritten, {}
        try:
            await self.store.write_service_states(changes)
        except BaseException:
            self._unwritten = {**changes, **self._unwritten}
            self._work.set()
            raise


#: Calls at the same time; a service that never answers occupies one of them until its time-out.
_AT_ONCE: Final = 8
#: The longest pause before a failed call to a third party's service is made again.
_LONGEST_PAUSE: Final = 300.0
#: Assignments that wait for their call; beyond this number the oldest is dropped, and counted.
_MOST_WAITING: Final = 10_000


#: An assignment's id, its filter and its target: a policy that is replaced may change all three.
CallKey = tuple[str, str, str]


def owned_name(policy: str) -> str:
    """The name under which a host owns the work for ``policy``: the policy's id, or ``controller/<name>``."""
    return policy.replace("controller:", "controller/", 1)


@dataclass(frozen=True, slots=True)
class _PendingCall:
    """A call, its state if it calls a third party's service, and the seconds before it is made again."""

    call: ActivationCall
    state: ServiceState | None = None
    pause: float = 0.0


@dataclass(slots=True)
class CallCounts:
    """Calls that were accepted, that failed, and that were dropped because too many waited."""

    done: int = 0
    failed: int = 0
    dropped: int = 0


@dataclass(slots=True)
class Activations(Service):
    """The registered activations, and the calls that wait; ``allowlist`` restricts the addresses that may be called."""

    allowlist: UrlAllowlist
    states: ServiceStates
    #: Whether this host owns a policy; a failed call is made again only if it does.
    owns: Callable[[str], bool] = lambda name: True
    #: Seconds before a failed call to a third party's service is made again; twice as long each further time.
    first_pause: float = 2.0
    counts: CallCounts = field(default_factory=CallCounts)
    _known: dict[str, Activation] = field(default_factory=dict)
    _waiting: dict[CallKey, _PendingCall] = field(default_factory=dict)
    # Failed calls to services, until they are made again or a newer call about the same assignment replaces them.
    _failed: dict[CallKey, _PendingCall] = field(default_factory=dict)
    _busy: set[CallKey] = field(default_factory=set)
    _work: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def waiting(self) -> int:
        """The number of assignments that wait for their call."""
        return len(self._waiting)

    @property
    def service_keywords(self) -> frozenset[str]:
        """The filters that services of third parties enforce."""
        return frozenset(name for name, one in self._known.items() if one.service)

    @property
    def keywords(self) -> frozenset[str]:
        """The filters that have an activation."""
        return frozenset(self._known)

    def replace(self, entries: Iterable[Entry]) -> None:
        """Replaces all activations by those among ``entries``."""
        self._known.clear()
        for entry in entries:
            self._learn(entry)

    def apply(self, change: Change) -> None:
        """Applies the registrations and removals of activations in ``change``."""
        for key in change.entry_drops:
            kind, _, name = key.partition("/")
            if kind == ACTIVATION:
                self._known.pop(name, None)
        for entry in change.entries:
            self._learn(entry)

    def committed(self, puts: Iterable[Assignment], drops: Iterable[Assignment]) -> None:
        """``puts`` came into force, ``drops`` left it; must not block."""
        for assignment in puts:
            self.call(assignment, undo=False)
        for assignment in drops:
            self.call(assignment, undo=True)

    def call(self, assignment: Assignment, undo: bool) -> None:
        """Queue the call of the service, if the filter has an activation.

        :param undo: ``assignment`` left force; otherwise it came into force
        """
        known = self._known.get(assignment.keyword)
        if known is None:
            return
        # An action that deletes a filter switches the service off, and on again when the action is taken back.
        off = undo != (assignment.verb == "delete")
        target = assignment.member or assignment.target.name
        call = activation_call(known, target, assignment.params, assignment.place, undo=off)
        about = (assignment.id, assignment.keyword, target)
        self._failed.pop(about, None)
        state = None
        if known.service:
            state = ServiceState(
                assignment.id,
                assignment.policy,
                assignment.keyword,
                target,
                undo=off,
                params=assignment.params,
                place=assignment.place,
            )
            self.states.keep(assignment.id, None if call is None and off else state)
        if call is None:
            return
        self._waiting.pop(about, None)
        self._enqueue(about, _PendingCall(call, state))

    def _enqueue(self, about: CallKey, pending: _PendingCall) -> None:
        self._waiting[about] = pending
        self._work.set()
        if len(self._waiting) > _MOST_WAITING:
            del self._waiting[next(iter(self._waiting))]
            self.counts.dropped += 1

    def start(self, spawn: Spawn) -> None:
        """Start making calls; calls that still wait when the host ends are not made."""
        spawn(self.run())

    async def run(self) -> None:
        """Make the calls until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(_AT_ONCE):
                group.create_task(self._serve())

    def report(self) -> Mapping[str, int]:
        """The counts of calls, for the host's report."""
        return {"waiting": self.waiting, **asdict(self.counts)}

    def _learn(self, entry: Entry) -> None:
        if entry.kind != ACTIVATION:
            return
        try:
            self._known[entry.name] = Activation.read(entry)
        except DecodeError as error:
            log.error("activation of `%s` cannot be read and is not called: %s", entry.name, error)
            self._known.pop(entry.name, None)

    async def _serve(self) -> None:
        while True:
            about = self._next()
            if about is None:
                self._work.clear()
                await self._work.wait()
                continue
            pending = self._waiting.pop(about)
            self._busy.add(about)
            with log_fields(request=request_id("")):
                outcome = await self._make(about, pending)
            if pending.state is not None and about not in self._waiting:
                self._conclude(about, pending, outcome)

    async def _make(self, about: CallKey, pending: _PendingCall) -> Outcome:
        """Make a call, and count and log how it ended."""
        try:
            outcome = await activate(pending.call, self.allowlist)
        finally:
            self._busy.discard(about)
            self._work.set()  # the next call about this assignment may start now
        if outcome.done:
            self.counts.done += 1
        else:
            self.counts.failed += 1
            log.error("activation for `%s` failed after %d attempts: %s", about[0], outcome.attempts, outcome.reason)
        return outcome

    def _conclude(self, about: CallKey, pending: _PendingCall, outcome: Outcome) -> None:
        """Keep the answer of the service, and schedule a failed call again."""
        assert pending.state is not None
        attempts = pending.state.attempts + outcome.attempts
        state = replace(
            pending.state,
            state=CALL_DONE if outcome.done else CALL_FAILED,
            reason=outcome.reason,
            attempts=attempts,
            at=time.time(),
        )
        self.states.keep(about[0], None if outcome.done and state.undo else state)
        if not outcome.done:
            pause = min(pending.pause * 2, _LONGEST_PAUSE) or self.first_pause
            again = self._failed[about] = _PendingCall(pending.call, state, pause)
            asyncio.get_running_loop().call_later(pause, self._retry, about, again)

    def _retry(self, about: CallKey, pending: _PendingCall) -> None:
        if self._failed.get(about) is pending:
            del self._failed[about]
            assert pending.state is not None
            if self.owns(owned_name(pending.state.policy)):
                self._enqueue(about, pending)

    def _next(self) -> CallKey | None:
        """The assignment that has waited longest and about which no call is running; None without any."""
        return next((about for about in self._waiting if about not in self._busy), None)
