"""The cost of policy actors: CPU per tick, memory per actor, and blocking time of the loop.

One tick is one window: a metric batch with a new value for every actor's tenant is decoded, merged, its
window closed and delivered to all actors, on the same path as in the actor host.  ``--moving`` is the share
of actors that cross their threshold from one tick to the next, and have to be looked at closely.

    python benchmarks/control_plane/actors.py --actors 50000 --ticks 20 --json actors.json
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import random
import statistics
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from sluice_actors.metrics.metric_router import MetricRouter
from sluice_actors.policies.actor import Context, PolicyActor
from sluice_actors.policies.actor_factory import PlanCache, policy_actor
from sluice_actors.policies.conditions import ConditionCache
from sluice_actors.policies.group_index import GroupIndex
from sluice_actors.runtime.system import ActorSystem
from sluice_actors.testing import Clock, RecordingListener, plan_of
from sluice_core.messages.nodes import MetricBatch
from sluice_core.messages.policies import Policy

THRESHOLD = 3.0
TO_REACH_CPU = 0.30
TO_REACH_BYTES = 8 * 1024


@dataclass(frozen=True)
class Result:
    """One run; CPU in seconds per tick, which at one tick a second is the share of one core."""

    actors: int
    moving: float
    ticks: int
    cpu_median: float
    cpu_worst: float
    longest_slice: float
    bytes_per_actor: float
    reached: bool


def resident() -> int:
    """Resident memory of this process in bytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def tenant(number: int) -> str:
    return f"AUTH_{number:032x}"


def document(number: int) -> bytes:
    """A policy in its stored form."""
    plan = plan_of(["metric", "PUTS_SEC", ">", THRESHOLD], tenant(number))
    text = f"FOR TENANT {tenant(number)} WHEN PUTS_SEC > 3 DO SET filter0 TRANSIENT"
    return Policy(f"policy-{number:08x}", text, text, plan.to_data(), True, number).encode()


def message(actors: int, window: int, busy: list[bool], dice: random.Random) -> bytes:
    """A node's batch with a new value for every tenant."""
    rows = {tenant(n): dice.random() * THRESHOLD + THRESHOLD * busy[n] for n in range(actors)}
    return MetricBatch("node1", "PUTS_SEC", window, window, {"tenant": rows}).encode()


def spawn(context: Context, system: ActorSystem, actors: int) -> list[PolicyActor]:
    plans = PlanCache()
    made = []
    for number in range(actors):
        policy = Policy.decode(document(number))
        actor = policy_actor(context, policy.id, plans.decode(policy.plan), policy.created, 1)
        system.spawn(actor)
        made.append(actor)
    return made


async def run(actors: int, ticks: int, moving: float, seed: int) -> Result:
    dice = random.Random(seed)
    clock, system, listener = Clock(1000.0), ActorSystem(), RecordingListener()
    router = MetricRouter(system, clock=clock)
    context = Context(listener, router.subscription, GroupIndex(), ConditionCache(), 2, clock)
    gc.collect()
    before = resident()
    made = spawn(context, system, actors)
    await system.idle()
    busy = [False] * actors
    costs = []
    for window in range(1000, 1000 + ticks + 3):
        for number in dice.sample(range(actors), int(moving * actors)):
            busy[number] = not busy[number]
        body = message(actors, window, busy, dice)
        gc.collect()
        began = time.process_time()
        clock.now = window + 1.05
        router.aggregators.receive("metric.PUTS_SEC.node1", body)
        clock.now = window + 1.3
        router.aggregators.close_due("PUTS_SEC")
        await system.idle()
        if window >= 1003:  # the first ticks determine the live nodes
            costs.append(time.process_time() - began)
        listener.reports.clear()
        del body
    gc.collect()
    size = (resident() - before) / actors
    active = sum(1 for actor in made if next(actor.in_force(), None) is not None)
    expected = sum(busy)
    if active < expected:
        raise RuntimeError(f"{active} actors active, expected at least {expected}")
    router.aggregators.close()
    await system.close()
    median = statistics.median(costs)
    reached = median < TO_REACH_CPU and size <= TO_REACH_BYTES
    return Result(actors, moving, ticks, median, max(costs), system.counts.longest_slice, size, reached)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--actors", type=int, default=50_000)
    parser.add_argument("--ticks", type=int, default=10)
    parser.add_argument("--moving", type=float, action="append", help="share that crosses per tick (0 and 0.05)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", metavar="FILE", help="write the results there too")
    given = parser.parse_args()
    results = []
    print(f"{'actors':>8} {'moving':>7} {'CPU s/tick':>11} {'worst':>7} {'slice ms':>9} {'B/actor':>8}  reached")
    for moving in given.moving if given.moving is not None else (0.0, 0.05):
        one = asyncio.run(run(given.actors, given.ticks, moving, given.seed))
        results.append(asdict(one))
        print(
            f"{one.actors:>8} {one.moving:>7.2f} {one.cpu_median:>11.3f} {one.cpu_worst:>7.3f}"
            f" {one.longest_slice * 1000:>9.1f} {one.bytes_per_actor:>8.0f}  {'yes' if one.reached else 'no'}",
            flush=True,
        )
    if given.json:
        Path(given.json).write_text(json.dumps({"actors": results}, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
