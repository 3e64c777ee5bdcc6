"""Estimates what a node can carry, where its capacity is neither configured nor calibrated.

An estimate that remembers only the rates that it allowed locks itself in: it holds flows back, so it never observes
more than it allows, so it continues to hold back.  Hence:

* As long as no floor is violated, there is no estimate and nothing is held back.
* A floor is *violated* when its flow has transfers open, moves clearly less than it may, and is not throttled by
  Sluice: then the node is full.  Its capacity is the most that it moved lately.  The estimate shrinks slowly (1 % a
  second, at most to half of that) while it is used up and the floor stays violated.
* A flow that gains nothing while others are held back is slow by itself, and is ignored for a minute.
* While no floor is violated and the estimate is used up it grows, by 5 % a second or 1 MB/s, whichever is more.  It
  also grows when the floors exceed it, because Sluice then throttles the flows that wait.
* As soon as the capacity of one node is estimated, so is that of every other node of its side: at the most that any of
  them moved lately.
* An estimate that was not used up for a minute is dropped.

Rates in bytes per second, times in seconds.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

from sluice_core.messages.bandwidth import Flow

CONFIGURED: Final = "configured"
ESTIMATED: Final = "estimated"
UNKNOWN: Final = "unknown"

#: An estimate is used up when the node moves more than this part of it.
USED_UP: Final = 0.9
GROWTH: Final = 0.05
LEAST_GROWTH: Final = 1e6
SHRINKING: Final = 0.01
#: The least estimate, in bytes per second.
LEAST: Final = 1e6
_MEAN: Final = 3.0
_LATELY: Final = 30
_FORGOTTEN: Final = 60.0
#: A flow moves clearly less than it may below this part of its allowed rate.
_CLEARLY: Final = 0.9
_SUFFERS: Final = 4.0
_GIVE_UP: Final = 20.0
_BETTER: Final = 1.2
_EXCUSED: Final = 60.0


@dataclass(slots=True)
class CapacityEstimate:
    """The capacity of one node on one side for one method; ``value`` is infinite while it is unknown."""

    value: float = math.inf
    _mean: float = 0.0
    _lately: deque[float] = field(default_factory=lambda: deque(maxlen=_LATELY))
    _spare: float = 0.0
    _before: float = 0.0

    @property
    def peak(self) -> float:
        """The most that the node moved lately, bytes per second."""
        return max(max(self._lately, default=0.0), LEAST)

    def begin(self, value: float) -> None:
        """Start with ``value`` if nothing is known."""
        if math.isinf(self.value):
            self.value = value

    def update(self, moved: float, violated: bool, seconds: float = 1.0) -> float:
        """Update and return the estimate.

        :param moved: bytes per second that the node moved in the last ``seconds``
        :param violated: whether a floor is violated on the node
        """
        self._mean += (1.0 - math.exp(-seconds / _MEAN)) * (moved - self._mean)
        self._lately.append(self._mean)
        used_up = self._mean >= USED_UP * self.value
        if violated:
            if not used_up:
                self.value = min(self.value, self.peak)
            self._before = self._before or self.value
            if used_up:
                self.value = max(self.value * (1.0 - SHRINKING * seconds), self._before / 2, LEAST)
        elif used_up:
            self.value = max(self.value, self._mean)
            self.value += max(GROWTH * self.value, LEAST_GROWTH) * seconds
        if not violated:
            self._before = 0.0
        self._spare = 0.0 if used_up or violated else self._spare + seconds
        if self._spare >= _FORGOTTEN:
            self.value = math.inf
        return self.value


@dataclass(slots=True)
class _Suspect:
    since: float
    moved: float


@dataclass(slots=True)
class FloorViolations:
    """Finds the flows whose floors are violated by something other than Sluice's own limits."""

    _suspects: dict[Flow, _Suspect] = field(default_factory=dict)
    _excused: dict[Flow, float] = field(default_factory=dict)

    def is_violated(self, flow: Flow, allowed: float, moved: float, opened: float, waiting: float, now: float) -> bool:
        """True when the floor of ``flow`` is violated at ``now``.

        :param allowed: bytes per second that the flow may move of its floor
        :param moved: bytes per second that it moves, as a mean
        :param opened: its open transfers, as a mean
        :param waiting: of these, the ones that Sluice holds back
        """
        if opened < _CLEARLY or moved >= _CLEARLY * allowed or waiting > 0.1 * opened:
            self._suspects.pop(flow, None)
            return False
        if now < self._excused.get(flow, -math.inf):
            return False
        suspect = self._suspects.setdefault(flow, _Suspect(now, moved))
        passed = now - suspect.since
        if passed > _GIVE_UP and moved < _BETTER * suspect.moved:
            self._excused[flow] = now + _EXCUSED
            del self._suspects[flow]
            return False
        return passed >= _SUFFERS

    def forget(self, now: float) -> None:
        """Remove the flows that have not been observed for long enough."""
        self._excused = {flow: until for flow, until in self._excused.items() if until > now}
        self._suspects = {flow: suspect for flow, suspect in self._suspects.items() if now - suspect.since < _EXCUSED}


@dataclass(slots=True)
class NodeCapacities:
    """The capacity of every node on one side for one method: configured, otherwise estimated."""

    side: str
    method: str
    _estimates: dict[str, CapacityEstimate] = field(default_factory=dict)

    def capacity(self, node: str, configured: Mapping[str, Mapping[str, float]]) -> tuple[float, str]:
        """The capacity of ``node`` (infinite if unknown), and its source.

        :param configured: side → method → bytes per second, as the node reports
        """
        given = configured.get(self.side, {}).get(self.method, 0.0)
        if given > 0:
            return given, CONFIGURED
        estimate = self._estimates.get(node)
        if estimate is None or math.isinf(estimate.value):
            return math.inf, UNKNOWN
        return estimate.value, ESTIMATED

    def update(self, moved: Mapping[str, float], violated: Collection[str], seconds: float) -> None:
        """Update the estimates.

        :param moved: node → bytes per second, of all nodes without a configured capacity; other nodes are dropped
        :param violated: names of the nodes where a floor is violated
        :param seconds: since the last update
        """
        self._estimates = {node: self._estimates.get(node) or CapacityEstimate() for node in moved}
        for node, estimate in self._estimates.items():
            estimate.update(moved[node], node in violated, seconds)
        if violated:  # a node without an estimate would seem to carry everything that the others cannot
            most = max((estimate.peak for estimate in self._estimates.values()), default=LEAST)
            for estimate in self._estimates.values():
                estimate.begin(most)
