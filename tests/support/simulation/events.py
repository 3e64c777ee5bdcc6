"""A simulated cluster: a virtual clock, events in the order of time, and real code that allocates.

The cluster is fluid.  Proxies give each flow the rate of its part; unused rates go to other flows on that proxy
that need more.  Bytes move from full storage nodes to the flow's other nodes, as transfers in a closed
loop do.  Reports reach the decider late, twice, or not at all, and so do shares; tenants start and stop, proxies fail.

A :class:`Decider` allocates; ``decider.SimpleDecider`` is the simplest one.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final, Protocol

import numpy as np
from tests.support.simulation.random_clusters import capacity_limits, exact_shares, max_rates

from sluice_actors.bandwidth.arrays import BoolArray, FloatArray
from sluice_actors.bandwidth.fairness.placement import place_rates, sort_parts
from sluice_actors.bandwidth.fairness.problem import AllocationProblem
from sluice_core.describe import PROXY, STORAGE_NODE
from sluice_core.messages.bandwidth import GET, Load, NodeLoad, Shares

#: Seconds after the full second at which reports leave, and shares are divided.
REPORTED: Final = 0.06
DIVIDED: Final = 0.18
#: Transfers of a flow on each side; their places are those of its requests.
TRANSFERS: Final = 16.0


class Decider(Protocol):
    """Allocates from the reports of nodes."""

    def feed(self, load: NodeLoad, arrived: float) -> None:
        """Handle a report; ``arrived`` is the time of the clock."""

    def allocate(self, now: float) -> Mapping[str, Shares]:
        """The shares of each node."""


@dataclass(frozen=True, slots=True)
class Faults:
    """How often reports and shares are lost, doubled, or late (by a second and more); tenants that change a second."""

    lost: float = 0.0
    doubled: float = 0.0
    late: float = 0.0
    churn: float = 0.0


class Cluster:
    """``problem`` is the truth.  ``active`` flows have transfers, ``alive`` proxies serve."""

    def __init__(
        self, problem: AllocationProblem, random: np.random.Generator, decider: Decider, faults: Faults = Faults()
    ) -> None:
        self.problem, self.random, self.decider, self.faults = problem, random, decider, faults
        self.now = self.changed = 0.0
        self.active = np.ones(len(problem.floor), dtype=bool)
        self.alive = np.ones(len(problem.proxies.capacity), dtype=bool)
        self.told: dict[str, Shares] = {}
        self.moved: FloatArray = np.zeros(len(problem.floor))
        self._parts = (np.zeros(len(problem.proxies.flow)), np.zeros(len(problem.storage.flow)))
        self._since = 0.0
        self._rates: tuple[FloatArray, FloatArray] | None = None
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._numbers = itertools.count()
        self.at(1.0, self._second)

    def at(self, time: float, event: Callable[[], None]) -> None:
        """Run a function at that time."""
        heapq.heappush(self._events, (time, next(self._order), event))

    def run(self, until: float) -> None:
        """Advance the time."""
        while self._events and self._events[0][0] <= until:
            time, _, event = heapq.heappop(self._events)
            self._pass(time)
            event()
        self._pass(until)

    def set_active(self, flow: int, active: bool) -> None:
        """Start or stop a tenant."""
        self._pass(self.now)
        self.active[flow], self.changed, self._rates = active, self.now, None

    def set_alive(self, proxy: int, alive: bool) -> None:
        """Stop or start a proxy; its transfers move to the others."""
        self._pass(self.now)
        self.alive[proxy], self.changed, self._rates = alive, self.now, None

    def current_problem(self) -> AllocationProblem:
        """The problem with the present tenants and proxies."""
        given = self.problem
        capacity = np.where(self.alive, given.proxies.capacity, 0.0)
        demand = np.where(self.active, given.demand, 0.0)
        return replace(given, demand=demand, proxies=replace(given.proxies, capacity=capacity))

    def measured(self) -> FloatArray:
        """(flows,) bytes per second since the last call."""
        self._pass(self.now)
        rates, self.moved = self.moved / max(self.now - self._since, 1e-9), np.zeros_like(self.moved)
        self._since = self.now
        return rates

    def _pass(self, time: float) -> None:
        span, self.now = time - self.now, max(time, self.now)
        if span <= 0:
            return
        if self._rates is None:
            self._rates = self._flowing()
        for sums, rates in zip(self._parts, self._rates, strict=True):
            sums += rates * span
        self.moved += np.bincount(self.problem.proxies.flow, self._rates[0], minlength=len(self.moved)) * span

    def _flowing(self) -> tuple[FloatArray, FloatArray]:
        """(parts,) rates on both sides, in the present state."""
        proxies, storage = self.problem.proxies, self.problem.storage
        here = self.active[proxies.flow] & self.alive[proxies.node]
        wish = np.where(self.active, max_rates(self.problem), 0.0)
        allowed = np.where(here, self._allowed(), 0.0)
        demand = np.where(here, self._demand(wish, here), 0.0)
        rates = np.minimum(allowed, demand)
        for _ in range(3):  # the node's pool: other flows take unused rates in equal turns
            left = np.minimum(np.bincount(proxies.node, allowed, minlength=len(self.alive)), proxies.capacity)
            left = np.maximum(left - np.bincount(proxies.node, rates, minlength=len(self.alive)), 0.0)
            hungry = here & (rates < demand * (1 - 1e-9))
            takers = np.bincount(proxies.node, hungry, minlength=len(self.alive))
            rates = rates + np.minimum(
                np.where(hungry, (left / np.maximum(takers, 1))[proxies.node], 0.0), demand - rates
            )
        total = np.bincount(proxies.flow, rates, minlength=len(wish)).astype(np.float64)
        carried = place_rates(sort_parts(storage), total)
        part = np.divide(carried.carried, total, out=np.zeros_like(total), where=total > 0)
        return rates * part[proxies.flow], sort_parts(storage).unsorted(carried.rates)

    def _demand(self, wish: FloatArray, here: BoolArray) -> FloatArray:
        flow = self.problem.proxies.flow
        weight = np.where(here, self.problem.proxies.weight, 0.0)
        sums = np.bincount(flow, weight, minlength=len(wish))
        finite = np.where(np.isinf(wish), 0.0, wish)
        return np.where(np.isinf(wish[flow]), 1e12, finite[flow] * weight / np.maximum(sums, 1e-12)[flow])

    def _allowed(self) -> FloatArray:
        """(parts,) the rates of the proxies' shares; newcomers start at the node's rate for them."""
        proxies = self.problem.proxies
        even = proxies.capacity / np.maximum(np.bincount(proxies.node, minlength=len(self.alive)), 1)
        allowed = even[proxies.node].copy()
        for name, told in self.told.items():
            rows = {row.account: row.rate for row in told.rows if row.side == PROXY}
            newcomer = told.newcomer.get(PROXY, {}).get(GET, 0.0)
            for index in np.flatnonzero(proxies.node == int(name.removeprefix("proxy"))):
                allowed[index] = rows.get(str(proxies.flow[index]), newcomer)
        return allowed

    def _second(self) -> None:
        start = round(self.now)
        if self.faults.churn and self.random.random() < self.faults.churn:
            self.set_active(flow := int(self.random.integers(len(self.active))), not self.active[flow])
        for load in self._reports():
            if self.random.random() < self.faults.lost:
                continue
            late = 1.0 + self.random.random() if self.random.random() < self.faults.late else 0.0
            for copy in range(2 if self.random.random() < self.faults.doubled else 1):
                self.at(start + REPORTED + late + 0.3 * copy, lambda load=load: self.decider.feed(load, self.now))  # type: ignore[misc]
        self.at(start + DIVIDED, self._divide)
        self.at(start + 1.0, self._second)

    def _reports(self) -> list[NodeLoad]:
        """The bytes of the last second on each running node."""
        loads = []
        for side, name, part, given, alive in (
            (PROXY, "proxy", self._parts[0], self.problem.proxies, self.alive),
            (STORAGE_NODE, "storage", self._parts[1], self.problem.storage, None),
        ):
            wanted = np.where(self.active, max_rates(self.problem), 0.0)
            here = self.active[given.flow] & (True if alive is None else alive[given.node])
            waits = here & (part < 0.98 * self._demand(wanted, here)) if alive is not None else np.zeros_like(here)
            weights = np.bincount(given.flow, given.weight * here, minlength=len(wanted))[given.flow]
            opened = TRANSFERS * given.weight * here / np.maximum(weights, 1e-12)
            for node in range(len(given.capacity)):
                if alive is not None and not alive[node]:
                    continue
                rows = tuple(
                    Load(
                        side,
                        str(flow),
                        "",
                        GET,
                        0,
                        "",
                        float(part[index]),
                        float(opened[index]),
                        opened[index] / 2 * waits[index],
                    )
                    for index in np.flatnonzero(given.node == node)
                    if self.active[flow := given.flow[index]]
                )
                capacity = {side: {GET: float(given.capacity[node])}}
                number = next(self._numbers)
                loads.append(
                    NodeLoad(f"{name}{node}", self.now, 0.0, number, capacity=capacity, sides=(side,), rows=rows)
                )
            part[:] = 0.0
        return loads

    def _divide(self) -> None:
        for name, shares in self.decider.allocate(self.now).items():
            if self.random.random() >= self.faults.lost:
                self.at(self.now + 0.02 + 0.01 * self.random.random(), lambda new=(name, shares): self._tell(*new))  # type: ignore[misc]

    def _tell(self, name: str, shares: Shares) -> None:
        old = self.told.get(name)
        if name.startswith("proxy") and (old is None or (old.term, old.number) < (shares.term, shares.number)):
            self.told[name], self._rates = shares, None


def relative_errors(cluster: Cluster, seconds: int, settled: float = 5.0) -> list[FloatArray]:
    """Run, and return |measured / expected - 1| of the active flows, for each second that was ``settled`` before."""
    found = []
    exact: tuple[float, FloatArray] | None = None
    for second in range(1, seconds + 1):
        cluster.run(round(cluster.now) + 1.0)
        rates = cluster.measured()
        if second <= settled or cluster.now - cluster.changed < settled:
            continue
        if exact is None or exact[0] != cluster.changed:
            truth = cluster.current_problem()
            exact = (cluster.changed, exact_shares(truth, capacity_limits(truth)))
        busy = exact[1] > 1.0
        found.append(np.abs(rates[busy] / exact[1][busy] - 1))
    return found
