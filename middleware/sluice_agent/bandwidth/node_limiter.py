"""The bandwidth of one node: limits each flow to its newest share, and grants bytes to waiting workers.

Pure: no clock, no I/O.  Every ``now`` is in seconds of one monotonic clock.

A worker joins with its side (:meth:`~NodeLimiter.add_worker`) and requests bytes (:meth:`~NodeLimiter.request`).
Its grants are in :meth:`~NodeLimiter.due_grants`, to be called again after :meth:`~NodeLimiter.seconds_until_due`.
A method without shares and without a newcomer rate is not limited, except for flows with a ceiling that workers know,
until the allocator had time to send a share.  A worker that was notified that a flow is not limited must request again
(:meth:`~NodeLimiter.workers_to_renegotiate`) when a limit starts.  Each second
:meth:`~NodeLimiter.changed_fallback_rates` has the rates at which workers continue without this agent, so that all
together stay near the divided rate.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from sluice_agent.bandwidth.method_limiter import MethodLimiter
from sluice_core.messages.bandwidth import Flow, Share, Shares
from sluice_core.messages.credit import FREE, CreditGrant, CreditRequest

#: The rate of a grant for a flow that is not limited.
_UNLIMITED: Final = -1.0

Grants = Mapping[str, list[CreditGrant]]


class NodeLimiter:
    """The limiters of all sides and methods of one node."""

    def __init__(self) -> None:
        self._limiters: dict[tuple[str, str], MethodLimiter] = {}
        self._sides: dict[str, str] = {}
        self._counts: Counter[str] = Counter()
        self._released_methods: dict[str, set[str]] = {}
        self._to_renegotiate: set[str] = set()
        self._released: list[tuple[str, Flow]] = []

    @property
    def is_limiting(self) -> bool:
        """Whether any flow is limited here."""
        return any(limiter.is_limiting for limiter in self._limiters.values())

    def set_shares(self, shares: Shares, now: float) -> None:
        """Replace all shares.

        Send the :meth:`due_grants` before, and notify the :meth:`workers_to_renegotiate` after.
        """
        rows: dict[tuple[str, str], list[Share]] = {}
        newcomers = dict(self._newcomers(shares))
        for row in shares.rows:
            rows.setdefault((row.side, row.method), []).append(row)
        for where in {*self._limiters, *newcomers, *rows}:
            limiter = self._limiters.get(where)
            if limiter is None:
                limiter = self._limiters[where] = MethodLimiter(now)
            restricts, released = limiter.set_shares(rows.get(where, ()), newcomers.get(where), now)
            if restricts:
                self._renegotiate(*where)
            for worker, flow in released:
                self._release(worker, flow)

    def drain(self, side: str, now: float) -> None:
        """Remove all tokens of ``side``, whose workers continued without an agent."""
        for (where, _), limiter in self._limiters.items():
            if where == side:
                limiter.drain(now)

    def _newcomers(self, shares: Shares) -> Iterator[tuple[tuple[str, str], float]]:
        """Side and method → newcomer rate; the earlier rate where the new one is NaN."""
        for side, rates in shares.newcomer.items():
            for method, rate in rates.items():
                limiter = self._limiters.get((side, method))
                before = None if limiter is None else limiter.newcomer_rate
                if 0 <= rate < math.inf:
                    yield (side, method), rate
                elif math.isnan(rate) and before is not None:
                    yield (side, method), before

    def add_worker(self, worker: str, side: str) -> None:
        """Add a worker of this side of the node; the fallback rates are then divided among one more worker."""
        self._sides[worker] = side
        self._counts[side] += 1
        self._released_methods[worker] = set()

    def remove_worker(self, worker: str) -> None:
        """Remove a worker; its grants are spent."""
        for limiter in self._limiters.values():
            limiter.remove_worker(worker)
        if worker in self._sides:
            self._counts[self._sides.pop(worker)] -= 1
        self._released_methods.pop(worker, None)
        self._to_renegotiate.discard(worker)
        self._released = [(name, flow) for name, flow in self._released if name != worker]

    def request(self, worker: str, request: CreditRequest, now: float) -> None:
        """A worker that was added requests bytes, or returns some."""
        where = self._sides[worker], request.method
        limiter = self._limiters.get(where)
        if limiter is None and request.ceiling:
            limiter = self._limiters[where] = MethodLimiter(now)
        is_limited = limiter is not None and limiter.request(worker, request.flow, request.size, now, request.ceiling)
        if not is_limited and request.size > 0:
            self._release(worker, request.flow)

    def due_grants(self, now: float) -> Grants:
        """The grants that are ready now, by worker; they count as given."""
        sizes: dict[tuple[str, Flow], tuple[int, float]] = dict.fromkeys(self._released, (FREE, _UNLIMITED))
        self._released = []
        for limiter in self._limiters.values():
            for flow_limiter, worker, size in limiter.due_grants(now):
                before = sizes.get((worker, flow_limiter.flow), (0, 0.0))[0]
                if before != FREE:
                    rate = flow_limiter.fallback_rate(worker, now, self._counts[self._sides[worker]])
                    sizes[worker, flow_limiter.flow] = before + size, rate
        return _by_worker((worker, flow, size, rate) for (worker, flow), (size, rate) in sizes.items())

    def changed_fallback_rates(self, now: float) -> Grants:
        """Grants of 0 bytes, by worker, with the fallback rates that have changed; they count as known then."""
        return _by_worker(
            (worker, flow, 0, rate)
            for (side, _), limiter in self._limiters.items()
            for worker, flow, rate in limiter.changed_fallback_rates(now, self._counts[side])
            if worker in self._sides
        )

    def newcomer_fallback_rates(self, side: str) -> dict[str, float]:
        """Method → the fallback rate of a flow that a worker of ``side`` has not met, in bytes per second."""
        return {
            method: limiter.newcomer_rate / max(self._counts[side], 1)
            for (where, method), limiter in self._limiters.items()
            if where == side and limiter.newcomer_rate is not None
        }

    def seconds_until_due(self, now: float) -> float | None:
        """Seconds until :meth:`due_grants` may have a grant; None while nothing is pending."""
        if self._released:
            return 0.0
        return min(
            (due for limiter in self._limiters.values() if (due := limiter.seconds_until_due(now)) is not None),
            default=None,
        )

    def workers_to_renegotiate(self) -> list[str]:
        """Workers that must request credit again for flows that were not limited; each is named once."""
        workers = sorted(self._to_renegotiate)
        self._to_renegotiate.clear()
        return workers

    def _release(self, worker: str, flow: Flow) -> None:
        self._released_methods[worker].add(flow.method)
        self._released.append((worker, flow))

    def _renegotiate(self, side: str, method: str) -> None:
        for worker, methods in self._released_methods.items():
            if self._sides[worker] == side and method in methods:
                methods.clear()
                self._to_renegotiate.add(worker)


def _by_worker(rows: Iterable[tuple[str, Flow, int, float]]) -> dict[str, list[CreditGrant]]:
    grants: dict[str, list[CreditGrant]] = {}
    for worker, flow, size, rate in rows:
        grant = CreditGrant(flow.account, flow.container, flow.method, flow.policy, size, rate)
        grants.setdefault(worker, []).append(grant)
    return grants
