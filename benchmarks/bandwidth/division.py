"""The division of bandwidth: errors against an exact computation, floors met, and the time of a large round."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Final

import numpy as np
from benchmarks.bandwidth import division_round
from benchmarks.harness.figures import Figure, at_most
from benchmarks.harness.scale import Scale, say
from tests.support.simulation.decider import simple_decider
from tests.support.simulation.events import Cluster, Faults, relative_errors
from tests.support.simulation.placement_orders import place_one_by_one, with_few_transfers
from tests.support.simulation.random_clusters import (
    Sizes,
    capacity_limits,
    exact_shares,
    max_rates,
    random_problem,
    random_sizes,
)

from sluice_actors.bandwidth.arrays import FloatArray
from sluice_actors.bandwidth.fairness.max_min import allocate_max_min
from sluice_actors.bandwidth.fairness.problem import AllocationProblem

ROUND_LIMIT: Final = 1.0
BIG: Final = Sizes(flows=10_000, proxies=100, storage=1000, parts=20)
#: Events in the simulated clusters.
ASTRAY: Final = Faults(lost=0.05, doubled=0.05, late=0.05, churn=0.1)


def measure(scale: Scale) -> list[Figure]:
    """Random clusters, each from its own seed, and rounds at 1,000 nodes and 10,000 tenants."""
    clusters = scale.pick(1000, 20)
    return [
        *_against_exact(clusters),
        *_over_time(scale.pick(200, 3)),
        _orders(clusters),
        *_rounds(scale.pick(5, 1)),
    ]


def _feasible(problem: AllocationProblem) -> bool:
    return capacity_limits(problem).allows(np.minimum(problem.floor, max_rates(problem)))


def _drawn(seed: int) -> tuple[AllocationProblem, np.random.Generator]:
    random = np.random.default_rng(seed)
    return random_problem(random, random_sizes(random)), random


def _against_exact(clusters: int) -> list[Figure]:
    say(f"division: {clusters} random clusters against progressive filling")
    found: list[FloatArray] = []
    met = asked = 0
    for seed in range(clusters):
        problem, _ = _drawn(seed)
        limit = capacity_limits(problem)
        target = np.minimum(problem.floor, max_rates(problem))
        if not limit.allows(target):
            continue
        share = allocate_max_min(problem).share
        found.append(np.abs(share / exact_shares(problem, limit) - 1))
        met += int(np.sum(share[target > 0] >= 0.99 * target[target > 0]))
        asked += int(np.sum(target > 0))
    what = f"{clusters} random clusters, floors feasible in {len(found)}"
    floors = 100 * met / max(asked, 1)
    return [
        _errors("division", f"{what}: share against floor + equal spare", found, 2.0),
        Figure(
            "division floors",
            f"{what}: floors met within 1 %",
            floors,
            f"{floors:.2f} %",
            "100 %",
            met == asked,
            f"{asked} floors",
        ),
    ]


def _errors(name: str, what: str, found: list[FloatArray], limit: float | None = None) -> Figure:
    """Mean, 99th percentile and worst, over flows and seconds."""
    every = 100 * np.concatenate(found)
    mean, most_of, worst = float(every.mean()), float(np.quantile(every, 0.99)), float(every.max())
    beside = f"median {np.median(every):.2f} %, 99 in 100 within {most_of:.1f} %, worst {worst:.1f} %"
    details = {"mean": mean, "p99": most_of, "worst": worst, "count": len(every)}
    if limit is None:
        return Figure(name, f"{what}: mean error", mean, f"{mean:.2f} %", beside=beside, details=details)
    return at_most(name, f"{what}: mean error", mean, limit, "%", beside, digits=2, **details)


def _over_time(clusters: int) -> list[Figure]:
    figures = []
    for words, faults in (("all is well", Faults()), ("5 % of reports lost, doubled, late; churn", ASTRAY)):
        say(f"division: {clusters} simulated clusters, {words}")
        found: list[FloatArray] = []
        for seed in range(clusters):
            problem, random = _drawn(seed)
            if _feasible(problem):
                found += relative_errors(Cluster(problem, random, simple_decider(problem), faults), 15)
        figures.append(_errors("division simulated", f"{clusters} clusters over 15 s, {words}: measured", found))
    return figures


def _orders(clusters: int) -> Figure:
    """Floors met if they are placed one after the other, in both orders."""
    say("division: orders")
    sums: dict[str, list[float]] = {"few": [], "many": [], "joint": []}
    for seed in range(clusters):
        problem, random = _drawn(seed)
        problem = with_few_transfers(problem, random)
        target = np.minimum(problem.floor, max_rates(problem))
        if not _feasible(problem) or not target.any():
            continue
        order = np.argsort(problem.transfers, kind="stable")
        answers = {
            "few": place_one_by_one(problem, order.tolist()),
            "many": place_one_by_one(problem, order[::-1].tolist()),
            "joint": allocate_max_min(problem).share,
        }
        for name, carried in answers.items():
            sums[name].append(float(np.mean(carried[target > 0] >= 0.99 * target[target > 0])))
    means = {name: 100 * float(np.mean(values)) for name, values in sums.items()}
    beside = f"one by one, fewest transfers first {means['few']:.1f} %, most first {means['many']:.1f} %"
    what = f"floors met in {len(sums['joint'])} clusters with 1 to 12 transfers for each tenant: all at once"
    return Figure(
        "division orders", what, means["joint"], f"{means['joint']:.1f} %", beside=beside, details={"means": means}
    )


def _rounds(times: int) -> list[Figure]:
    figures = []
    for words, asked in (("floors feasible", 0.6), ("floors 1.3 times the capacity", 1.3)):
        say(f"division: a round with 10,000 tenants, {words}")
        random = np.random.default_rng(1)
        problem = random_problem(random, replace(BIG, asked=asked))
        took = []
        for _ in range(times):
            begin = time.process_time()
            allocate_max_min(problem)
            took.append(time.process_time() - begin)
        what = f"one round, 10,000 tenants × 20 nodes, 100 proxies, 1,000 storage nodes, {words}: processor time"
        beside = f"longest {max(took):.2f} s"
        figures.append(at_most("division round", what, float(np.median(took)), ROUND_LIMIT, "s", beside, digits=2))
        say(f"division: the whole host, {words}")
        figures += division_round.rounds(problem, random, times, f"dividing host, as above, {words}")
    return figures
