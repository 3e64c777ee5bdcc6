"""The cost of a second on the dividing host of a large cluster: from the bytes of reports to those of shares."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
from benchmarks.harness.figures import Figure, at_most
from tests.support.actors.bandwidth import MB, bandwidth_policy
from tests.support.simulation.decider import allocator_decider
from tests.support.simulation.random_clusters import Sizes, random_problem

from sluice_actors.bandwidth.allocator import Allocator
from sluice_actors.bandwidth.arrays import FloatArray
from sluice_actors.bandwidth.fairness.problem import AllocationProblem, Side
from sluice_actors.bandwidth.loads.decoder import PackedNodeLoad
from sluice_core.describe import PROXY, STORAGE_NODE
from sluice_core.messages.bandwidth import GET, Load, NodeLoad
from sluice_core.messages.policies import Change

#: From reports in memory to encoded shares; the same with decoding of the reports before, and the report for the API
#: after.
ROUND_LIMIT: Final = 1.0
SECOND_LIMIT: Final = 2.0
#: Rounds before the counted ones, after which flows are known and have shares.
_BEFORE: Final = 2
_TRANSFERS: Final = 16.0
#: Idle tenants, the floor of each (B/s; together a tenth of the capacity), and the number of active tenants.
_IDLE: Final = 10_000
_PROMISED: Final = 1e4
_BESIDE: Final = Sizes(flows=1000, proxies=10, storage=100, parts=10)


@dataclass(slots=True)
class _Took:
    """Processor seconds of each round."""

    decode: list[float] = field(default_factory=list)
    feed: list[float] = field(default_factory=list)
    round: list[float] = field(default_factory=list)
    picture: list[float] = field(default_factory=list)

    def columns(self) -> tuple[list[float], ...]:
        """In order of execution."""
        return self.decode, self.feed, self.round, self.picture


def rounds(problem: AllocationProblem, random: np.random.Generator, times: int, words: str) -> list[Figure]:
    """``times`` seconds of the whole host on a cluster without idle tenants; ``words`` describe the cluster."""
    allocator, took = allocator_decider(problem).allocator, _Took()
    for number in range(1, times + _BEFORE + 1):
        bodies = _bodies(problem, number, random)
        found = _second(allocator, bodies, number)
        if number > _BEFORE:
            for column, seconds in zip(took.columns(), found, strict=True):
                column.append(seconds)
    decode, feed, divided, picture = (float(np.median(one)) for one in took.columns())
    parts = len(problem.proxies.flow) + len(problem.storage.flow)
    what = f"{words}, {parts:,} places"
    return [
        at_most("whole round", f"{what}: divide and encode, processor time", divided, ROUND_LIMIT, "s", digits=2),
        at_most(
            "whole second",
            f"{what}: decode, feed, divide and encode, make the picture, processor time",
            decode + feed + divided + picture,
            SECOND_LIMIT,
            "s",
            f"decode {decode:.2f} s, feed {feed:.2f} s, picture (after the shares are out) {picture:.2f} s,"
            f" longest round {max(took.round):.2f} s",
            digits=2,
        ),
        _idle(problem, random, times, words),
    ]


def _idle(problem: AllocationProblem, random: np.random.Generator, times: int, words: str) -> Figure:
    """The cost of idle floors beside a small cluster whose floors are the same part of the capacity."""
    small = random_problem(random, replace(_BESIDE, asked=float(problem.floor.sum() / problem.proxies.capacity.sum())))
    allocators = {idle: _promised(small, idle) for idle in (0, _IDLE)}
    took: dict[int, list[float]] = {idle: [] for idle in allocators}
    sizes = {}
    for number in range(1, times + _BEFORE + 1):
        bodies = _bodies(small, number, random)
        for idle, allocator in allocators.items():
            for body in bodies:
                allocator.feed(PackedNodeLoad.decode(body), number + 0.06)
            began = time.process_time()
            picture, promises = allocator.allocate(number + 0.18, number).reports
            sizes[idle] = len(picture.encode())
            if number > _BEFORE:
                took[idle].append(time.process_time() - began)
    without, beside = (float(np.median(one)) for one in took.values())
    return Figure(
        "idle floors",
        f"{words}, but {_BESIDE.flows:,} active tenants on {_BESIDE.proxies + _BESIDE.storage} nodes: round,"
        f" picture and encoding with {_IDLE:,} idle floors beside them, processor time",
        beside / without,
        f"{beside / without:.2f} × without",
        beside=f"{beside * 1e3:.0f} ms with, {without * 1e3:.0f} ms without;"
        f" written each second {sizes[_IDLE] / 1e6:.2f} MB with, {sizes[0] / 1e6:.2f} MB without;"
        f" {len(promises.raw) / 1e6:.1f} MB when promises change",
    )


def _promised(problem: AllocationProblem, idle: int) -> Allocator:
    """The objectives of a problem, and so many additional floors."""
    allocator = allocator_decider(problem).allocator
    more = tuple(bandwidth_policy(f"idle{number}", get_bw=_PROMISED / MB) for number in range(idle))
    allocator.objectives.apply(Change(1, "benchmark", 0.0, puts=more))
    return allocator


def _second(allocator: Allocator, bodies: list[bytes], number: int) -> tuple[float, ...]:
    """Processor seconds for decoding, for loading, for the round, and for its report."""
    decode = feed = 0.0
    for body in bodies:
        began = time.process_time()
        load = PackedNodeLoad.decode(body)
        read = time.process_time()
        allocator.feed(load, number + 0.06)
        decode, feed = decode + read - began, feed + time.process_time() - read
    began = time.process_time()
    made = allocator.allocate(number + 0.18, number)
    divided = time.process_time() - began
    assert len(made.messages) == len(bodies)
    began = time.process_time()
    assert made.reports[0].flows
    return decode, feed, divided, time.process_time() - began


def _bodies(problem: AllocationProblem, number: int, random: np.random.Generator) -> list[bytes]:
    """The reports of all nodes: each flow moves a little more than its floor, in random order."""
    rate = 1e5 + problem.floor
    bodies = []
    for side, name, given in ((PROXY, "proxy", problem.proxies), (STORAGE_NODE, "storage", problem.storage)):
        part = given.weight / np.bincount(given.flow, given.weight)[given.flow]
        moved = rate[given.flow] * part * random.uniform(0.5, 1.5, len(part))
        waits = np.isinf(problem.demand)[given.flow] * 0.5
        for node, capacity in enumerate(given.capacity.tolist()):
            load = NodeLoad(
                f"{name}{node}",
                float(number),
                1.0,
                number,
                server=f"10.0.{node // 250}.{node % 250}:6200" if side == STORAGE_NODE else "",
                capacity={side: {GET: capacity}},
                sides=(side,),
                rows=_rows(side, given, node, (moved, _TRANSFERS * part, _TRANSFERS * part * waits), random),
            )
            bodies.append(load.encode())
    return bodies


def _rows(
    side: str, given: Side, node: int, told: tuple[FloatArray, ...], random: np.random.Generator
) -> tuple[Load, ...]:
    index = random.permutation(np.flatnonzero(given.node == node))
    columns = (given.flow[index].tolist(), *(one[index].tolist() for one in told))
    device = "" if side == PROXY else "sdb1"
    return tuple(Load(side, str(flow), "", GET, 0, device, *numbers) for flow, *numbers in zip(*columns, strict=True))
