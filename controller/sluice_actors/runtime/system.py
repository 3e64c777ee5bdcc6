"""The actor runtime: one asyncio loop, one queue, supervision.

Theory of operation

* An actor is an object with slots and four life-cycle methods.  It has no thread, no task and no
  queue of its own: the system keeps *one* first-in-first-out queue of deliveries, so each actor
  gets its messages in the order in which they were sent.  50,000 actors are 50,000 small objects.
* The pump works through the queue in time slices (5 ms) and returns to the event loop in between.  Longer work
  must be split by its author: ``send_each`` reads an iterator lazily, and
  ``on_message`` may return an iterator, which the pump resumes until it is exhausted.
* An exception suspends the actor that raised it and no other.  The message is dropped, not
  repeated; the actor is suspended for 0.1 s, doubling up to 30 s with each failure in a row, and
  started again.  Meanwhile its messages wait in a bounded mailbox that drops the oldest.  A failure
  after a minute without failures counts as a first one.  The log gets one traceback per burst of failures.

Everything here belongs to the thread of the loop.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from sluice_actors.runtime.actor import (
    NEW,
    RUNNING,
    STOPPED,
    SUSPENDED,
    Actor,
    Delivery,
    Supervisor,
    SystemCounts,
    Work,
)
from sluice_actors.runtime.services import Service

log = logging.getLogger(__name__)

SLICE: Final = 0.005
#: A message may hold a whole window of values, and old ones are of little use.
MAILBOX: Final = 16

#: Messages between two reads of the clock: one read costs as much as a quiet actor's whole message.
_LOOKS_EVERY: Final = 16


@dataclass(slots=True)
class _Resumed:
    """Work that an actor's ``on_message`` returned, to be resumed."""

    work: Work = field(default_factory=lambda: iter(()))


class ActorSystem(Service):
    """Runs actors on the loop in which it is used; the first actor starts the pump.

    :param clock: monotonic seconds
    """

    def __init__(self, mailbox: int = MAILBOX, clock: Callable[[], float] = time.monotonic) -> None:
        self.counts = SystemCounts()
        self._clock = clock
        self._supervisor = Supervisor(
            self.counts, mailbox, clock, lambda actor: self._put(None, self._restarting(actor))
        )
        # None instead of an actor: the second part is an iterator of deliveries.
        self._queue: deque[tuple[Actor | None, Any]] = deque()
        self._actors: set[Actor] = set()
        self._scheduled = False
        self._closed = False
        self._idle_waiters: list[asyncio.Future[None]] = []

    def __len__(self) -> int:
        return len(self._actors)

    @property
    def suspended(self) -> int:
        """The number of actors that wait for their restart."""
        return self._supervisor.suspended

    def spawn(self, actor: Actor) -> None:
        """Queue the start of ``actor``."""
        if self._closed:
            raise RuntimeError("the actor system is closed")
        if actor._life != NEW:
            raise RuntimeError("an actor starts once")
        self._actors.add(actor)
        self._put(None, self._starting(actor))

    def send(self, actor: Actor, message: Any) -> None:
        """Queue the delivery of ``message``; it is dropped when the actor is stopped."""
        self._put(actor, message)

    def send_each(self, deliveries: Iterable[Delivery]) -> None:
        """Deliver many messages; the iterable is read lazily, slice by slice."""
        self._put(None, iter(deliveries))

    def stop(self, actor: Actor) -> None:
        """Queue the stop of ``actor``."""
        self._put(None, self._stopping(actor))

    async def idle(self) -> None:
        """Wait until the queue is empty (suspended actors may still wait for their restart)."""
        while self._queue:
            waiter = asyncio.get_running_loop().create_future()
            self._idle_waiters.append(waiter)
            await waiter

    async def close(self) -> None:
        """Deliver what is queued, then stop every actor."""
        await self.idle()
        for actor in list(self._actors):
            self.stop(actor)
        self._closed = True
        await self.idle()

    # -- the pump

    def _put(self, actor: Actor | None, thing: Any) -> None:
        self._queue.append((actor, thing))
        if not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._run_slice)

    def _run_slice(self) -> None:
        queue, clock = self._queue, self._clock
        began = clock()
        deadline = began + SLICE
        count = 0
        while queue:
            actor, thing = queue.popleft()
            if actor is None:
                if not self._draw(thing, deadline):
                    break
            elif type(thing) is _Resumed:
                if not self._resume(actor, thing, deadline):
                    break
            else:
                self._deliver(actor, thing)
            count += 1
            if count % _LOOKS_EVERY == 0 and clock() > deadline:
                break
        self.counts.longest_slice = max(self.counts.longest_slice, clock() - began)
        self._scheduled = bool(queue)
        if queue:
            asyncio.get_running_loop().call_soon(self._run_slice)
        else:
            self._wake_idle()

    def _wake_idle(self) -> None:
        waiters, self._idle_waiters = self._idle_waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    def _draw(self, source: Iterator[Delivery], deadline: float) -> bool:
        """Deliver what ``source`` yields; False if the time slice has ended and it waits at the head again."""
        count = 0
        try:
            for actor, message in source:
                if actor._life == RUNNING:
                    try:
                        work = actor.on_message(message)
                    except Exception as error:  # noqa: BLE001 - supervision: logged by the supervisor
                        self._supervisor.failed(actor, error)
                    else:
                        if work is not None:
                            self._queue.appendleft((None, source))
                            self._queue.appendleft((actor, _Resumed(work)))
                            return True
                else:
                    self._deliver(actor, message)
                count += 1
                if count % _LOOKS_EVERY == 0 and self._clock() > deadline:
                    self._queue.appendleft((None, source))
                    return False
        except Exception:
            self.counts.failures += 1
            log.exception("a source of messages failed; the rest of them is dropped")
        return True

    def _deliver(self, actor: Actor, message: Any) -> None:
        if actor._life == RUNNING:
            try:
                work = actor.on_message(message)
            except Exception as error:  # noqa: BLE001 - supervision: logged by the supervisor
                self._supervisor.failed(actor, error)
            else:
                if work is not None:
                    self._queue.appendleft((actor, _Resumed(work)))
        elif actor._life == SUSPENDED:
            self._supervisor.keep(actor, message)
        else:
            self.counts.dropped += 1

    def _resume(self, actor: Actor, resumed: _Resumed, deadline: float) -> bool:
        """Continue an actor's work; False if the time slice has ended and it waits at the head again."""
        if actor._life != RUNNING:
            return True
        try:
            for _ in resumed.work:
                if self._clock() > deadline:
                    self._queue.appendleft((actor, resumed))
                    return False
        except Exception as error:  # noqa: BLE001 - supervision: logged by the supervisor
            self._supervisor.failed(actor, error)
        return True

    # -- life cycle

    def _starting(self, actor: Actor) -> Iterator[Delivery]:
        self._start(actor)
        yield from ()

    def _start(self, actor: Actor) -> None:
        actor._life = RUNNING
        try:
            actor.on_start()
        except Exception as error:  # noqa: BLE001 - supervision: logged by the supervisor
            self._supervisor.failed(actor, error)

    def _stopping(self, actor: Actor) -> Iterator[Delivery]:
        if actor._life != STOPPED:
            actor._life = STOPPED
            self._supervisor.forget(actor)
            self._actors.discard(actor)
            try:
                actor.on_stop()
            except Exception:
                log.exception("%r failed while it stopped", actor)
        yield from ()

    def _restarting(self, actor: Actor) -> Iterator[Delivery]:
        if actor._life == SUSPENDED:
            self._start(actor)
            yield from self._supervisor.kept(actor)
