"""What the division remembers from round to round besides the loads: copies, and ceilings of those who went."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Final

from sluice_actors.bandwidth_demand import Part
from sluice_actors.bandwidth_dividing import Divided
from sluice_actors.bandwidth_objectives import Objectives, Promise
from sluice_core.bandwidth import Flow
from sluice_core.describe import PROXY, STORAGE_NODE

#: Bytes stored per byte of an upload, until it is known better.
COPIES: Final = 3.0
_MEAN: Final = 5.0
#: Less per second teaches nothing.
_TEACHES: Final = 1e6
_FEWEST, _MOST = 0.05, 20.0
#: Seconds for which a flow with a ceiling is remembered after its last byte, and how many of them.
LINGERS: Final = 60.0
MOST_LINGERING: Final = 1000


@dataclass(slots=True)
class Copies:
    """Bytes stored per byte of an upload, by storage policy: replicas, parity, and what filters make of them."""

    _means: dict[int, tuple[float, float]] = field(default_factory=dict)

    def learn(self, flows: dict[Flow, dict[str, list[Part]]], seconds: float) -> None:
        """Look at the uploads of the last second."""
        sums: dict[int, list[float]] = {}
        for flow, sides in flows.items():
            moved = sums.setdefault(flow.policy, [0.0, 0.0])
            for place, side in enumerate((PROXY, STORAGE_NODE)):
                moved[place] += sum(part.trace.moved for part in sides.get(side, ()))
        part = 1.0 - math.exp(-seconds / _MEAN)
        for policy, (sent, stored) in sums.items():
            if sent >= _TEACHES and stored > 0:
                before = self._means.get(policy, (sent, sent * COPIES))
                self._means[policy] = (
                    before[0] + part * (sent - before[0]),
                    before[1] + part * (stored - before[1]),
                )

    def of(self, policy: int) -> float:
        """For uploads under the storage policy with this index."""
        sent, stored = self._means.get(policy, (1.0, COPIES))
        return min(max(stored / sent, _FEWEST), _MOST)


@dataclass(slots=True)
class Lingering:
    """Flows with a ceiling of which nothing moves any more.

    Their ceiling stays where they were for a minute, else who asks every two seconds would begin without one each time.
    """

    _flows: dict[Flow, tuple[float, tuple[str, ...]]] = field(default_factory=dict)

    def step(self, made: Divided, objectives: Objectives, now: float) -> None:
        """Put rows into ``made`` for those who went, and remember those who are there."""
        side = made.demands.side
        active = set()
        busy = set()
        for one in made.demands.flows:
            active.add(one.flow)
            busy.add(one.flow.account)
            if one.promise.limited:
                self._flows.pop(one.flow, None)
                self._flows[one.flow] = (now + LINGERS, tuple(part.node.name for part in one.parts[side]))
        self._flows = {flow: kept for flow, kept in self._flows.items() if kept[0] > now}
        while len(self._flows) > MOST_LINGERING:
            del self._flows[next(iter(self._flows))]
        for flow, (_, nodes) in self._flows.items():
            promise = objectives.promise(flow)
            if flow not in active and promise.limited and not (promise.bound is not None and flow.account in busy):
                _hold(made, flow, promise, nodes)


def _hold(made: Divided, flow: Flow, promise: Promise, nodes: tuple[str, ...]) -> None:
    ceilings = [one.ceiling for one in (promise.own, promise.bound) if one is not None and one.ceiling]
    part = min(ceilings) / len(nodes)
    for node in nodes:
        rate = min(part, made.newcomers.get(node, math.inf))
        made.put(node, made.demands.side, flow, promise, rate, 0.0, part)
