"""Floors placed one flow after the other, as Crystal's Algorithm 1 can be read: which order meets more of them?"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
from tests.support.simulation.random_clusters import max_rates

from sluice_actors.bandwidth.arrays import FloatArray
from sluice_actors.bandwidth.fairness.problem import AllocationProblem, Side


def with_few_transfers(problem: AllocationProblem, random: np.random.Generator) -> AllocationProblem:
    """The same cluster with 1 to 12 transfers for each flow, which is on no more nodes than it has transfers."""
    transfers = random.integers(1, 13, len(problem.floor))

    def thinned(side: Side) -> Side:
        starts = np.searchsorted(side.flow, side.flow)
        kept = np.arange(len(side.flow)) - starts < transfers[side.flow]
        return replace(side, flow=side.flow[kept], node=side.node[kept], weight=side.weight[kept])

    proxies, storage = thinned(problem.proxies), thinned(problem.storage)
    return replace(problem, transfers=transfers.astype(np.float64), proxies=proxies, storage=storage)


def place_one_by_one(problem: AllocationProblem, order: Iterable[int]) -> FloatArray:
    """(flows,) the floors that are met: each by its weights, the rest on its other nodes."""
    room = [problem.proxies.capacity.copy(), problem.storage.capacity.copy()]
    sides = (problem.proxies, problem.storage)
    target = np.minimum(problem.floor, max_rates(problem))
    carried = np.zeros_like(target)
    for flow in order:
        mine = [np.flatnonzero(side.flow == flow) for side in sides]
        free = [left[side.node[parts]] for left, side, parts in zip(room, sides, mine, strict=True)]
        carried[flow] = min(target[flow], *(float(one.sum()) for one in free))
        for left, side, parts, had in zip(room, sides, mine, free, strict=True):
            left[side.node[parts]] -= _placed(carried[flow], side.weight[parts], had)
    return carried


def _placed(rate: float, weight: FloatArray, room: FloatArray) -> FloatArray:
    """``rate`` by weight, and the rate above a node's room by the room of the others."""
    first = np.minimum(rate * weight / weight.sum(), room)
    beside = room - first
    part = min((rate - float(first.sum())) / max(float(beside.sum()), 1e-9), 1.0)
    placed: FloatArray = first + beside * part
    return placed
