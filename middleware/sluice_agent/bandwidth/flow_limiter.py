"""One flow on this node: its bucket, its ceiling, and who in which order waits for its bytes."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator
from typing import Final

from sluice_agent.bandwidth.token_bucket import Bucket
from sluice_core.messages.bandwidth import Flow

#: No flow is slower, so that none of its transfers dies of somebody's time-out (bytes per second).
LEAST: Final = 1024.0
#: Seconds of its rate that a flow is given at once, at least, while it waits for more …
STEP: Final = 0.02
#: … but no fewer bytes, as long as its bucket holds so many.
SMALLEST: Final = 4096
#: Seconds after which a worker's asking weighs half.
_HALF_LIFE: Final = 1.0
#: Part of the rate that workers which asked for nothing lately may go on with alone, all of them together …
_SPARED: Final = 0.1
#: … by which a worker's part must have become another to be told, and below which it is forgotten.
_CHANGED: Final = 0.02
_NOTHING: Final = 0.001

Paid = list[tuple[str, int]]


class _Asker:
    """A worker that asked for bytes of this flow."""

    __slots__ = ("at", "part", "pending", "told", "weight")

    def __init__(self, now: float) -> None:
        self.pending = 0
        self.weight = 0.0
        self.at = now
        #: Its part of what was asked for lately, as long as anything was.
        self.part = 0.0
        #: The rate that it was told; None: nothing yet.
        self.told: float | None = None

    def weigh(self, now: float, size: float = 0.0) -> float:
        """What it asked for lately, ``size`` more included."""
        self.weight = self.weight * 0.5 ** (max(now - self.at, 0.0) / _HALF_LIFE) + size
        self.at = now
        return self.weight


class Account:
    """What one flow may move here, and what its workers wait for."""

    __slots__ = (
        "_all",
        "_askers",
        "_queue",
        "_rated",
        "begun",
        "bound",
        "bucket",
        "ceiling",
        "flow",
        "full",
        "lends",
        "pending",
        "queued",
        "stamp",
        "used",
    )

    def __init__(self, flow: Flow, rate: float, now: float) -> None:
        self.flow = flow
        self.bucket = Bucket(max(rate, LEAST), now)
        #: Bounds also what others left; None: nothing does.
        self.ceiling: Bucket | None = None
        #: What overflows is for the others: it is a part of what was divided.
        self.lends = False
        #: Bytes that workers still wait for.
        self.pending = 0
        #: It waits for nothing and its bucket is full (kept by the ledger).
        self.full = False
        #: It stands among those that take turns at the pool (kept by the ledger).
        self.queued = False
        #: Which of the moments written down for this account is the last one (kept by the ledger).
        self.stamp = 0
        #: When it was asked last, and when it began.
        self.used = self.begun = now
        #: The ceiling that workers told of, which bounds it while it has no row (kept by the ledger); 0: none.
        self.bound = 0.0
        self._askers: dict[str, _Asker] = {}
        self._all = _Asker(now)
        self._queue: deque[str] = deque()
        self._rated = 0.0

    @property
    def lent(self) -> float:
        """What others may use of its rate while it is full."""
        return self.bucket.rate if self.lends else 0.0

    def change(self, rate: float, ceiling: float, lends: bool, now: float) -> float:
        """Go on at ``rate``, never above ``ceiling`` (0: none); what overflowed for others."""
        over = self.bucket.change(max(rate, LEAST), now)
        if not 0 < ceiling < math.inf:
            self.ceiling = None
        elif self.ceiling is None:
            self.ceiling = Bucket(max(ceiling, LEAST), now)
        else:
            self.ceiling.change(max(ceiling, LEAST), now)
        lent = over if self.lends else 0.0
        self.lends = lends
        return lent

    def settle(self, now: float) -> float:
        """Come up to date; what overflowed for others."""
        if self.ceiling is not None:
            self.ceiling.settle(now)
        over = self.bucket.settle(now)
        return over if self.lends else 0.0

    def spend(self) -> None:
        """Nothing is left of what came in until now."""
        self.bucket.level = min(self.bucket.level, 0.0)
        if self.ceiling is not None:
            self.ceiling.level = min(self.ceiling.level, 0.0)

    def ask(self, worker: str, size: int, now: float) -> None:
        """A worker wants ``size`` bytes more."""
        asker = self._askers.get(worker)
        if asker is None:
            asker = self._askers[worker] = _Asker(now)
        if not asker.pending:
            self._queue.append(worker)
        asker.pending += size
        asker.weigh(now, size)
        self._all.weigh(now, size)
        self.pending += size
        self.used = now

    def give_back(self, size: int) -> float:
        """Bytes come back; what overflowed for others."""
        if self.ceiling is not None:
            self.ceiling.put(size)
        over = self.bucket.put(size)
        return over if self.lends else 0.0

    def leave(self, worker: str) -> None:
        """A worker is gone."""
        asker = self._askers.pop(worker, None)
        if asker is None:
            return
        self._all.weight = max(self._all.weight - asker.weigh(self._all.at), 0.0)
        if asker.pending:
            self.pending -= asker.pending
            self._queue.remove(worker)

    def part(self, worker: str, now: float, workers: int = 1) -> float:
        """The rate that this worker may go on with alone: by its part of what was asked for lately.  It is told.

        :param workers: of this side of the node
        """
        asker, total = self._askers[worker], self._all.weigh(now)
        own = asker.weigh(now)
        asker.part = min(own / total, 1.0) if total > 0 else 1.0 / len(self._askers)
        asker.told = self._rate(asker, workers)
        return asker.told

    def changed(self, now: float, workers: int) -> Iterator[tuple[str, float]]:
        """Workers, and the rates that they may go on with alone, which were told others; they are told.

        While nobody asks their parts stay as they are.  Who asked for next to nothing while others did is forgotten.
        """
        total = self._all.weigh(now)
        if total < 1 and self.bucket.rate == self._rated:
            return
        self._rated = self.bucket.rate
        for worker, asker in list(self._askers.items()):
            if total >= 1:
                asker.part = min(asker.weigh(now) / total, 1.0)
            rate = self._rate(asker, workers)
            forgotten = asker.part < _NOTHING and not asker.pending
            if asker.told is not None and (
                abs(rate - asker.told) > self.bucket.rate * _CHANGED or (forgotten and rate < asker.told)
            ):
                asker.told = rate
                yield worker, rate
            if forgotten:
                del self._askers[worker]

    def _rate(self, asker: _Asker, workers: int) -> float:
        return max(self.bucket.rate * max(asker.part, _SPARED / max(workers, 2)), LEAST)

    @property
    def askers(self) -> list[str]:
        """Workers that hold a rate of this flow."""
        return list(self._askers)

    def room(self) -> int:
        """Bytes that the ceiling and those who wait leave room for."""
        return self.pending if self.ceiling is None else min(self.pending, self.ceiling.whole())

    def step(self) -> int:
        """Bytes that are worth the way, while some are waited for: one at least, never more than are wanted."""
        worth = max(self.bucket.rate * STEP, min(SMALLEST, self.bucket.depth / 2))
        return max(min(self.pending, math.floor(worth)), 1)

    def ready(self) -> float:
        """When the next step can be paid out of its own bucket."""
        return max(self.bucket.ready(self.step()), self.allowed())

    def allowed(self) -> float:
        """When its ceiling allows the next step."""
        return self.ceiling.ready(self.step()) if self.ceiling is not None else self.bucket.at

    def pay(self, most: int, borrowed: bool) -> Paid:
        """Give up to ``most`` bytes to those who wait; out of somebody else's pool if ``borrowed``."""
        left = size = min(most, self.room()) if borrowed else min(most, self.room(), self.bucket.whole())
        paid: Paid = []
        for _ in range(len(self._queue)):
            if not left:
                break
            worker = self._queue.popleft()
            asker = self._askers[worker]
            part = min(asker.pending, left)
            asker.pending -= part
            left -= part
            paid.append((worker, part))
            if asker.pending:
                self._queue.append(worker)  # the others take their turns
        self.pending -= size
        if not borrowed:
            self.bucket.level -= size
        if self.ceiling is not None:
            self.ceiling.level -= size
        return paid

    def refuse_nobody(self) -> list[str]:
        """Nothing holds it back any more: everybody who waited, in the order of asking, and who else has a rate."""
        told = list(dict.fromkeys((*self._queue, *self._askers)))
        self._queue.clear()
        self._askers.clear()
        self.pending = 0
        return told
