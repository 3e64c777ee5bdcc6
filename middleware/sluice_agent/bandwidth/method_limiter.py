"""What one method moves on one side of this node: the flows' accounts, and a pool of what they leave unused.

Rules:

* Each flow's bucket fills at its own rate.  What overflows a full one falls into the pool, which holds a tenth of a
  second of the whole; only rows that were divided lend, since a newcomer's rate is no part of the whole.
* Those that wait are paid out of their own bucket as soon as that holds a step, else out of the pool, in turns of
  equal size.  A ceiling bounds both.  Nothing is ever paid that is not there.
* Flows without a row share the rate of newcomers: however many begin in the same second, the node is not promised
  more than once.
* A ceiling that workers know of bounds a flow without a row, though nobody else of this method may be held back: until
  it is told otherwise by a row, or moved for three seconds under somebody who divides and sends none.
* Nobody walks over all flows: a heap keeps the moment at which the next step of each waiting flow is ready, or at which
  the bucket of one at rest is full.  What full ones leave is counted as one rate.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Container, Iterable, Iterator
from math import inf, isnan
from typing import Final

from sluice_agent.bandwidth.flow_limiter import Account
from sluice_core.messages.bandwidth import Flow, Share
from sluice_core.messages.bounds import MOST_RATE

#: Seconds of the whole rate that the pool holds.
POOL: Final = 0.1
#: Bytes of one turn at the pool, at least; and seconds of the whole rate, at least.
_TURN: Final = 64 * 1024
_TURN_SECONDS: Final = 0.002
#: Seconds after which the account of a flow that nobody divides for and nobody asks for is closed.
_REST: Final = 10.0
#: Seconds after which such a flow has no part any more in what newcomers share.
_AWAY: Final = 1.0
#: Newcomers' parts are made anew when there are so many times as many: so all of them cost little each.
_MORE: Final = 1.1

#: Seconds within which whoever divides hears of a flow and sends a row.
_HEARD: Final = 3.0

Payment = tuple[Account, str, int]


class Book:
    """All accounts of one side and method.  ``newcomer`` None: who has no row moves as it likes."""

    def __init__(self, now: float) -> None:
        self._now = now
        self._accounts: dict[Flow, Account] = {}
        self._free: set[Flow] = set()
        self._newcomer: float | None = None
        self._guests: dict[Flow, Account] = {}
        self._here = self._shared = 0
        self._heap: list[tuple[float, int, Account, int]] = []
        self._count = 0
        self._ready: list[Account] = []
        self._turns: deque[Account] = deque()
        self._pool = 0.0
        self._whole = 0.0
        self._lent = 0.0
        self._rows: dict[Flow, Share] = {}
        self._gone: list[tuple[str, Flow]] = []

    @property
    def newcomer(self) -> float | None:
        """Bytes per second of all together that have no row; None: as much as they like."""
        return self._newcomer

    @property
    def holds(self) -> bool:
        """Something is held back."""
        return self._newcomer is not None or len(self._free) < len(self._rows) or bool(self._guests)

    @property
    def whole(self) -> float:
        """Bytes per second that were divided among the rows."""
        return self._whole

    def take(self, rows: Iterable[Share], newcomer: float | None, now: float) -> tuple[bool, list[tuple[str, Flow]]]:
        """Go on by what was divided now; all rows are of this side and method.  A row that is no number is no news.

        :return: whether anything is held back that was free, and workers that waited for what is free now
        """
        self._advance(now)
        for account in self._accounts.values():
            self._settle(account)
        self._lent = 0.0
        governed, free = {}, set()
        self._rows = {row.flow: row for row in map(self._sound, rows) if row is not None}
        for row in self._rows.values():
            if 0 <= row.rate < inf:
                governed[row.flow] = row
            else:
                free.add(row.flow)
        anew = newcomer is not None and (self._newcomer is None or not self._free <= free)
        anew = anew or any(self._loose(flow) for flow in governed)
        self._free, self._newcomer = free, newcomer
        self._whole = sum(row.rate for row in governed.values())
        for flow, row in governed.items():
            account = self._accounts.get(flow) or self._open(flow, row.rate)
            self._let_in(account.change(row.rate, row.ceiling, True, self._now))
        freed = list(self._without_row(governed))
        self._pool = min(self._pool, self._whole * POOL)
        for account in self._accounts.values():
            self._note(account)
        return anew, freed

    def spend(self, now: float) -> None:
        """Nothing is left of what came in until now."""
        self._advance(now)
        for account in self._accounts.values():
            self._settle(account)
            account.spend()
            self._note(account)
        self._pool = 0.0

    def _sound(self, row: Share) -> Share | None:
        """The row, or that of before when it is no number; None when there was none."""
        return self._rows.get(row.flow) if any(map(isnan, row[5:8])) else row

    def _without_row(self, governed: Container[Flow]) -> Iterator[tuple[str, Flow]]:
        """Bring the other accounts to a newcomer's rate, or close them; workers that wait for nothing any more."""
        self._guests = {}
        self._here = 0
        for flow in [flow for flow in self._accounts if flow not in governed]:
            account = self._accounts[flow]
            if flow in self._free or (self._newcomer is None and not self._bounded(account)):
                yield from ((worker, flow) for worker in account.refuse_nobody())
                self._close(account)
            elif not account.pending and self._now - account.used > _REST:
                self._gone += ((worker, flow) for worker in account.askers)
                self._close(account)
            else:
                self._guests[flow] = account
                self._here += self._moves(account)
        self._share_out()

    def _share_out(self) -> None:
        """Give all without a row the same part of what newcomers may have."""
        self._shared = max(self._here, 1)
        for account in self._guests.values():
            self._settle(account)
            self._let_in(self._begin(account, self._shared))

    def _begin(self, account: Account, several: int) -> float:
        """Bring one without a row to what it may have as one of ``several``; what overflowed for others."""
        return account.change(self._first(account.bound, several), account.bound, False, self._now)

    def _first(self, ceiling: float, several: int) -> float:
        """The rate of one without a row."""
        rate = MOST_RATE if self._newcomer is None else self._newcomer / several
        return min(rate, ceiling) if ceiling else rate

    def _bounded(self, account: Account) -> bool:
        """The ceiling that workers told of holds, though nothing else does."""
        return account.bound > 0 and (not self._moves(account) or self._now - account.begun < _HEARD)

    def _moves(self, account: Account) -> bool:
        return account.pending > 0 or self._now - account.used <= _AWAY

    def ask(self, worker: str, flow: Flow, size: int, now: float, ceiling: float = 0.0) -> bool:
        """A worker wants bytes, or gives some back (negative).  False: the flow moves as it likes.

        :param ceiling: as in ``CreditRequest``
        """
        if not self._governs(flow) and (not ceiling or size <= 0 or flow in self._free):
            return False
        self._advance(now)
        account = self._accounts.get(flow)
        if account is None:
            account = self._receive(flow, ceiling)
        self._settle(account)
        if not self._moves(account):
            account.begun = self._now
        if ceiling != account.bound:
            account.bound = ceiling
            if flow in self._guests:
                self._let_in(self._begin(account, max(self._here, self._shared)))
        if size < 0:
            self._let_in(account.give_back(-size))
        elif size:
            account.ask(worker, size, self._now)
            if not account.queued:
                account.queued = True
                self._turns.append(account)
        self._note(account)
        return True

    def leave(self, worker: str) -> None:
        """A worker is gone; what it held is spent."""
        for account in self._accounts.values():
            account.leave(worker)
            if not account.pending:
                self._note(account)

    def due(self, now: float) -> Iterator[Payment]:
        """Pay what can be paid."""
        self._advance(now)
        ready, self._ready = self._ready, []
        for account in ready:
            if account.pending:
                yield from self._pay(account, account.pending, borrowed=False)
                self._note(account)
        yield from self._lend()

    def rates(self, now: float, workers: int) -> Iterator[tuple[str, Flow, float]]:
        """What workers may go on with alone that were told otherwise: worker, flow, bytes per second."""
        gone, self._gone = self._gone, []
        if self._newcomer is not None:
            for worker, flow in gone:
                if flow not in self._accounts:
                    yield worker, flow, self._newcomer / max(workers, 1)
        for flow, account in self._accounts.items():
            for worker, rate in account.changed(now, workers):
                yield worker, flow, rate

    def next_due(self, now: float) -> float | None:
        """Seconds until something may be paid; None while nobody waits."""
        while self._turns and not self._turns[0].pending:
            self._turns.popleft().queued = False
        if not self._turns:
            return None
        if self._ready:
            return 0.0
        while self._heap and self._stale(self._heap[0]):
            heapq.heappop(self._heap)
        moments = [self._heap[0][0]] if self._heap else []
        turn = self._turn()
        if self._pool >= turn:
            moments.append(min(account.allowed() for account in self._turns if account.pending))
        elif self._lent > 0:
            moments.append(self._now + (turn - self._pool) / self._lent)
        return max(min(moments, default=now) - now, 0.0)

    def _turn(self) -> float:
        """Bytes of one turn at the pool; fewer if it does not hold twice as many."""
        return max(min(max(_TURN, self._whole * _TURN_SECONDS), self._whole * POOL / 2), 1.0)

    def _governs(self, flow: Flow) -> bool:
        return flow in self._accounts or (self._newcomer is not None and flow not in self._free)

    def _loose(self, flow: Flow) -> bool:
        """Some worker may have been told that it is free."""
        return not self._governs(flow) or (self._newcomer is None and flow in self._guests)

    def _lend(self) -> Iterator[Payment]:
        """Give the pool away in turns, until there is less than a turn or nobody may have more."""
        turn = self._turn()
        passed = 0
        while self._pool >= turn and passed < len(self._turns):
            account = self._turns.popleft()
            if not account.pending:
                account.queued = False
                continue
            self._settle(account)
            if account.allowed() <= self._now:
                yield from self._pay(account, int(turn), borrowed=True)
                self._note(account)
                passed = 0
            else:
                passed += 1
            self._turns.append(account)

    def _pay(self, account: Account, most: int, borrowed: bool) -> Iterator[Payment]:
        self._settle(account)
        for worker, size in account.pay(most, borrowed):
            if borrowed:
                self._pool -= size
            yield account, worker, size

    def _open(self, flow: Flow, rate: float) -> Account:
        account = self._accounts[flow] = Account(flow, rate, self._now)
        return account

    def _receive(self, flow: Flow, ceiling: float) -> Account:
        """A flow that nobody divided for comes."""
        self._here += 1
        several = max(self._here, self._shared)
        account = self._guests[flow] = self._open(flow, self._first(ceiling, several))
        account.bound = ceiling
        self._begin(account, several)
        if self._here > self._shared * _MORE:
            self._share_out()
            for one in self._guests.values():
                self._note(one)
        return account

    def _close(self, account: Account) -> None:
        account.stamp += 1
        del self._accounts[account.flow]

    def _settle(self, account: Account) -> None:
        """Bring one account up to date; a full one stops to lend, since that was counted until now."""
        if account.full:
            account.full = False
            self._lent -= account.lent
            account.bucket.level, account.bucket.at = account.bucket.depth, self._now
        self._let_in(account.settle(self._now))

    def _let_in(self, size: float) -> None:
        self._pool = min(self._pool + size, self._whole * POOL)

    def _note(self, account: Account) -> None:
        """Write down when this account must be looked at next."""
        account.stamp += 1
        if account.pending:
            self._push(account, account.ready())
        elif not account.full:
            self._push(account, account.bucket.ready(account.bucket.depth))

    def _push(self, account: Account, moment: float) -> None:
        self._count += 1
        heapq.heappush(self._heap, (moment, self._count, account, account.stamp))

    def _stale(self, entry: tuple[float, int, Account, int]) -> bool:
        return entry[2].stamp != entry[3]

    def _advance(self, now: float) -> None:
        """Let time pass: what full buckets lend comes in, others become full, and steps become ready."""
        now = max(now, self._now)
        while self._heap and self._heap[0][0] <= now:
            entry = heapq.heappop(self._heap)
            if self._stale(entry):
                continue
            moment, _, account, _ = entry
            self._pass(moment)
            if account.pending:
                self._ready.append(account)
            else:
                self._let_in(account.settle(self._now))
                account.full = True
                self._lent += account.lent
        self._pass(now)

    def _pass(self, now: float) -> None:
        self._let_in(self._lent * max(now - self._now, 0.0))
        self._now = max(now, self._now)
