"""From the kill of one of three actor hosts until each of its policies is evaluated again.

Every policy changes its decision in every window: true, false, true; each evaluation leaves a firing with its window
and its time in the policy's state.  So the first firing after the kill says when an orphan was evaluated again, and the
windows of all firings say whether one was lost or counted twice.

    python -m benchmarks --only failover [--quick]
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import statistics
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from signal import SIGKILL, SIGTERM
from typing import Any, Final

from benchmarks.harness.figures import Figure, at_most
from benchmarks.harness.scale import Scale, say
from tests.support.actors.team import HostProcess, ScheduledNodes

from sluice_actors.testing import plan_of
from sluice_aio.base.backing_servers import RabbitServer, RedisServer
from sluice_aio.base.ports import free_port
from sluice_core.errors import PeerError
from sluice_core.messages.policies import Policy, PolicyState
from sluice_core.store import fencing
from sluice_core.store.records import Draft
from sluice_core.store.store import AsyncStore

LIMIT: Final = 5.0
POLICIES: Final = 300
HOSTS: Final = ("h1", "h2", "h3")
_PATIENCE: Final = 60.0
_POLL: Final = 0.1


@dataclass(frozen=True, slots=True)
class Kill:
    """One trial: seconds until each orphaned policy was evaluated again; windows lost and counted twice."""

    times: Sequence[float]
    lost: int
    twice: int


def measure(scale: Scale) -> list[Figure]:
    """Kill one host after the other."""
    folder = scale.folder / "failover"
    folder.mkdir(parents=True, exist_ok=True)
    with (
        RedisServer(free_port(), folder, tied=True) as redis,
        RabbitServer(free_port(), free_port(), free_port(), folder / "rabbit", tied=True) as rabbit,
    ):
        return figures(asyncio.run(_kills(redis.url, rabbit.url, folder, scale.pick(20, 2))))


async def _kills(redis_url: str, amqp_url: str, folder: Path, count: int) -> list[Kill]:
    say(f"failover: {len(HOSTS)} hosts, {POLICIES} policies, {count} kills")
    async with _team(redis_url, amqp_url, folder) as (store, hosts):
        found = []
        for number in range(count):
            await asyncio.sleep(random.uniform(1.5, 2.5))  # first some windows without a fault
            found.append(await _kill(store, hosts, HOSTS[number % len(HOSTS)]))
            say(f"failover: kill {number + 1}: {max(found[-1].times):.2f} s")
        return found


@contextlib.asynccontextmanager
async def _team(
    redis_url: str, amqp_url: str, folder: Path
) -> AsyncIterator[tuple[AsyncStore, dict[str, HostProcess]]]:
    store = AsyncStore(redis_url)
    plans = {f"p{number}": plan_of(["metric", "PUTS_SEC", ">", 3], f"AUTH_{number}") for number in range(POLICIES)}
    policies = tuple(Policy(name, "FOR", "FOR", plan.to_data(), True, 5) for name, plan in plans.items())
    await store.commit(Draft("benchmark", policies=policies))
    options = {"redis_url": redis_url, "amqp_url": amqp_url, "transient_windows": 1}
    hosts = {name: HostProcess(name, folder, store, **options) for name in HOSTS}
    paths = [f"AUTH_{number}" for number in range(POLICIES)]
    nodes = ScheduledNodes(amqp_url, lambda window: dict.fromkeys(paths, 8.0 if window % 2 else 1.0))
    try:
        await nodes.start()
        for host in hosts.values():
            await host.start()
        await _shared(store)
        yield store, hosts
    finally:
        await nodes.close()
        for host in hosts.values():
            await host.end(SIGTERM)
        await store.close()


async def _until(condition: Callable[[], Any], what: str) -> Any:
    """:raises PeerError: if it does not happen
    :raises PeerError: when it does not come to pass
    """
    end = time.monotonic() + _PATIENCE
    while time.monotonic() < end:
        answer = await condition()
        if answer:
            return answer
        await asyncio.sleep(_POLL)
    raise PeerError(f"not within {_PATIENCE:g} s: {what}")


async def _shared(store: AsyncStore) -> None:
    """Wait until all hosts own some slots, and every policy has fired recently."""

    async def so() -> bool:
        owners = await store.run(fencing.owners(store.keys))
        states = await store.states()
        since = time.time() - 3
        fired = sum(bool(one.firings) and one.firings[-1].at > since for one in states.values())
        return {fencing.owner_host(one) for one in owners.values()} == set(HOSTS) and fired == POLICIES

    await _until(so, "all hosts share all policies")


async def _kill(store: AsyncStore, hosts: dict[str, HostProcess], victim: str) -> Kill:
    owners = await store.run(fencing.owners(store.keys))
    slots = {slot for slot, owner in owners.items() if fencing.owner_host(owner) == victim}
    orphans = [name for name in map("p{}".format, range(POLICIES)) if fencing.slot_of(name) in slots]
    asked = time.time()
    await hosts[victim].end(SIGKILL)
    killed = time.time()  # evaluations of the killed host until here do not count for its successors

    async def again() -> dict[str, PolicyState] | None:
        states = await store.states()
        return states if all(states[name].firings[-1].at > killed for name in orphans) else None

    states = await _until(again, f"the policies of `{victim}` are evaluated again")
    times = [next(one.at for one in states[name].firings if one.at > killed) - asked for name in orphans]
    await asyncio.sleep(2)
    lost = twice = 0
    for state in (await store.states()).values():
        windows = [one.window for one in state.firings if one.at > killed - 5]
        twice += len(windows) - len(set(windows))
        lost += windows[-1] - windows[0] + 1 - len(set(windows))
    await hosts[victim].start()
    await _shared(store)
    return Kill(times, lost, twice)


def figures(kills: Sequence[Kill]) -> list[Figure]:
    """The time of each orphaned policy of each kill, and whether an evaluation was missed or repeated."""
    times = [one for kill in kills for one in kill.times]
    worst = [max(kill.times) for kill in kills]
    lost, twice = sum(kill.lost for kill in kills), sum(kill.twice for kill in kills)
    what = f"SIGKILL of one of {len(HOSTS)} actor hosts to each of its policies evaluated again"
    beside = (
        f"{len(kills)} kills, {len(times)} orphans; the last orphan of a kill: p50 {statistics.median(worst):.2f},"
        f" earliest {min(worst):.2f} s"
    )
    windows = f"{lost} windows lost, {twice} counted twice"
    return [
        at_most("failover p50", f"{what}: half of them", statistics.median(times), LIMIT, "s", beside, digits=2),
        at_most("failover worst", f"{what}: worst", max(times), LIMIT, "s", beside, digits=2, worst=worst),
        at_most("failover exactly once", "windows lost or counted twice by all that", lost + twice, 0, "", windows, 0),
    ]
