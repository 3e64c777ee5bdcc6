"""The I/O priority of each flow on this node's disks, by its throughput and its objectives.

Priorities are levels of Linux' best-effort class (ioprio_set(2)).  A flow below its floor gets the first level (0).
While there is such a flow, the flows above their own floor and all copies between nodes are idle; so are flows above
their rate while others are limited.  All other flows have the level of their priority class.

The spare rates of object servers are sent only while shares arrive: old figures mislead the choice of replicas.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from sluice_core.describe import PROXY, STORAGE_NODE
from sluice_core.messages.bandwidth import NO_CLASS, REPLICATION_FLOW, Flow, Share, Shares
from sluice_core.messages.credit import IDLE, MESSAGE_LIMIT, Level, PriorityUpdate, pack

#: A flow below this fraction of its floor counts as below, until it reaches the floor.
_BELOW: Final = 0.95
#: A flow above so many times its limit counts as above, until it is at the limit again.
_ABOVE: Final = 1.05
_FIRST: Final = 0
#: Seconds without newer shares after which no spares are sent, as in :mod:`sluice_agent.bandwidth.shares`.
SILENCE: Final = 10.0

#: Flow → bytes per second, transfers open, transfers held back.
Moving = Mapping[Flow, tuple[float, float, float]]


@dataclass(frozen=True, slots=True)
class _FlowState:
    share: Share | None
    moved: float
    open: float
    waiting: float

    @property
    def floor(self) -> float:
        return 0.0 if self.share is None else self.share.floor

    @property
    def rate(self) -> float:
        """Its rate, at least its floor; infinite without a share or a limit."""
        return float("inf") if self.share is None or self.share.rate < 0 else max(self.share.rate, self.share.floor)


class IoLevels:
    """Knows which flows were below or above, for hysteresis, and the age of the shares."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """:param clock: monotonic seconds"""
        self._clock = clock
        self._round: tuple[int, int] | None = None
        self._came = -math.inf
        self._below: set[Flow] = set()
        self._above: set[Flow] = set()
        #: Side → the update for its workers.
        self.updates = {PROXY: PriorityUpdate(), STORAGE_NODE: PriorityUpdate()}

    def update(self, shares: Shares | None, moving: Moving) -> tuple[str, ...]:
        """Compute the updates.

        :return: the sides whose workers need theirs: it changed, or an objective is in force
        """
        rows = [] if shares is None else [row for row in shares.rows if row.side == STORAGE_NODE]
        active = any(row.floor > 0 or row.ceiling > 0 or row.priority != NO_CLASS for row in rows)
        spares = self._spares(shares)
        updates = {
            PROXY: PriorityUpdate((), active, spares),
            STORAGE_NODE: PriorityUpdate(tuple(self._levels(rows, moving)), active),
        }
        before, self.updates = self.updates, updates
        return tuple(side for side, update in updates.items() if active or update != before[side])

    def _spares(self, shares: Shares | None) -> dict[str, float] | None:
        """The spare rates of the shares; None without any, or when the shares are old."""
        if shares is None:
            return None
        if (shares.term, shares.number) != self._round:
            self._round, self._came = (shares.term, shares.number), self._clock()
        return dict(shares.spares) if shares.spares and self._clock() - self._came <= SILENCE else None

    def _levels(self, rows: list[Share], moving: Moving) -> Iterator[Level]:
        shares = {row.flow: row for row in rows}
        nothing = (0.0, 0.0, 0.0)
        states = {flow: _FlowState(shares.get(flow), *moving.get(flow, nothing)) for flow in {**shares, **moving}}
        self._below = {flow for flow, state in states.items() if self._is_below(flow, state)}
        waiting = {flow for flow, state in states.items() if state.waiting > 0}
        others = {flow: len(waiting) > (flow in waiting) for flow in states}
        self._above = {flow for flow, state in states.items() if self._is_above(flow, state, others[flow])}
        levels = [(self._level(flow, state), flow) for flow, state in states.items()]
        levels.sort(key=lambda one: (one[0] not in (_FIRST, IDLE), one))
        if self._below and REPLICATION_FLOW not in states:  # copies from other nodes are not in this node's totals
            levels.insert(0, (IDLE, REPLICATION_FLOW))
        for level, flow in levels:
            if level != NO_CLASS:
                yield Level(flow.account, flow.container, flow.method, flow.policy, level)

    def _is_below(self, flow: Flow, state: _FlowState) -> bool:
        enough = state.floor if flow in self._below else state.floor * _BELOW
        return state.open > 0 and state.moved < enough

    def _is_above(self, flow: Flow, state: _FlowState, others_wait: bool) -> bool:
        if flow in self._below:
            return False
        slack = 1.0 if flow in self._above else _ABOVE
        if self._below:
            return state.moved > state.floor * slack
        return others_wait and state.moved > state.rate * slack

    def _level(self, flow: Flow, state: _FlowState) -> int:
        if flow in self._below:
            return _FIRST
        if flow in self._above:
            return IDLE
        return NO_CLASS if state.share is None else state.share.priority


def encode_update(update: PriorityUpdate) -> bytes:
    """The update for the wire; rows beyond the message limit are left out, last ones first."""
    raw = pack(update)
    rows, spares = update.rows, update.spares
    while len(raw) > MESSAGE_LIMIT and (rows or spares):
        rows = rows[: len(rows) // 2]
        spares = None if spares is None else dict(list(spares.items())[: len(spares) // 2])
        raw = pack(replace(update, rows=rows, spares=spares))
    return raw
