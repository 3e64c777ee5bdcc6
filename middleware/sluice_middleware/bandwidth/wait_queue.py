"""Where transfers of one flow pay: the account of this worker, and the green threads that wait before it.

First come, first served.  Whoever waits is served by whoever brings credit, and woken then; it wakes by itself to
look whether the agent still answers, and passes with some debt when its patience is at an end, since Swift at the other
side of the wire would give the transfer up.

Many that wait for a low rate would all lose patience over pieces of the usual size.  Who can do with a part of its
piece gets one, so small that everybody has its turn well before, and waits again for the rest, behind the others.
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

    def ask(self, till: FlowQueue) -> None:
        """Ask for what the till's account wishes, unless it has enough or the agent is away."""

    def silent(self, since: float) -> bool:
        """Whether the agent is away, or does not answer though asked ``since`` then (on the clock of the line)."""

    def leave_alone(self, till: FlowQueue) -> None:
        """Have the till's account fill itself, since the agent is away."""

    def passed_unpaid(self, till: FlowQueue) -> None:
        """A transfer went on without credit, for it had waited long enough."""

    def at_rest(self, till: FlowQueue) -> None:
        """No transfer is open any more."""

    def over(self, transfer: Transfer) -> None:
        """A transfer has ended."""


class Waiter:
    """One green thread that waits for ``size`` bytes, or for ``least`` of them; so many are ``paid``."""

    __slots__ = ("least", "nap", "paid", "patience", "size")

    def __init__(self, size: int, least: int, patience: float) -> None:
        self.size = size
        self.least = least
        self.patience = patience
        self.paid = 0
        self.nap = green.InterruptibleSleep()


class FlowQueue:
    """One flow's; ``open`` transfers pay here."""

    __slots__ = ("_clock", "_line", "account", "needs", "open", "queue")

    def __init__(self, account: TokenAccount, line: CreditSource, clock: Callable[[], float] = time.monotonic) -> None:
        self.account = account
        self.open = 0
        #: Bytes that are waited for.
        self.needs = 0
        self.queue: deque[Waiter] = deque()
        self._line = line
        self._clock = clock

    def pay(self, size: int, least: int, tally: FlowCounter, patience: float) -> int:
        """Come back when ``size`` bytes may pass, or ``least`` of them at least: how many.

        After ``patience`` seconds they may, and are debt.
        """
        if not self.queue and self.account.take(size):
            self._line.ask(self)
            return size
        one = Waiter(size, least, patience)
        self.queue.append(one)
        self.needs += size
        tally.turn(self._clock(), waiting=1)
        try:
            self._wait(one)
        except BaseException:
            if one.paid:
                self.account.refund(one.paid)
            raise
        finally:
            tally.turn(self._clock(), waiting=-1)
            if not one.paid:
                self._leave(one)
            self.serve()
        return one.paid

    def serve(self) -> None:
        """Let pass whom there is credit for, in their order, and ask for what is missing."""
        queue, account = self.queue, self.account
        moved = False
        while queue and account.take(size := self._turn(queue[0])):
            one = queue.popleft()
            self.needs -= one.size
            one.paid = size
            moved = True
            one.nap.end()
        if queue and moved:
            queue[0].nap.end()  # how long it has to wait is another question now
        self._line.ask(self)

    def go_alone(self, newcomer: float | None) -> None:
        """The agent is away: the account fills itself, and who comes first looks anew how long it has to wait.

        :param newcomer: as of :meth:`TokenAccount.go_alone`
        """
        if not self.account.alone:
            self.account.go_alone(newcomer)
            if self.queue:
                self.queue[0].nap.end()

    def _turn(self, one: Waiter) -> int:
        """Bytes that ``one`` is served with: few enough for all that wait to come to their turn soon."""
        account = self.account
        rate = account.rate
        if rate is None:
            rate = account.ceiling or math.inf
        soon = rate * one.patience * _SOON / len(self.queue)
        return max(one.least, int(soon)) if soon < one.size else one.size

    def _wait(self, one: Waiter) -> None:
        begun = self._clock()
        end = begun + one.patience
        self._look(begun)
        while not one.paid:
            left = end - self._clock()
            if left <= 0:
                size = self._turn(one)
                self._leave(one)
                one.paid = size
                self.account.owe(size)
                self._line.passed_unpaid(self)
                break
            pause = _LOOK
            if self.queue[0] is one:
                pause = min(_LOOK, max(_SHORTEST, self.account.seconds(self._turn(one))))
            one.nap.wait(min(left, pause))
            self._look(begun)

    def _leave(self, one: Waiter) -> None:
        self.queue.remove(one)
        self.needs -= one.size

    def _look(self, begun: float) -> None:
        if self._line.silent(begun):
            self._line.leave_alone(self)
        self.serve()


class Transfer:
    """One body on its way: :meth:`pay`, or :meth:`pay_some`, before its bytes pass, :meth:`close` when no more come.

    Without a till nothing is held back, and all is counted.  What ``moved`` comes into the tally when it is looked at,
    each second and at the end: whoever finds its ``account`` to be free may count by itself there.
    """

    __slots__ = ("_line", "_open", "_patience", "_progress", "_seen", "_tally", "account", "moved", "passage", "till")

    def __init__(
        self,
        line: CreditSource,
        till: FlowQueue | None,
        tally: FlowCounter,
        patience: float,
        passage: ObjectTransfer | None = None,
    ) -> None:
        """
        :param patience: seconds that one piece waits at most
        """
        self.till = till
        #: Where it pays, unless that is free.
        self.account = _NOBODYS if till is None else till.account
        self.passage = passage
        self._line = line
        self._tally = tally
        self._patience = patience
        self._open = True
        self.moved = self._seen = 0
        self._progress: Callable[[], int] | None = None

    def follow(self, progress: Callable[[], int]) -> None:
        """Somebody else counts: ``progress`` says how many bytes there were until now."""
        self._progress = progress

    def look(self) -> None:
        """Bring what moved into the tally."""
        if self._progress is not None:
            self.moved = self._progress()
        fresh, self._seen = self.moved - self._seen, self.moved
        self._tally.moved += fresh
        if self.passage is not None:
            self.passage.moved += fresh

    def pay(self, size: int) -> None:
        """Wait until ``size`` bytes may pass, and count them."""
        till = self.till
        if till is not None and not self.account.free and size and self._open:
            till.pay(size, size, self._tally, self._patience)
        self.moved += size

    def pay_some(self, size: int) -> int:
        """Wait until some of ``size`` bytes may pass, and count these: how many.

        All, unless many wait for a low rate; never none of some.
        """
        till = self.till
        if till is not None and not self.account.free and size and self._open:
            size = till.pay(size, min(size, LEAST_TURN), self._tally, self._patience)
        self.moved += size
        return size

    def charge(self, size: int) -> None:
        """``size`` bytes have passed: count them, and let those who come next wait for them, however many they are."""
        if self.till is not None:
            self.till.account.charge(size)
            self._line.ask(self.till)
        self.moved += size

    @property
    def free(self) -> bool:
        """Nothing holds it back now, as far as is known."""
        return self.till is None or self.till.account.unlimited

    @property
    def rate(self) -> float | None:
        """Bytes per second that this worker was told for the flow; None when it is free, or nothing was said yet."""
        return None if self.till is None else self.till.account.rate

    def close(self) -> None:
        """No more bytes come; may be told again."""
        if self._open:
            self.look()
            self._open = False
            self._line.over(self)

    @property
    def tally(self) -> FlowCounter:
        """Where it is counted."""
        return self._tally
