"""The queue of one flow in one worker: transfers wait in it for credit of the flow's token account.

Theory of operation.  Waiters are served first come, first served (:meth:`FlowQueue.serve`), by whoever brings credit.
A waiter that is served is woken.  A waiter wakes by itself every half second to check whether the agent still
answers.  When its patience ends it passes without credit, and the account has debt: otherwise Swift, at the other end
of the connection, would give the transfer up.

Many waiters at a low rate would all lose patience over pieces of the usual size.  A waiter that can do with a part of
its piece therefore gets one turn: few enough bytes for all waiters to have their turn within a quarter of the
patience, and at least :data:`LEAST_TURN`.  It waits for the rest behind the others.

Everything runs on the green threads of one hub, so there is no lock.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable
from typing import Final, Protocol

from sluice_core.messages.bandwidth import Flow
from sluice_middleware.bandwidth.counters import FlowCounter, ObjectTransfer
from sluice_middleware.bandwidth.token_account import TokenAccount
from sluice_middleware.swift import green

#: Seconds between two looks of one that waits.
_LOOK: Final = 0.5
#: The shortest wait of an account that fills itself, seconds.
_SHORTEST: Final = 0.002
#: Part of their patience within which all that wait have their turn …
_SOON: Final = 0.25
#: … as long as a turn is worth the way, bytes.
LEAST_TURN: Final = 1024


#: Of what is counted only.
_NOBODYS: Final = TokenAccount(Flow("", ""))
_NOBODYS.free = True


class CreditSource(Protocol):
    """What a till wants of the line to the agent."""

    def request_credit(self, queue: FlowQueue) -> None:
        """Ask for what the till's account wishes, unless it has enough or the agent is away."""

    def is_silent(self, since: float) -> bool:
        """Whether the agent is away, or does not answer though asked ``since`` then (on the clock of the line)."""

    def detach(self, queue: FlowQueue) -> None:
        """Have the till's account fill itself, since the agent is away."""

    def count_unpaid(self, queue: FlowQueue) -> None:
        """A transfer went on without credit, for it had waited long enough."""

    def queue_is_idle(self, queue: FlowQueue) -> None:
        """No transfer is open any more."""

    def transfer_closed(self, transfer: Transfer) -> None:
        """A transfer has ended."""


class Waiter:
    """One green thread that waits for ``size`` bytes, or for ``least`` of them; so many are ``paid``."""

    __slots__ = ("least", "paid", "patience", "size", "sleep")

    def __init__(self, size: int, least: int, patience: float) -> None:
        self.size = size
        self.least = least
        self.patience = patience
        self.paid = 0
        self.sleep = green.InterruptibleSleep()


class FlowQueue:
    """One flow's; ``open`` transfers pay here."""

    __slots__ = ("_clock", "_source", "account", "bytes_waiting", "open", "waiters")

    def __init__(
        self, account: TokenAccount, source: CreditSource, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.account = account
        self.open = 0
        #: Bytes that are waited for.
        self.bytes_waiting = 0
        self.waiters: deque[Waiter] = deque()
        self._source = source
        self._clock = clock

    def acquire(self, size: int, least: int, counter: FlowCounter, patience: float) -> int:
        """Come back when ``size`` bytes may pass, or ``least`` of them at least: how many.

        After ``patience`` seconds they may, and are debt.
        """
        if not self.waiters and self.account.try_charge(size):
            self._source.request_credit(self)
            return size
        waiter = Waiter(size, least, patience)
        self.waiters.append(waiter)
        self.bytes_waiting += size
        counter.update(self._clock(), waiting=1)
        try:
            self._wait(waiter)
        except BaseException:
            if waiter.paid:
                self.account.refund(waiter.paid)
            raise
        finally:
            counter.update(self._clock(), waiting=-1)
            if not waiter.paid:
                self._leave(waiter)
            self.serve()
        return waiter.paid

    def serve(self) -> None:
        """Let pass whom there is credit for, in their order, and ask for what is missing."""
        queue, account = self.waiters, self.account
        moved = False
        while queue and account.try_charge(size := self._turn_size(queue[0])):
            waiter = queue.popleft()
            self.bytes_waiting -= waiter.size
            waiter.paid = size
            moved = True
            waiter.sleep.wake()
        if queue and moved:
            queue[0].sleep.wake()  # how long it has to wait is another question now
        self._source.request_credit(self)

    def detach(self, newcomer: float | None) -> None:
        """The agent is away: the account fills itself, and who comes first looks anew how long it has to wait.

        :param newcomer: as of :meth:`TokenAccount.detach`
        """
        if not self.account.detached:
            self.account.detach(newcomer)
            if self.waiters:
                self.waiters[0].sleep.wake()

    def _turn_size(self, waiter: Waiter) -> int:
        """Bytes that ``waiter`` is served with: few enough for all that wait to come to their turn soon."""
        account = self.account
        rate = account.rate
        if rate is None:
            rate = account.ceiling or math.inf
        soon = rate * waiter.patience * _SOON / len(self.waiters)
        return max(waiter.least, int(soon)) if soon < waiter.size else waiter.size

    def _wait(self, waiter: Waiter) -> None:
        begun = self._clock()
        end = begun + waiter.patience
        self._check_agent(begun)
        while not waiter.paid:
            left = end - self._clock()
            if left <= 0:
                size = self._turn_size(waiter)
                self._leave(waiter)
                waiter.paid = size
                self.account.add_debt(size)
                self._source.count_unpaid(self)
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
        if self._source.is_silent(begun):
            self._source.detach(self)
        self.serve()


class Transfer:
    """One body on its way: :meth:`pay`, or :meth:`pay_some`, before its bytes pass, :meth:`close` when no more come.

    Without a till nothing is held back, and all is counted.  What ``moved`` comes into the tally when it is looked at,
    each second and at the end: whoever finds its ``account`` to be free may count by itself there.
    """

    __slots__ = (
        "_open",
        "_patience",
        "_progress",
        "_seen",
        "_source",
        "account",
        "counter",
        "moved",
        "object_transfer",
        "queue",
    )

    def __init__(
        self,
        source: CreditSource,
        queue: FlowQueue | None,
        counter: FlowCounter,
        patience: float,
        object_transfer: ObjectTransfer | None = None,
    ) -> None:
        """
        :param patience: seconds that one piece waits at most
        """
        self.queue = queue
        #: Where it pays, unless that is free.
        self.account = _NOBODYS if queue is None else queue.account
        self.object_transfer = object_transfer
        self._source = source
        self.counter = counter
        self._patience = patience
        self._open = True
        self.moved = self._seen = 0
        self._progress: Callable[[], int] | None = None

    def count_from(self, progress: Callable[[], int]) -> None:
        """Somebody else counts: ``progress`` says how many bytes there were until now."""
        self._progress = progress

    def update_counters(self) -> None:
        """Bring what moved into the tally."""
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
            queue.acquire(size, size, self.counter, self._patience)
        self.moved += size

    def acquire_some(self, size: int) -> int:
        """Wait until some of ``size`` bytes may pass, and count these: how many.

        All, unless many wait for a low rate; never none of some.
        """
        queue = self.queue
        if queue is not None and not self.account.free and size and self._open:
            size = queue.acquire(size, min(size, LEAST_TURN), self.counter, self._patience)
        self.moved += size
        return size

    def charge(self, size: int) -> None:
        """``size`` bytes have passed: count them, and let those who come next wait for them, however many they are."""
        if self.queue is not None:
            self.queue.account.charge(size)
            self._source.request_credit(self.queue)
        self.moved += size

    @property
    def free(self) -> bool:
        """Nothing holds it back now, as far as is known."""
        return self.queue is None or self.queue.account.unlimited

    @property
    def rate(self) -> float | None:
        """Bytes per second that this worker was told for the flow; None when it is free, or nothing was said yet."""
        return None if self.queue is None else self.queue.account.rate

    def close(self) -> None:
        """No more bytes come; may be told again."""
        if self._open:
            self.update_counters()
            self._open = False
            self._source.transfer_closed(self)
