"""The base of all actors, an object with slots and four life-cycle methods, and the supervision of those that fail."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

log = logging.getLogger(__name__)

Delivery = tuple["Actor", Any]
Work = Iterator[object]

NEW: Final = 0
RUNNING: Final = 1
SUSPENDED: Final = 2
STOPPED: Final = 3


class Actor:
    """Base of all actors.  Only the system calls these methods, one at a time, on its loop."""

    __slots__ = ("_life",)

    def __init__(self) -> None:
        self._life = NEW

    def on_start(self) -> None:
        """Called once after ``spawn`` and once after each suspension.

        An exception counts as a failure: the actor is suspended and started again later.
        """

    def on_message(self, message: Any) -> Work | None:
        """Called for each message.  May return an iterator for work that has to be split into steps.

        An exception (here or in the iterator) drops the message and suspends the actor.
        """

    def on_failure(self, error: Exception) -> None:
        """Called after an exception, before the suspension begins.

        An exception in this method is logged and has no other effect.
        """

    def on_stop(self) -> None:
        """Called once, at ``stop`` or when the system closes; no message comes after it.

        An exception is logged; the actor is stopped all the same.
        """

    @property
    def running(self) -> bool:
        """True between a successful start and a failure or the stop."""
        return self._life == RUNNING


BACKOFF_FIRST: Final = 0.1
BACKOFF_LAST: Final = 30.0
HEALTHY_AFTER: Final = 60.0


@dataclass(slots=True)
class RestartState:
    """The failures of an actor since it was spawned."""

    mailbox: deque[Any]
    failures: int = 0
    failed_at: float = 0.0
    delay: float = 0.0
    timer: asyncio.TimerHandle | None = None


@dataclass(slots=True)
class SystemCounts:
    """Counts since the start of the system, for the host's report."""

    failures: int = 0
    restarts: int = 0
    dropped: int = 0
    longest_slice: float = 0.0


@dataclass(slots=True)
class Supervisor:
    """Suspends the failed actors of one system, keeps their messages, and has them started again.

    :param mailbox: the number of messages kept for a suspended actor; the oldest are dropped
    :param clock: monotonic seconds
    :param restart: called when an actor's suspension has ended
    """

    counts: SystemCounts
    mailbox: int
    clock: Callable[[], float]
    restart: Callable[[Actor], None]
    _states: dict[Actor, RestartState] = field(default_factory=dict)

    @property
    def suspended(self) -> int:
        """The number of actors that wait for their restart."""
        return sum(1 for actor in self._states if actor._life == SUSPENDED)

    def keep(self, actor: Actor, message: Any) -> None:
        """Keep a message for a suspended actor."""
        mailbox = self._states[actor].mailbox
        self.counts.dropped += len(mailbox) == mailbox.maxlen
        mailbox.append(message)

    def kept(self, actor: Actor) -> Iterator[Delivery]:
        """The messages kept for an actor that was started again, as long as it runs.

        A failure in the middle leaves the rest for the next restart.
        """
        mailbox = self._states[actor].mailbox
        while mailbox and actor._life == RUNNING:
            yield actor, mailbox.popleft()

    def forget(self, actor: Actor) -> None:
        """Do not start the actor again, since it stops."""
        state = self._states.pop(actor, None)
        if state is not None and state.timer is not None:
            state.timer.cancel()

    def failed(self, actor: Actor, error: Exception) -> None:
        """Suspend ``actor``."""
        self.counts.failures += 1
        actor._life = SUSPENDED
        state = self._states.get(actor)
        if state is None:
            state = self._states[actor] = RestartState(deque(maxlen=self.mailbox))
        now = self.clock()
        if state.failures and now - state.failed_at - state.delay > HEALTHY_AFTER:
            log.info("%r was healthy again after %d failures in a row", actor, state.failures)
            state.failures = 0
        state.delay = min(BACKOFF_FIRST * 2.0 ** min(state.failures, 20), BACKOFF_LAST)
        state.failures += 1
        state.failed_at = now
        if state.failures == 1:
            log.error("%r failed, restart in %.1f s", actor, state.delay, exc_info=error)
        try:
            actor.on_failure(error)
        except Exception:
            log.exception("%r failed in on_failure", actor)
        state.timer = asyncio.get_running_loop().call_later(state.delay, self._time_is_over, actor, state)

    def _time_is_over(self, actor: Actor, state: RestartState) -> None:
        state.timer = None
        self.counts.restarts += 1
        self.restart(actor)
