"""One flow on this node: its token bucket, its ceiling, and the workers that wait for its bytes, in round robin."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from sluice_agent.bandwidth.token_bucket import TokenBucket
from sluice_core.messages.bandwidth import Flow

#: The lowest rate of a flow, in bytes per second, so that no transfer ends in a time-out.
MIN_RATE: Final = 1024.0
#: The smallest grant, in seconds of the flow's rate, while more is requested …
GRANT_SECONDS: Final = 0.02
#: … and in bytes, as far as the bucket is large enough.
MIN_GRANT: Final = 4096
#: Seconds after which a worker's demand counts half.
_HALF_LIFE: Final = 1.0
#: The fraction of the rate that workers without recent demand divide among themselves as fallback rates.
_RESERVED: Final = 0.1
#: A fallback rate is sent again when it changes by this fraction of the flow's rate.
_CHANGED: Final = 0.02
#: A worker with a smaller fraction of the demand is removed.
_NEGLIGIBLE: Final = 0.001

#: Worker and bytes.
Grants = list[tuple[str, int]]


@dataclass(slots=True)
class _Requester:
    """A worker that requested bytes of this flow."""

    pending: int = 0
    demand: float = 0.0
    demand_at: float = 0.0
    #: Its fraction of the flow's recent demand; it stays without requests.
    fraction: float = 0.0
    #: The fallback rate that the worker knows; None: none yet.
    known_rate: float | None = None

    def update_demand(self, now: float, size: float = 0.0) -> float:
        """Bytes that it requested lately, ``size`` more included; older requests count less."""
        self.demand = self.demand * 0.5 ** (max(now - self.demand_at, 0.0) / _HALF_LIFE) + size
        self.demand_at = now
        return self.demand


@dataclass(slots=True, eq=False)
class FlowLimiter:
    """Limits one flow on this node, and queues what its workers wait for.

    Each method that returns the overflow returns bytes that other flows may use, 0 when this flow lends nothing.
    """

    flow: Flow
    bucket: TokenBucket
    #: When it was requested last.
    last_request: float
    #: Since when it is active.
    active_since: float = field(init=False)
    #: Bounds borrowed bytes, too; None: no ceiling.
    ceiling: TokenBucket | None = None
    #: Whether its overflow goes to other flows: its rate is a share of the node's.
    is_lender: bool = False
    #: Bytes requested and not granted yet.
    pending: int = 0
    #: Nothing is pending and the bucket is full (kept by MethodLimiter, like the next two).
    full: bool = False
    #: It is in the queue for the pool.
    queued: bool = False
    #: The valid one of its heap entries.
    heap_version: int = 0
    #: The ceiling that workers reported; it applies while the flow has no share; 0: none.
    worker_ceiling: float = 0.0
    _requesters: dict[str, _Requester] = field(default_factory=dict)
    _total: _Requester = field(default_factory=_Requester)
    _queue: deque[str] = field(default_factory=deque)
    _rated: float = 0.0

    def __post_init__(self) -> None:
        self.active_since = self.last_request

    @property
    def lent_rate(self) -> float:
        """Bytes per second that others may use while its bucket is full."""
        return self.bucket.rate if self.is_lender else 0.0

    def set_limits(self, rate: float, ceiling: float, is_lender: bool, now: float) -> float:
        """Use another rate and ceiling (0: none), in bytes per second.

        :param is_lender: whether the overflow goes to other flows from now on
        :return: the overflow, in bytes
        """
        over = self.bucket.set_rate(max(rate, MIN_RATE), now)
        if not 0 < ceiling < math.inf:
            self.ceiling = None
        elif self.ceiling is None:
            self.ceiling = TokenBucket(max(ceiling, MIN_RATE), now)
        else:
            self.ceiling.set_rate(max(ceiling, MIN_RATE), now)
        lent = over if self.is_lender else 0.0
        self.is_lender = is_lender
        return lent

    def refill(self, now: float) -> float:
        """Add the tokens since the last refill.

        :return: the overflow, in bytes
        """
        if self.ceiling is not None:
            self.ceiling.refill(now)
        over = self.bucket.refill(now)
        return over if self.is_lender else 0.0

    def drain(self) -> None:
        """Remove all tokens: the next bytes are granted as they flow in; debt stays."""
        self.bucket.tokens = min(self.bucket.tokens, 0.0)
        if self.ceiling is not None:
            self.ceiling.tokens = min(self.ceiling.tokens, 0.0)

    def request(self, worker: str, size: int, now: float) -> None:
        """Queue a worker's request for ``size`` bytes."""
        requester = self._requesters.get(worker)
        if requester is None:
            requester = self._requesters[worker] = _Requester()
        if not requester.pending:
            self._queue.append(worker)
        requester.pending += size
        requester.update_demand(now, size)
        self._total.update_demand(now, size)
        self.pending += size
        self.last_request = now

    def put_back(self, size: int) -> float:
        """Return granted bytes that were not used.

        :return: the overflow, in bytes
        """
        if self.ceiling is not None:
            self.ceiling.put_back(size)
        over = self.bucket.put_back(size)
        return over if self.is_lender else 0.0

    def remove_worker(self, worker: str) -> None:
        """Remove a worker that disconnected, with its requests."""
        requester = self._requesters.pop(worker, None)
        if requester is None:
            return
        self._total.demand = max(self._total.demand - requester.update_demand(self._total.demand_at), 0.0)
        if requester.pending:
            self.pending -= requester.pending
            self._queue.remove(worker)

    def fallback_rate(self, worker: str, now: float, workers: int = 1) -> float:
        """The rate at which a worker continues without the agent: its fraction of the recent demand.

        The rate counts as known to the worker.

        :param workers: of this side of the node
        """
        requester, total = self._requesters[worker], self._total.update_demand(now)
        own = requester.update_demand(now)
        requester.fraction = min(own / total, 1.0) if total > 0 else 1.0 / len(self._requesters)
        requester.known_rate = self._rate(requester, workers)
        return requester.known_rate

    def changed_fallback_rates(self, now: float, workers: int) -> Iterator[tuple[str, float]]:
        """Each worker whose fallback rate differs from the rate last sent to it, and that rate; it counts as sent then.

        While no flow requests bytes the fractions stay.  A worker with a negligible fraction is removed.
        """
        total = self._total.update_demand(now)
        if total < 1 and self.bucket.rate == self._rated:
            return
        self._rated = self.bucket.rate
        for worker, requester in list(self._requesters.items()):
            if total >= 1:
                requester.fraction = min(requester.update_demand(now) / total, 1.0)
            rate = self._rate(requester, workers)
            forgotten = requester.fraction < _NEGLIGIBLE and not requester.pending
            if requester.known_rate is not None and (
                abs(rate - requester.known_rate) > self.bucket.rate * _CHANGED
                or (forgotten and rate < requester.known_rate)
            ):
                requester.known_rate = rate
                yield worker, rate
            if forgotten:
                del self._requesters[worker]

    def _rate(self, requester: _Requester, workers: int) -> float:
        return max(self.bucket.rate * max(requester.fraction, _RESERVED / max(workers, 2)), MIN_RATE)

    @property
    def workers(self) -> list[str]:
        """Workers that know a fallback rate of this flow."""
        return list(self._requesters)

    def grantable(self) -> int:
        """Pending bytes that the ceiling allows."""
        return self.pending if self.ceiling is None else min(self.pending, self.ceiling.whole_tokens())

    def next_grant(self) -> int:
        """Bytes of the next grant: large enough to be worth a message, at most what is pending, at least 1."""
        worth = max(self.bucket.rate * GRANT_SECONDS, min(MIN_GRANT, self.bucket.size / 2))
        return max(min(self.pending, math.floor(worth)), 1)

    def ready_at(self) -> float:
        """When the bucket and the ceiling allow the next grant."""
        return max(self.bucket.ready_at(self.next_grant()), self.ceiling_ready_at())

    def ceiling_ready_at(self) -> float:
        """When the ceiling allows the next grant."""
        return self.ceiling.ready_at(self.next_grant()) if self.ceiling is not None else self.bucket.updated_at

    def grant(self, most: int, borrowed: bool) -> Grants:
        """Grant up to ``most`` bytes to the waiting workers, in turns.

        :param borrowed: take them from the pool, not from the flow's own bucket
        """
        left = total = (
            min(most, self.grantable()) if borrowed else min(most, self.grantable(), self.bucket.whole_tokens())
        )
        grants: Grants = []
        for _ in range(len(self._queue)):
            if not left:
                break
            worker = self._queue.popleft()
            requester = self._requesters[worker]
            size = min(requester.pending, left)
            requester.pending -= size
            left -= size
            grants.append((worker, size))
            if requester.pending:
                self._queue.append(worker)  # the others take their turns
        self.pending -= total
        if not borrowed:
            self.bucket.tokens -= total
        if self.ceiling is not None:
            self.ceiling.tokens -= total
        return grants

    def release_all(self) -> list[str]:
        """Drop all requests because the flow is no longer limited; return the workers to notify, waiting ones first."""
        workers = list(dict.fromkeys((*self._queue, *self._requesters)))
        self._queue.clear()
        self._requesters.clear()
        self.pending = 0
        return workers
