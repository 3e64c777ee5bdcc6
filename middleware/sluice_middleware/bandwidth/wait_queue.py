"""The queue of one flow in one worker: transfers wait in it for credit of the flow's token account.

Theory of operation.  Waiters are served first come, first served (:meth:`FlowQueue.serve`), by the caller that adds
credit.  A waiter that is served is woken.  A waiter wakes by itself every half second to check whether the agent still
answers.  When its patience ends it passes without credit, and the account has debt: otherwise Swift, at the other end
of the connection, would time out.

Many waiters at a low rate would all reach the end of their patience over pieces of the usual size.  A waiter that
accepts a part of its piece therefore gets one turn: few enough bytes for all waiters to have their turn within a
quarter of the patience, and at least :data:`LEAST_TURN`.  It waits for the rest behind the others.

Everything runs on the green threads of one hub, so there is no lock.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Protocol

from sluice_core.messages.bandwidth import Flow
from sluice_middleware.bandwidth.counters import FlowCounter, ObjectTransfer
from sluice_middleware.bandwidth.token_account import TokenAccount
from sluice_middleware.swift import green

#: Seconds after which a waiter wakes by itself.
_LOOK: Final = 0.5
#: The shortest wait of an account that fills itself, seconds.
_SHORTEST: Final = 0.002
#: The fraction of their patience within which all waiters have a turn …
_SOON: Final = 0.25
#: … of at least this many bytes.
LEAST_TURN: Final = 1024


#: The account of transfers that are only counted.
_UNCHARGED: Final = TokenAccount(Flow("", ""))
_UNCHARGED.free = True


class CreditSource(Protocol):
    """The client of the agent, as a queue needs it."""

    def request_credit(self, queue: FlowQueue) -> None:
        """Request credit for the queue's account, unless it has enough or the agent is unreachable."""

    def is_silent(self, since: float) -> bool:
        """Whether the agent is unreachable, or has not answered a request made at ``since`` (on the client's clock)."""

    def detach(self, queue: FlowQueue) -> None:
        """Let the queue's account fill itself while the agent is unreachable."""

    def count_unpaid(self, queue: FlowQueue) -> None:
        """Count a piece that passed without credit at the end of its patience."""

    def queue_is_idle(self, queue: FlowQueue) -> None:
        """Called when the last transfer of the queue has closed."""

    def transfer_closed(self, transfer: Transfer) -> None:
        """Called once when a transfer closes."""


@dataclass(slots=True, eq=False)
class Waiter:
    """A green thread that waits for credit for ``size`` bytes, at least for ``least``; ``paid``: bytes charged."""

    size: int
    least: int
    patience: float
    paid: int = 0
    sleep: green.InterruptibleSleep = field(default_factory=green.InterruptibleSleep)


@dataclass(slots=True, eq=False)
class FlowQueue:
    """The transfers of one flow that wait for credit of its account; ``open`` counts its open transfers."""

    account: TokenAccount
    source: CreditSource
    clock: Callable[[], float] = time.monotonic
    open: int = 0
    #: The sum of the bytes that waiters wait for.
    bytes_waiting: int = 0
    waiters: deque[Waiter] = field(default_factory=deque)

    def acquire(self, size: int, least: int, counter: FlowCounter, patience: float) -> int:
        """Wait until ``size`` bytes may pass, or a part of at least ``least``; return the number of bytes charged.

        :param patience: seconds after which the bytes pass without credit and become debt
        """
        if not self.waiters and self.account.try_charge(size):
            self.source.request_credit(self)
            return size
        waiter = Waiter(size, least, patience)
        self.waiters.append(waiter)
        self.bytes_waiting += size
        counter.update(self.clock(), waiting=1)
        try:
            self._wait(waiter)
        except BaseException:
            if waiter.paid:
                self.account.refund(waiter.paid)
            raise
        finally:
            counter.update(self.clock(), waiting=-1)
            if not waiter.paid:
                self._leave(waiter)
            self.serve()
        return waiter.paid

    def serve(self) -> None:
        """Serve waiters in their order while there is credit, and request the missing credit."""
        queue, account = self.waiters, self.account
        moved = False
        while queue and account.try_charge(size := self._turn_size(queue[0])):
            waiter = queue.popleft()
            self.bytes_waiting -= waiter.size
            waiter.paid = size
            moved = True
            waiter.sleep.wake()
        if queue and moved:
            queue[0].sleep.wake()  # its waiting time has changed
        self.source.request_credit(self)

    def charge(self, size: int) -> None:
        """Charge ``size`` bytes without waiting, and request credit for later ones."""
        self.account.charge(size)
        self.source.request_credit(self)

    def detach(self, newcomer: float | None) -> None:
        """Handle the loss of the agent: the account fills itself, and the first waiter computes its waiting time again.

        :param newcomer: as of :meth:`TokenAccount.detach`
        """
        if not self.account.detached:
            self.account.detach(newcomer)
            if self.waiters:
                self.waiters[0].sleep.wake()

    def _turn_size(self, waiter: Waiter) -> int:
        """Bytes of one turn of ``waiter``: few enough for all waiters to have a turn soon."""
        account = self.account
        rate = account.rate
        if rate is None:
            rate = account.ceiling or math.inf
        soon = rate * waiter.patience * _SOON / len(self.waiters)
        return max(waiter.least, int(soon)) if soon < waiter.size else waiter.size

    def _wait(self, waiter: Waiter) -> None:
        begun = self.clock()
        end = begun + waiter.patience
        self._check_agent(begun)
        while not waiter.paid:
            left = end - self.clock()
            if left <= 0:
                size = self._turn_size(waiter)
                self._leave(waiter)
                waiter.paid = size
                self.account.add_debt(size)
                self.source.count_unpaid(self)
                break
            pause = _LOOK
            if self.waiters[0] is waiter:
                pause = min(_LOOK, max(_SHORTEST, self.account.seconds_until(self._turn_size(waiter))))
            waiter.sleep.wait(min(left, pause))
            self._check_agent(begun)

    def _leave(self, waiter: Waiter) -> None:
        self.waiters.remove(waiter)
        self.bytes_waiting -= waiter.size

    def _check_agent(self, begun: float) -> None:
        if self.source.is_silent(begun):
            self.source.detach(self)
        self.serve()


@dataclass(slots=True, eq=False)
class Transfer:
    """One body: call :meth:`acquire` or :meth:`acquire_some` before its bytes pass, :meth:`close` after the last.

    Without a queue no bytes are held back, and all are counted.  ``moved`` is added to the counter each second and at
    the
    end, so that a caller that finds ``account.free`` may add to ``moved`` itself: the shortest way for most pieces.
    """

    source: CreditSource
    queue: FlowQueue | None
    counter: FlowCounter
    #: Seconds that one piece waits at most.
    patience: float
    object_transfer: ObjectTransfer | None = None
    #: The account that is charged; an unlimited one without a queue.
    account: TokenAccount = field(init=False)
    moved: int = 0
    _seen: int = 0
    _open: bool = True
    _progress: Callable[[], int] | None = None

    def __post_init__(self) -> None:
        self.account = _UNCHARGED if self.queue is None else self.queue.account

    def count_from(self, progress: Callable[[], int]) -> None:
        """Read the number of bytes from ``progress`` instead of counting them here."""
        self._progress = progress

    def update_counters(self) -> None:
        """Add the bytes moved since the last call to the counters."""
        if self._progress is not None:
            self.moved = self._progress()
        fresh, self._seen = self.moved - self._seen, self.moved
        self.counter.moved += fresh
        if self.object_transfer is not None:
            self.object_transfer.moved += fresh

    def acquire(self, size: int) -> None:
        """Wait until ``size`` bytes may pass, and count them."""
        queue = self.queue
        if queue is not None and not self.account.free and size and self._open:
            queue.acquire(size, size, self.counter, self.patience)
        self.moved += size

    def acquire_some(self, size: int) -> int:
        """Wait until some of ``size`` bytes may pass, and count them; return their number, at least 1.

        It is all of them, unless many transfers wait at a low rate.
        """
        queue = self.queue
        if queue is not None and not self.account.free and size and self._open:
            size = queue.acquire(size, min(size, LEAST_TURN), self.counter, self.patience)
        self.moved += size
        return size

    def charge(self, size: int) -> None:
        """Count and charge ``size`` bytes that have passed; later bytes wait until the debt is paid."""
        if self.queue is not None:
            self.queue.charge(size)
        self.moved += size

    @property
    def free(self) -> bool:
        """Whether the flow is unlimited now, as far as this worker knows."""
        return self.queue is None or self.queue.account.unlimited

    @property
    def rate(self) -> float | None:
        """Bytes per second granted to this worker for the flow; None if unlimited or not granted yet."""
        return None if self.queue is None else self.queue.account.rate

    def close(self) -> None:
        """End the transfer; may be called again."""
        if self._open:
            self.update_counters()
            self._open = False
            self.source.transfer_closed(self)
