"""Where transfers of one flow pay: the account of this worker, and the green threads that wait before it.

First come, first served.  Whoever waits is served by whoever brings credit, and woken then; it wakes by itself to
look whether the agent still answers, and passes with some debt when its patience is at an end, since Swift at the other
side of the wire would give the transfer up.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Final, Protocol

from sluice_middleware import green
from sluice_middleware.credit_account import CreditAccount
from sluice_middleware.credit_tally import Passage, Tally

#: Seconds between two looks of one that waits.
_LOOK: Final = 0.5
#: The shortest wait of an account that fills itself, seconds.
_SHORTEST: Final = 0.002


class Line(Protocol):
    """What a till wants of the line to the agent."""

    def ask(self, till: Till) -> None:
        """Ask for what the till's account wishes, unless it has enough or the agent is away."""

    def silent(self, since: float) -> bool:
        """Whether the agent is away, or does not answer though asked ``since`` then (on the clock of the line)."""

    def leave_alone(self, till: Till) -> None:
        """Have the till's account fill itself, since the agent is away."""

    def passed_unpaid(self, till: Till) -> None:
        """A transfer went on without credit, for it had waited long enough."""

    def at_rest(self, till: Till) -> None:
        """No transfer is open any more."""

    def over(self, transfer: Transfer) -> None:
        """A transfer has ended."""


class _Customer:
    """One green thread that waits for ``size`` bytes."""

    __slots__ = ("nap", "paid", "size")

    def __init__(self, size: int) -> None:
        self.size = size
        self.paid = False
        self.nap = green.Nap()


class Till:
    """One flow's; ``open`` transfers pay here."""

    __slots__ = ("_clock", "_line", "account", "open", "queue")

    def __init__(self, account: CreditAccount, line: Line, clock: Callable[[], float] = time.monotonic) -> None:
        self.account = account
        self.open = 0
        self.queue: deque[_Customer] = deque()
        self._line = line
        self._clock = clock

    @property
    def needs(self) -> int:
        """Bytes that are waited for."""
        return sum(one.size for one in self.queue)

    def pay(self, size: int, tally: Tally, patience: float) -> None:
        """Come back when ``size`` bytes may pass; after ``patience`` seconds they may, and are debt."""
        if not self.queue and self.account.take(size):
            self._line.ask(self)
            return
        one = _Customer(size)
        self.queue.append(one)
        tally.turn(self._clock(), waiting=1)
        try:
            self._wait(one, patience)
        except BaseException:
            if one.paid:
                self.account.refund(size)
            raise
        finally:
            tally.turn(self._clock(), waiting=-1)
            if not one.paid:
                self.queue.remove(one)
            self.serve()

    def serve(self) -> None:
        """Let pass whom there is credit for, in their order, and ask for what is missing."""
        queue, account = self.queue, self.account
        moved = False
        while queue and account.take(queue[0].size):
            one = queue.popleft()
            one.paid = moved = True
            one.nap.end()
        if queue and moved:
            queue[0].nap.end()  # how long it has to wait is another question now
        self._line.ask(self)

    def _wait(self, one: _Customer, patience: float) -> None:
        begun = self._clock()
        end = begun + patience
        self._look(begun)
        while not one.paid:
            left = end - self._clock()
            if left <= 0:
                self.queue.remove(one)
                one.paid = True
                self.account.owe(one.size)
                self._line.passed_unpaid(self)
                break
            pause = _LOOK
            if self.queue[0] is one:
                pause = min(_LOOK, max(_SHORTEST, self.account.seconds(one.size)))
            one.nap.wait(min(left, pause))
            self._look(begun)

    def _look(self, begun: float) -> None:
        if self._line.silent(begun):
            self._line.leave_alone(self)
        self.serve()


class Transfer:
    """One body on its way: :meth:`pay` before its bytes pass, :meth:`close` when no more come.

    Without a till nothing is held back, and all is counted.
    """

    __slots__ = ("_line", "_open", "_patience", "_tally", "passage", "till")

    def __init__(
        self, line: Line, till: Till | None, tally: Tally, patience: float, passage: Passage | None = None
    ) -> None:
        """
        :param patience: seconds that one piece waits at most
        """
        self.till = till
        self.passage = passage
        self._line = line
        self._tally = tally
        self._patience = patience
        self._open = True

    def pay(self, size: int) -> None:
        """Wait until ``size`` bytes may pass, and count them."""
        till = self.till
        if till is not None and not till.account.free and size and self._open:
            till.pay(size, self._tally, self._patience)
        self._tally.moved += size
        if self.passage is not None:
            self.passage.moved += size

    def charge(self, size: int) -> None:
        """``size`` bytes have passed: count them, and let those who come next wait for them, however many they are."""
        if self.till is not None:
            self.till.account.charge(size)
            self._line.ask(self.till)
        self._tally.moved += size
        if self.passage is not None:
            self.passage.moved += size

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
            self._open = False
            self._line.over(self)

    @property
    def tally(self) -> Tally:
        """Where it is counted."""
        return self._tally
