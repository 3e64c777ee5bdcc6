"""The bandwidth of one method on one side of this node: a limiter for each flow, and a pool of unused bytes.

Theory of operation:

* Each flow's bucket fills at the flow's rate.  The overflow of a full bucket goes to the pool, which holds a tenth of a
  second of the divided rate.  Only flows with a share lend: a newcomer's rate is no part of the divided rate.
* A waiting flow is granted bytes from its own bucket as soon as that holds the next grant, else from the pool, in
  round robin with equal sizes.  The flow's ceiling bounds both.  Buckets and pool never lend bytes that they lack.
* Flows without a share (newcomers) divide the newcomer rate: however many start in one second, the node promises that
  rate once.
* A ceiling that workers report limits a flow without a share, even when no other flow of the method is limited.  It
    ends with a share for the flow, or when the allocator sends no share within three seconds of the flow's first
    report.
* No operation walks over all flows: a heap keeps the moment at which the next grant of each waiting flow is ready, or
  at which the bucket of an idle flow is full.  Full buckets lend at one summed rate.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Container, Iterable, Iterator
from math import inf, isnan
from typing import Final

from sluice_agent.bandwidth.flow_limiter import MIN_RATE, FlowLimiter
from sluice_agent.bandwidth.token_bucket import TokenBucket
from sluice_core.messages.bandwidth import Flow, Share
from sluice_core.messages.base import MOST_RATE

#: The size of the pool, in seconds of the divided rate.
POOL_SECONDS: Final = 0.1
#: The smallest grant from the pool: in bytes, and in seconds of the divided rate.
_POOL_GRANT: Final = 64 * 1024
_POOL_GRANT_SECONDS: Final = 0.002
#: Seconds without a request after which the limiter of a newcomer is removed …
_IDLE_CLOSE: Final = 10.0
#: … and after which a newcomer has no part of the newcomer rate.
_INACTIVE: Final = 1.0
#: The newcomer rate is divided again when the number of newcomers has grown by this factor, which bounds the cost.
_REDIVIDE_RATIO: Final = 1.1
#: Seconds within which an allocator learns of a flow and sends a share for it.
_SHARE_DELAY: Final = 3.0

FlowGrant = tuple[FlowLimiter, str, int]


class MethodLimiter:
    """The limiters of one side and method; with a newcomer rate of None, flows without a share are not limited."""

    def __init__(self, now: float) -> None:
        self._now = now
        self._limiters: dict[Flow, FlowLimiter] = {}
        self._free: set[Flow] = set()
        #: Bytes per second of all newcomers together; None: not limited.
        self.newcomer_rate: float | None = None
        self._newcomers: dict[Flow, FlowLimiter] = {}
        #: Active newcomers now, and among how many the newcomer rate was divided last.
        self._active_newcomers = self._divided_among = 0
        self._heap: list[tuple[float, int, FlowLimiter, int]] = []
        self._count = 0
        self._ready: list[FlowLimiter] = []
        self._pool_queue: deque[FlowLimiter] = deque()
        self._pool = 0.0
        self._divided_rate = 0.0
        self._lent_rate = 0.0
        self._rows: dict[Flow, Share] = {}
        self._idle_closed: list[tuple[str, Flow]] = []

    @property
    def is_limiting(self) -> bool:
        """Whether any flow is limited."""
        return self.newcomer_rate is not None or len(self._free) < len(self._rows) or bool(self._newcomers)

    def set_shares(
        self, rows: Iterable[Share], newcomer_rate: float | None, now: float
    ) -> tuple[bool, list[tuple[str, Flow]]]:
        """Replace the shares.  A share with NaN figures leaves the flow's earlier share in force.

        :param rows: of this side and method
        :param newcomer_rate: bytes per second of all other flows together; None: not limited
        :return: whether a flow is limited that was not before, and the workers and flows that are released
        """
        self._advance(now)
        for limiter in self._limiters.values():
            self._refill(limiter)
        self._lent_rate = 0.0
        self._rows = {row.flow: row for row in map(self._last_valid, rows) if row is not None}
        limited = {flow: row for flow, row in self._rows.items() if 0 <= row.rate < inf}
        free = self._rows.keys() - limited.keys()
        restricts = newcomer_rate is not None and (self.newcomer_rate is None or not self._free <= free)
        restricts = restricts or any(self._may_be_released(flow) for flow in limited)
        self._free, self.newcomer_rate = free, newcomer_rate
        self._divided_rate = sum(row.rate for row in limited.values())
        for flow, row in limited.items():
            limiter = self._limiters.get(flow) or self._open(flow, row.rate)
            self._add_to_pool(limiter.set_limits(row.rate, row.ceiling, True, self._now))
        released = list(self._update_newcomers(limited))
        self._pool = min(self._pool, self._divided_rate * POOL_SECONDS)
        for limiter in self._limiters.values():
            self._schedule(limiter)
        return restricts, released

    def drain(self, now: float) -> None:
        """Remove the tokens of all buckets and of the pool, up to ``now``."""
        self._advance(now)
        for limiter in self._limiters.values():
            self._refill(limiter)
            limiter.drain()
            self._schedule(limiter)
        self._pool = 0.0

    def _last_valid(self, row: Share) -> Share | None:
        """The row, or the flow's earlier row when a figure is NaN; None without an earlier row."""
        return self._rows.get(row.flow) if any(map(isnan, (row.rate, row.floor, row.ceiling))) else row

    def _update_newcomers(self, limited: Container[Flow]) -> Iterator[tuple[str, Flow]]:
        """Limit the flows without a share as newcomers, or remove their limiters; the workers and flows released."""
        self._newcomers = {}
        self._active_newcomers = 0
        for flow in [flow for flow in self._limiters if flow not in limited]:
            limiter = self._limiters[flow]
            if flow in self._free or (self.newcomer_rate is None and not self._is_bounded_by_workers(limiter)):
                yield from ((worker, flow) for worker in limiter.release_all())
                self._close(limiter)
            elif not limiter.pending and self._now - limiter.last_request > _IDLE_CLOSE:
                self._idle_closed += ((worker, flow) for worker in limiter.workers)
                self._close(limiter)
            else:
                self._newcomers[flow] = limiter
                self._active_newcomers += self._is_active(limiter)
        self._divide_newcomer_rate()

    def _divide_newcomer_rate(self) -> None:
        """Give each newcomer the same part of the newcomer rate."""
        self._divided_among = max(self._active_newcomers, 1)
        for limiter in self._newcomers.values():
            self._refill(limiter)
            self._add_to_pool(self._limit_newcomer(limiter, self._divided_among))

    def _limit_newcomer(self, limiter: FlowLimiter, count: int) -> float:
        """Limit one of ``count`` newcomers; the overflow for other flows."""
        return limiter.set_limits(
            self._newcomer_limit(limiter.worker_ceiling, count), limiter.worker_ceiling, False, self._now
        )

    def _newcomer_limit(self, ceiling: float, count: int) -> float:
        """The rate of one of ``count`` newcomers."""
        rate = MOST_RATE if self.newcomer_rate is None else self.newcomer_rate / count
        return min(rate, ceiling) if ceiling else rate

    def _is_bounded_by_workers(self, limiter: FlowLimiter) -> bool:
        """Whether the ceiling that workers reported still applies, though nothing else limits the flow."""
        return limiter.worker_ceiling > 0 and (
            not self._is_active(limiter) or self._now - limiter.active_since < _SHARE_DELAY
        )

    def _is_active(self, limiter: FlowLimiter) -> bool:
        return limiter.pending > 0 or self._now - limiter.last_request <= _INACTIVE

    def request(self, worker: str, flow: Flow, size: int, now: float, ceiling: float = 0.0) -> bool:
        """A worker requests bytes, or returns some; False when the flow is not limited.

        :param size: bytes; negative: returned
        :param ceiling: as in ``CreditRequest``
        """
        if not self._limits(flow) and (not ceiling or size <= 0 or flow in self._free):
            return False
        self._advance(now)
        limiter = self._limiters.get(flow)
        if limiter is None:
            limiter = self._open_newcomer(flow, ceiling)
        self._refill(limiter)
        if not self._is_active(limiter):
            limiter.active_since = self._now
        if ceiling != limiter.worker_ceiling:
            limiter.worker_ceiling = ceiling
            if flow in self._newcomers:
                self._add_to_pool(self._limit_newcomer(limiter, max(self._active_newcomers, self._divided_among)))
        if size < 0:
            self._add_to_pool(limiter.put_back(-size))
        elif size:
            limiter.request(worker, size, self._now)
            if not limiter.queued:
                limiter.queued = True
                self._pool_queue.append(limiter)
        self._schedule(limiter)
        return True

    def remove_worker(self, worker: str) -> None:
        """Remove a worker that disconnected; its grants are spent."""
        for limiter in self._limiters.values():
            limiter.remove_worker(worker)
            if not limiter.pending:
                self._schedule(limiter)

    def due_grants(self, now: float) -> Iterator[FlowGrant]:
        """Grant what is ready now, from the buckets, then from the pool."""
        self._advance(now)
        ready, self._ready = self._ready, []
        for limiter in ready:
            if limiter.pending:
                yield from self._grant(limiter, limiter.pending, borrowed=False)
                self._schedule(limiter)
        yield from self._lend()

    def changed_fallback_rates(self, now: float, workers: int) -> Iterator[tuple[str, Flow, float]]:
        """The fallback rates that differ from those last sent to workers: worker, flow, bytes per second."""
        closed, self._idle_closed = self._idle_closed, []
        if self.newcomer_rate is not None:
            for worker, flow in closed:
                if flow not in self._limiters:
                    yield worker, flow, self.newcomer_rate / max(workers, 1)
        for flow, limiter in self._limiters.items():
            for worker, rate in limiter.changed_fallback_rates(now, workers):
                yield worker, flow, rate

    def seconds_until_due(self, now: float) -> float | None:
        """Seconds until a grant may be ready; None while nothing is pending."""
        while self._pool_queue and not self._pool_queue[0].pending:
            self._pool_queue.popleft().queued = False
        if not self._pool_queue:
            return None
        if self._ready:
            return 0.0
        while self._heap and self._is_stale(self._heap[0]):
            heapq.heappop(self._heap)
        moments = [self._heap[0][0]] if self._heap else []
        size = self._pool_grant()
        if self._pool >= size:
            moments.append(min(limiter.ceiling_ready_at() for limiter in self._pool_queue if limiter.pending))
        elif self._lent_rate > 0:
            moments.append(self._now + (size - self._pool) / self._lent_rate)
        return max(min(moments, default=now) - now, 0.0)

    def _pool_grant(self) -> float:
        """Bytes of one grant from the pool: at most half of its size."""
        return max(
            min(max(_POOL_GRANT, self._divided_rate * _POOL_GRANT_SECONDS), self._divided_rate * POOL_SECONDS / 2), 1.0
        )

    def _limits(self, flow: Flow) -> bool:
        return flow in self._limiters or (self.newcomer_rate is not None and flow not in self._free)

    def _may_be_released(self, flow: Flow) -> bool:
        """Whether a worker may have been notified that the flow is not limited."""
        return not self._limits(flow) or (self.newcomer_rate is None and flow in self._newcomers)

    def _lend(self) -> Iterator[FlowGrant]:
        """Grant from the pool in round robin, until it holds less than one grant or all ceilings are reached."""
        size = self._pool_grant()
        passed = 0
        while self._pool >= size and passed < len(self._pool_queue):
            limiter = self._pool_queue.popleft()
            if not limiter.pending:
                limiter.queued = False
                continue
            self._refill(limiter)
            if limiter.ceiling_ready_at() <= self._now:
                yield from self._grant(limiter, int(size), borrowed=True)
                self._schedule(limiter)
                passed = 0
            else:
                passed += 1
            self._pool_queue.append(limiter)

    def _grant(self, limiter: FlowLimiter, most: int, borrowed: bool) -> Iterator[FlowGrant]:
        self._refill(limiter)
        for worker, size in limiter.grant(most, borrowed):
            if borrowed:
                self._pool -= size
            yield limiter, worker, size

    def _open(self, flow: Flow, rate: float) -> FlowLimiter:
        bucket = TokenBucket(max(rate, MIN_RATE), self._now)
        limiter = self._limiters[flow] = FlowLimiter(flow, bucket, self._now)
        return limiter

    def _open_newcomer(self, flow: Flow, ceiling: float) -> FlowLimiter:
        """Open a limiter for a flow without a share."""
        self._active_newcomers += 1
        count = max(self._active_newcomers, self._divided_among)
        limiter = self._newcomers[flow] = self._open(flow, self._newcomer_limit(ceiling, count))
        limiter.worker_ceiling = ceiling
        self._limit_newcomer(limiter, count)
        if self._active_newcomers > self._divided_among * _REDIVIDE_RATIO:
            self._divide_newcomer_rate()
            for newcomer in self._newcomers.values():
                self._schedule(newcomer)
        return limiter

    def _close(self, limiter: FlowLimiter) -> None:
        limiter.heap_version += 1
        del self._limiters[limiter.flow]

    def _refill(self, limiter: FlowLimiter) -> None:
        """Refill one limiter; a full one stops lending, since the summed rate counted it until now."""
        if limiter.full:
            limiter.full = False
            self._lent_rate -= limiter.lent_rate
            limiter.bucket.tokens, limiter.bucket.updated_at = limiter.bucket.size, self._now
        self._add_to_pool(limiter.refill(self._now))

    def _add_to_pool(self, size: float) -> None:
        self._pool = min(self._pool + size, self._divided_rate * POOL_SECONDS)

    def _schedule(self, limiter: FlowLimiter) -> None:
        """Push the moment at which this limiter needs work next."""
        limiter.heap_version += 1
        if limiter.pending or not limiter.full:
            bucket = limiter.bucket
            moment = limiter.ready_at() if limiter.pending else bucket.ready_at(bucket.size)
            self._count += 1
            heapq.heappush(self._heap, (moment, self._count, limiter, limiter.heap_version))

    def _is_stale(self, entry: tuple[float, int, FlowLimiter, int]) -> bool:
        return entry[2].heap_version != entry[3]

    def _advance(self, now: float) -> None:
        """Advance the clock: full buckets lend to the pool, others become full, and grants become ready."""
        now = max(now, self._now)
        while self._heap and self._heap[0][0] <= now:
            entry = heapq.heappop(self._heap)
            if self._is_stale(entry):
                continue
            moment, _, limiter, _ = entry
            self._move_clock(moment)
            if limiter.pending:
                self._ready.append(limiter)
            else:
                self._add_to_pool(limiter.refill(self._now))
                limiter.full = True
                self._lent_rate += limiter.lent_rate
        self._move_clock(now)

    def _move_clock(self, now: float) -> None:
        self._add_to_pool(self._lent_rate * max(now - self._now, 0.0))
        self._now = max(now, self._now)
