"""Random clusters for tests and benchmarks of the allocation, and their exact max-min fair shares."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import compress
from typing import Final

import numpy as np

from sluice_actors.bandwidth.arrays import FloatArray, IntArray
from sluice_actors.bandwidth.fairness.problem import AllocationProblem, Side

#: Sets of nodes are enumerated: no side may have more nodes than this.
MOST_NODES: Final = 12


@dataclass(frozen=True, slots=True)
class Sizes:
    """The parameters of a random cluster.

    ``parts`` is the number of a flow's nodes on a side, ``skew`` the exponent of Zipf's law of the nodes'
    popularity, ``asked`` the sum of the floors as a part of the smaller side's capacity.
    """

    flows: int
    proxies: int
    storage: int
    parts: int
    skew: float = 0.8
    asked: float = 0.6
    waiting: float = 0.7  #: part of the flows that want without end
    capped: float = 0.2  #: part of the flows with a ceiling


def random_sizes(random: np.random.Generator) -> Sizes:
    """A small cluster, for which :func:`expected` can be computed."""
    return Sizes(
        flows=int(random.integers(3, 40)),
        proxies=int(random.integers(2, 6)),
        storage=int(random.integers(3, 10)),
        parts=int(random.integers(2, 8)),
        skew=float(random.choice([0.0, 0.6, 1.0])),
        asked=float(random.choice([0.3, 0.6, 0.9])),
    )


def random_problem(random: np.random.Generator, sizes: Sizes) -> AllocationProblem:
    """A cluster with as much capacity at the proxies as at the storage nodes, each flow its tenant's only one."""
    count = sizes.flows
    proxies = _side(random, count, sizes.proxies, sizes.parts, 0.0)
    storage = _side(random, count, sizes.storage, sizes.parts, sizes.skew)
    total = min(float(proxies.capacity.sum()), float(storage.capacity.sum()))
    floor = random.lognormal(0.0, 1.0, count) * (random.random(count) < 0.7)
    floor *= sizes.asked * total / max(float(floor.sum()), 1e-9)
    mean = total / count
    return AllocationProblem(
        floor=floor,
        ceiling=np.where(random.random(count) < sizes.capped, random.uniform(0.5, 3.0, count) * mean, np.inf),
        demand=np.where(random.random(count) < sizes.waiting, np.inf, random.uniform(0.05, 3.0, count) * mean),
        tenant=np.arange(count),
        bound=np.full(count, np.inf),
        transfers=random.integers(1, 50, count).astype(np.float64),
        proxies=proxies,
        storage=storage,
    )


def _side(random: np.random.Generator, flows: int, nodes: int, parts: int, skew: float) -> Side:
    popular = np.arange(1, nodes + 1) ** -skew
    random.shuffle(popular)
    parts = min(parts, nodes)
    drawn = np.log(popular)[np.newaxis, :] + random.gumbel(size=(flows, nodes))
    chosen = np.argsort(-drawn, axis=1)[:, :parts]
    capacity = random.uniform(0.7, 1.3, nodes)
    return Side(
        capacity=capacity * 1e9 / capacity.sum(),
        flow=np.repeat(np.arange(flows), parts),
        node=chosen.ravel(),
        weight=random.gamma(2.0, 1.0, flows * parts) + 1e-3,
        copies=np.ones(flows),
    )


@dataclass(frozen=True, slots=True)
class CapacityLimits:
    """The exact constraints of rates: ``matrix @ share <= right``, a row for each set of nodes of a side."""

    matrix: FloatArray
    right: FloatArray

    def allows(self, share: FloatArray) -> bool:
        """Whether the cluster can carry this."""
        return bool(np.all(self.matrix @ share <= self.right * (1 + 1e-9) + 1e-9))


def capacity_limits(problem: AllocationProblem) -> CapacityLimits:
    """Flows within a set of nodes cannot move more than these nodes (Hall's condition)."""
    rows: list[FloatArray] = []
    right: list[float] = []
    for side in (problem.proxies, problem.storage):
        count = len(side.capacity)
        if count > MOST_NODES:
            raise ValueError(f"{count} nodes, expected at most {MOST_NODES}")
        on = np.zeros(len(side.copies), dtype=np.int64)
        np.bitwise_or.at(on, side.flow, 1 << side.node)
        for nodes in range(1, 1 << count):
            inside = (on & ~nodes) == 0
            if inside.any():
                rows.append(np.where(inside, side.copies, 0.0))
                right.append(float(side.capacity[[bool(nodes >> one & 1) for one in range(count)]].sum()))
    return CapacityLimits(np.array(rows), np.array(right))


def max_rates(problem: AllocationProblem) -> FloatArray:
    """(flows,) the highest useful rate of each; of problems without bounds."""
    return np.minimum(problem.demand, problem.ceiling)


def exact_shares(problem: AllocationProblem, limit: CapacityLimits) -> FloatArray:
    """(flows,) floor + equal spare, by progressive filling; floors must be feasible, tenants have a flow each."""
    end = max_rates(problem)
    share = np.minimum(problem.floor, end)
    free = share < end
    while free.any():
        rate = limit.matrix @ free
        slack = np.maximum(limit.right - limit.matrix @ share, 0.0)
        step = min(float((slack[rate > 0] / rate[rate > 0]).min()), float((end - share)[free].min()))
        share = share + step * free
        tight = limit.matrix @ share >= limit.right * (1 - 1e-9)
        held = (limit.matrix[tight] > 0).any(axis=0)
        free = free & ~held & (share < end * (1 - 1e-12))
    return share


def shuffle(problem: AllocationProblem, random: np.random.Generator) -> tuple[AllocationProblem, IntArray]:
    """The same cluster with flows, nodes and parts in another order; (flows,) the present place of each flow."""
    place = random.permutation(len(problem.floor))
    back = np.argsort(place)

    def turned(side: Side) -> Side:
        nodes, parts = random.permutation(len(side.capacity)), random.permutation(len(side.flow))
        return Side(
            side.capacity[np.argsort(nodes)],
            place[side.flow][parts],
            nodes[side.node][parts],
            side.weight[parts],
            side.copies[back],
        )

    names = ("floor", "ceiling", "demand", "tenant", "transfers")
    moved = {name: getattr(problem, name)[back] for name in names}
    return replace(problem, **moved, proxies=turned(problem.proxies), storage=turned(problem.storage)), place


def overloaded_nodes(side: Side, rates: FloatArray) -> list[int]:
    """Nodes with more than their capacity."""
    load = np.bincount(side.node, rates, minlength=len(side.capacity))
    return list(compress(range(len(load)), load > side.capacity * (1 + 1e-6)))
