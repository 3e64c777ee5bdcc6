"""Services that want to be called when a policy's action is set, changed or taken back.

What is called is registered per filter (``sluice_core.activation``).  A call follows the commit that it is about, so a
service never hears of what is not in force; it is made at least once, and again when the commit's answer was lost: such
a service must take the same call twice.  The last call about one assignment is the one that counts: while a service
is slow, what is out of date before its turn is never sent, and calls about one assignment keep their order.

A host that dies between its commit and the call leaves it undone; so does a service that refuses all attempts.  Both
are in the log, the second is counted.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Final

from sluice_actors.runtime.tasks import Service, Spawn
from sluice_core.activation import ActivationCall, activate, activation_call
from sluice_core.connections.url_allowlist import UrlAllowlist
from sluice_core.errors import DecodeError
from sluice_core.messages.policies import Assignment, Change, Entry
from sluice_core.messages.registry import ACTIVATION, Activation

log = logging.getLogger(__name__)

#: Calls at the same time; a service that never answers holds one of them for its time-out.
_AT_ONCE: Final = 8
#: Assignments that wait for their call; beyond it the oldest is dropped, and counted.
_MOST_WAITING: Final = 10_000


#: An assignment's id, its filter and its target: all three of a replaced policy may differ from what was before.
CallKey = tuple[str, str, str]


@dataclass(slots=True)
class CallCounts:
    """Calls that were accepted, that failed, and that were dropped because too many waited."""

    done: int = 0
    failed: int = 0
    dropped: int = 0


@dataclass(slots=True)
class Activations(Service):
    """The registered activations, and the calls that wait; ``allowlist`` says who may be called."""

    allowlist: UrlAllowlist
    counts: CallCounts = field(default_factory=CallCounts)
    _known: dict[str, Activation] = field(default_factory=dict)
    _waiting: dict[CallKey, ActivationCall] = field(default_factory=dict)
    _busy: set[CallKey] = field(default_factory=set)
    _work: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def waiting(self) -> int:
        """How many assignments wait for their call."""
        return len(self._waiting)

    @property
    def keywords(self) -> frozenset[str]:
        """The filters that have one."""
        return frozenset(self._known)

    def replace(self, entries: Iterable[Entry]) -> None:
        """Know exactly the activations among ``entries``."""
        self._known.clear()
        for entry in entries:
            self._learn(entry)

    def apply(self, change: Change) -> None:
        """What ``change`` says of activations."""
        for key in change.entry_drops:
            kind, _, name = key.partition("/")
            if kind == ACTIVATION:
                self._known.pop(name, None)
        for entry in change.entries:
            self._learn(entry)

    def committed(self, puts: Iterable[Assignment], drops: Iterable[Assignment]) -> None:
        """``puts`` came into force, ``drops`` are not in force any more; must not block."""
        for one in puts:
            self.call(one, undo=False)
        for one in drops:
            self.call(one, undo=True)

    def call(self, assignment: Assignment, undo: bool) -> None:
        """Have the service called, if there is one: ``assignment`` came into force, or (``undo``) is not any more."""
        known = self._known.get(assignment.keyword)
        if known is None:
            return
        # an action that deletes a filter switches the service off, and back on when it is taken back
        off = undo != (assignment.verb == "delete")
        target = assignment.member or assignment.target.name
        call = activation_call(known, target, assignment.params, assignment.place, undo=off)
        if call is None:
            return
        about = (assignment.id, assignment.keyword, target)
        self._waiting.pop(about, None)
        self._waiting[about] = call
        self._work.set()
        if len(self._waiting) > _MOST_WAITING:
            del self._waiting[next(iter(self._waiting))]
            self.counts.dropped += 1

    def start(self, spawn: Spawn) -> None:
        """Have the calls made; what still waits for its call at the end is not called any more."""
        spawn(self.run())

    async def run(self) -> None:
        """Make the calls, for ever; cancel it to end."""
        async with asyncio.TaskGroup() as group:
            for _ in range(_AT_ONCE):
                group.create_task(self._serve())

    def report(self) -> Mapping[str, int]:
        """For the host's report."""
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
            call = self._waiting.pop(about)
            self._busy.add(about)
            try:
                outcome = await activate(call, self.allowlist)
            finally:
                self._busy.discard(about)
                self._work.set()  # the next call about it may go now
            if outcome.done:
                self.counts.done += 1
            else:
                self.counts.failed += 1
                log.error(
                    "activation for `%s` failed after %d attempts: %s", about[0], outcome.attempts, outcome.reason
                )

    def _next(self) -> CallKey | None:
        """The assignment that has waited longest and about which no call is under way."""
        return next((about for about in self._waiting if about not in self._busy), None)
