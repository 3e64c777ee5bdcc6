"""What a node can carry, where nobody configured or calibrated it.

An estimate that only remembers what it allowed locks itself in: it holds back, so it never sees more than it allows,
so it goes on to hold back.  Hence:

* Nothing is known, and nothing held back, as long as no floor suffers.
* A floor *suffers* when its flow has transfers open, moves clearly less than it may, and does not wait for us: then
  something else is full, which is the node.  Its capacity is the most that it moved lately, and shrinks slowly
  (1 % a second, at most to half of that) while it is used up and the floor goes on to suffer.
* A flow that suffers no less when others were held back for a while is slow by itself, and is let alone for a minute.
* While nobody suffers and the estimate is used up it grows, by 5 % a second or 1 MB/s, whichever is more; also
  when the floors are more than it carries, for then those that wait, wait for us.
* When one node's capacity is estimated, those of all others of its side are: at the most that any of them moved lately.
* An estimate that was not used up for a minute is forgotten.

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

#: An estimate of which more than this part is moved is used up.
USED_UP: Final = 0.9
GROWTH: Final = 0.05
LEAST_GROWTH: Final = 1e6
SHRINKING: Final = 0.01
#: No node carries less.
LEAST: Final = 1e6
_MEAN: Final = 3.0
_LATELY: Final = 30
_FORGOTTEN: Final = 60.0
#: A flow moves clearly less than it may below this part of it.
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
    def most(self) -> float:
        """The most that the node moved lately."""
        return max(max(self._lately, default=0.0), LEAST)

    def begin(self, value: float) -> None:
        """Suppose ``value`` where nothing is known."""
        if math.isinf(self.value):
            self.value = value

    def step(self, moved: float, suffering: bool, seconds: float = 1.0) -> float:
        """The estimate after another ``seconds`` in which ``moved`` (per second) went through the node.

        ``suffering`` says that a floor suffers here.
        """
        self._mean += (1.0 - math.exp(-seconds / _MEAN)) * (moved - self._mean)
        self._lately.append(self._mean)
        used_up = self._mean >= USED_UP * self.value
        if suffering:
            if not used_up:
                self.value = min(self.value, self.most)
            self._before = self._before or self.value
            if used_up:
                self.value = max(self.value * (1.0 - SHRINKING * seconds), self._before / 2, LEAST)
        elif used_up:
            self.value = max(self.value, self._mean)
            self.value += max(GROWTH * self.value, LEAST_GROWTH) * seconds
        if not suffering:
            self._before = 0.0
        self._spare = 0.0 if used_up or suffering else self._spare + seconds
        if self._spare >= _FORGOTTEN:
            self.value = math.inf
        return self.value


@dataclass(slots=True)
class _Suspect:
    since: float
    moved: float


@dataclass(slots=True)
class FloorViolations:
    """Which flows suffer."""

    _suspects: dict[Flow, _Suspect] = field(default_factory=dict)
    _excused: dict[Flow, float] = field(default_factory=dict)

    def step(self, flow: Flow, may: float, moved: float, open: float, held: float, now: float) -> bool:  # noqa: A002
        """True when ``flow`` suffers at ``now``.

        ``allowed`` is what it may move of its floor, ``moved`` what it does, ``open`` how many transfers it
        has, of which we hold back ``held``; all are means.
        """
        if open < _CLEARLY or moved >= _CLEARLY * may or held > 0.1 * open:
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
        """Forget what is over."""
        self._excused = {flow: until for flow, until in self._excused.items() if until > now}
        self._suspects = {flow: one for flow, one in self._suspects.items() if now - one.since < _EXCUSED}


@dataclass(slots=True)
class NodeCapacities:
    """What every node carries on one side for one method: configured, or else estimated."""

    side: str
    method: str
    _estimates: dict[str, CapacityEstimate] = field(default_factory=dict)

    def of(self, node: str, configured: Mapping[str, Mapping[str, float]]) -> tuple[float, str]:
        """Capacity (infinite when unknown) and where it is known from."""
        given = configured.get(self.side, {}).get(self.method, 0.0)
        if given > 0:
            return given, CONFIGURED
        estimate = self._estimates.get(node)
        if estimate is None or math.isinf(estimate.value):
            return math.inf, UNKNOWN
        return estimate.value, ESTIMATED

    def step(self, moved: Mapping[str, float], suffering: Collection[str], seconds: float) -> None:
        """Another second: node → what it moved, of those that have no configured capacity; others are forgotten."""
        self._estimates = {node: self._estimates.get(node) or CapacityEstimate() for node in moved}
        for node, estimate in self._estimates.items():
            estimate.step(moved[node], node in suffering, seconds)
        if suffering:  # a node without any estimate would seem to carry all that the others cannot
            most = max((one.most for one in self._estimates.values()), default=LEAST)
            for estimate in self._estimates.values():
                estimate.begin(most)
