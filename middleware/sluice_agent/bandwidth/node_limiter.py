"""The node's ledger: what each flow may move on this node in the shares that were divided last, and who waits for it.

Pure: it reads no clock and does no I/O.  Every ``now`` is of one monotonic clock, in seconds.

A worker :meth:`~Ledger.join`\\ s with its side, :meth:`~Ledger.ask`\\ s, and :meth:`~Ledger.leave`\\ s; what
it gets is in :meth:`~Ledger.due`, which wants to be called again after :meth:`~Ledger.next_due` seconds.  A method
without rows and without a rate for newcomers is not held back at all, but for flows with a ceiling that workers know
of, until whoever divides had the time to say otherwise.  A worker that was told that any flow is free must
ask anew (:meth:`~Ledger.anew`) when that holds no longer.  Each second :meth:`~Ledger.rates` has what workers would
go on with without this agent, so that all together stay near what was divided.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from sluice_agent.bandwidth.method_limiter import Book
from sluice_core.messages.bandwidth import Flow, Share, Shares
from sluice_core.messages.credit import FREE, CreditGrant, CreditRequest

#: As the rate of what moves as it likes.
_NO_RATE: Final = -1.0

Grants = Mapping[str, list[CreditGrant]]


class Ledger:
    """Books of all sides and methods of one node."""

    def __init__(self) -> None:
        self._books: dict[tuple[str, str], Book] = {}
        self._sides: dict[str, str] = {}
        self._counts: Counter[str] = Counter()
        self._told_free: dict[str, set[str]] = {}
        self._anew: set[str] = set()
        self._free: list[tuple[str, Flow]] = []

    @property
    def governed(self) -> bool:
        """Something is held back here."""
        return any(book.holds for book in self._books.values())

    def take(self, shares: Shares, now: float) -> None:
        """Go on by what was divided now; it takes the place of all that was before.

        What is :meth:`due` should have been given before, and :meth:`anew` be told after.
        """
        rows: dict[tuple[str, str], list[Share]] = {}
        newcomers = dict(self._newcomers(shares))
        for row in shares.rows:
            rows.setdefault((row.side, row.method), []).append(row)
        for where in {*self._books, *newcomers, *rows}:
            book = self._books.get(where)
            if book is None:
                book = self._books[where] = Book(now)
            anew, freed = book.take(rows.get(where, ()), newcomers.get(where), now)
            if anew:
                self._call_back(*where)
            for worker, flow in freed:
                self._set_free(worker, flow)

    def spend(self, side: str, now: float) -> None:
        """Nothing is left of what came in until now: workers of ``side`` were going on alone."""
        for (where, _), book in self._books.items():
            if where == side:
                book.spend(now)

    def _newcomers(self, shares: Shares) -> Iterator[tuple[tuple[str, str], float]]:
        """Side and method → rate; that of before where it is no number."""
        for side, rates in shares.newcomer.items():
            for method, rate in rates.items():
                book = self._books.get((side, method))
                before = None if book is None else book.newcomer
                if 0 <= rate < math.inf:
                    yield (side, method), rate
                elif math.isnan(rate) and before is not None:
                    yield (side, method), before

    def join(self, worker: str, side: str) -> None:
        """A worker is there."""
        self._sides[worker] = side
        self._counts[side] += 1
        self._told_free[worker] = set()

    def leave(self, worker: str) -> None:
        """A worker is gone; what it held is spent."""
        for book in self._books.values():
            book.leave(worker)
        if worker in self._sides:
            self._counts[self._sides.pop(worker)] -= 1
        self._told_free.pop(worker, None)
        self._anew.discard(worker)
        self._free = [one for one in self._free if one[0] != worker]

    def ask(self, worker: str, asked: CreditRequest, now: float) -> None:
        """A worker that has joined wants bytes, or gives some back."""
        where = self._sides[worker], asked.method
        book = self._books.get(where)
        if book is None and asked.ceiling:
            book = self._books[where] = Book(now)
        held_back = book is not None and book.ask(worker, asked.flow, asked.size, now, asked.ceiling)
        if not held_back and asked.size > 0:
            self._set_free(worker, asked.flow)

    def due(self, now: float) -> Grants:
        """What can be given now, by worker; it counts as given."""
        sizes: dict[tuple[str, Flow], tuple[int, float]] = dict.fromkeys(self._free, (FREE, _NO_RATE))
        self._free = []
        for book in self._books.values():
            for account, worker, size in book.due(now):
                before = sizes.get((worker, account.flow), (0, 0.0))[0]
                if before != FREE:
                    rate = account.part(worker, now, self._counts[self._sides[worker]])
                    sizes[worker, account.flow] = before + size, rate
        return _by_worker((worker, flow, size, rate) for (worker, flow), (size, rate) in sizes.items())

    def rates(self, now: float) -> Grants:
        """Grants of no bytes, by worker: the rates that have become others.  They count as told."""
        return _by_worker(
            (worker, flow, 0, rate)
            for (side, _), book in self._books.items()
            for worker, flow, rate in book.rates(now, self._counts[side])
            if worker in self._sides
        )

    def alone(self, side: str) -> dict[str, float]:
        """Method → the rate at which a flow that is new to a worker of ``side`` goes without this agent."""
        return {
            method: book.newcomer / max(self._counts[side], 1)
            for (where, method), book in self._books.items()
            if where == side and book.newcomer is not None
        }

    def next_due(self, now: float) -> float | None:
        """Seconds until :meth:`due` may have something; None while nobody waits."""
        if self._free:
            return 0.0
        return min((due for book in self._books.values() if (due := book.next_due(now)) is not None), default=None)

    def anew(self) -> list[str]:
        """Workers that were told of anything that it is free, and must ask again; each is named once."""
        workers = sorted(self._anew)
        self._anew.clear()
        return workers

    def _set_free(self, worker: str, flow: Flow) -> None:
        self._told_free[worker].add(flow.method)
        self._free.append((worker, flow))

    def _call_back(self, side: str, method: str) -> None:
        for worker, methods in self._told_free.items():
            if self._sides[worker] == side and method in methods:
                methods.clear()
                self._anew.add(worker)


def _by_worker(rows: Iterable[tuple[str, Flow, int, float]]) -> dict[str, list[CreditGrant]]:
    grants: dict[str, list[CreditGrant]] = {}
    for worker, flow, size, rate in rows:
        given = CreditGrant(flow.account, flow.container, flow.method, flow.policy, size, rate)
        grants.setdefault(worker, []).append(given)
    return grants
