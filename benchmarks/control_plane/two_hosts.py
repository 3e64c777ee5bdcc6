"""Many policies over two actor hosts: their start-up time, the cost of a second, and the cost of one more policy.

Real processes with a real Redis and RabbitMQ.  Each tenant has one policy.  First there are 1,000 of them, then
100,000; at both numbers policies are added one by one, while windows close in which nobody has a value.  Redis tells
(MONITOR) which documents of policies the hosts read for that, and when: a host has the actor of a policy as soon
as it has read it.  At the larger number each tenant then has a new value per second, of which none crosses its
threshold; each host closes the windows.  Start-up runs from the start of both
processes to the moment at which all policies run.

    python -m benchmarks --only two_hosts [--quick]
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import statistics
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from signal import SIGTERM
from typing import Any, Final

from benchmarks.control_plane.added import Added, Reads
from benchmarks.harness.cpu import cpu_seconds
from benchmarks.harness.figures import Figure, at_most
from benchmarks.harness.scale import Scale, say
from tests.support.actors.team import HostProcess, ScheduledNodes

from sluice_actors.testing import plan_of
from sluice_aio.base.backing_servers import RabbitServer, RedisServer
from sluice_aio.base.ports import free_port
from sluice_core.errors import PeerError
from sluice_core.messages.policies import Policy
from sluice_core.store.records import Draft
from sluice_core.store.store import AsyncStore

START_LIMIT: Final = 30.0
CPU_LIMIT: Final = 60.0
#: O(1): the cost of one more policy must not grow with the number of policies.
GROWTH_LIMIT: Final = 2.0
FEW: Final = 1000
HOSTS: Final = ("h1", "h2")
_BATCH: Final = 1000
_PATIENCE: Final = 180.0
#: Seconds until the first windows have determined the nodes.
_SETTLE: Final = 5.0
#: Policies whose observed values are checked.
_SAMPLE: Final = 50


@dataclass(slots=True)
class Phase:
    """A number of policies: start-up time and CPU, their division, the cost of one more, and a second's CPU."""

    policies: int
    start: float = 0.0
    start_cpu: Mapping[str, float] = field(default_factory=dict)
    divided: Mapping[str, int] = field(default_factory=dict)
    added: Added = field(default_factory=Added)
    shares: Mapping[str, Sequence[float]] = field(default_factory=dict)


class Team:
    """Two host processes, a node that publishes, and the written policies."""

    def __init__(self, redis_url: str, amqp_url: str, folder: Path) -> None:
        self.store = AsyncStore(redis_url)
        self.policies = 0
        self._url = redis_url
        self._values: Sequence[str] = ()
        self._nodes = ScheduledNodes(
            amqp_url, lambda window: {one: random.random() * 3 for one in self._values}, nodes=1
        )
        options = {"redis_url": redis_url, "amqp_url": amqp_url}
        self._hosts = [HostProcess(name, folder, self.store, **options) for name in HOSTS]

    async def close(self) -> None:
        """Stop everything."""
        await self._nodes.close()
        for host in self._hosts:
            await host.end(SIGTERM)
        await self.store.close()

    async def phase(self, count: int, adding: int, seconds: int = 0) -> Phase:
        """Start with ``count`` policies, add some one by one, give all of them values for ``seconds``, and end."""
        found = Phase(count)
        say(f"two hosts: writing {count - self.policies} policies more")
        await self._fill(count)
        async with self._running(found):
            say(f"two hosts: all {count} run after {found.start:.1f} s, adding {adding}")
            await asyncio.sleep(_SETTLE)
            found.added = await self._add(adding)
            if seconds:
                self._values = tuple(map(tenant, range(count)))
                say(f"two hosts: {seconds} s with {count} values each")
                await asyncio.sleep(_SETTLE)
                found.shares = await self._shares(seconds)
                await self._check_values(seconds)
                self._values = ()
        return found

    @contextlib.asynccontextmanager
    async def _running(self, phase: Phase) -> AsyncIterator[None]:
        began = time.monotonic()
        for host in self._hosts:
            await host.start()
        try:
            phase.divided = await self._all_run()
            phase.start = time.monotonic() - began
            phase.start_cpu = {host.name: cpu_seconds([host.pid]) for host in self._hosts}
            if not self._nodes.published:
                await self._nodes.start()
            yield
        finally:
            for host in self._hosts:
                await host.end(SIGTERM)

    async def _fill(self, count: int) -> None:
        for first in range(self.policies, count, _BATCH):
            part = tuple(policy(number) for number in range(first, min(count, first + _BATCH)))
            await self.store.commit(Draft("benchmark", policies=part))
        self.policies = count

    async def _all_run(self) -> dict[str, int]:
        """The number of policies of each host, once all policies run.

        :raises PeerError: if they never do
        """
        end = time.monotonic() + _PATIENCE
        divided: dict[str, int] = {}
        while time.monotonic() < end:
            reports = {host.name: await host.report() for host in self._hosts}
            divided = {name: int(report.get("actors", 0)) for name, report in reports.items()}
            if sum(divided.values()) == self.policies and all(divided.values()):
                return divided
            await asyncio.sleep(0.1)
        raise PeerError(f"not within {_PATIENCE:g} s: {self.policies} policies run, but {divided}")

    async def _add(self, count: int) -> Added:
        """Add policies, each in a separate change, after the one before was read."""
        pids = [host.pid for host in self._hosts]
        rest, began = cpu_seconds(pids), time.monotonic()
        await asyncio.sleep(_SETTLE)
        rest = (cpu_seconds(pids) - rest) / (time.monotonic() - began)
        found = Added()
        async with Reads(self._url, self.store.keys.policies) as reads:
            before, began = cpu_seconds(pids), time.monotonic()
            for number in range(self.policies, self.policies + count):
                await self.store.commit(Draft("benchmark", policies=(policy(number),)))
                found.seconds.append(await reads.delay(policy(number).id, _PATIENCE))
            found.cpu = cpu_seconds(pids) - before - rest * (time.monotonic() - began)
            found.documents = reads.documents
        self.policies += count
        await self._all_run()
        return found

    async def _check_values(self, seconds: int) -> None:
        """:raises PeerError: if the values did not reach the actors of some policies
        :raises PeerError: when the values did not reach the actors of some policies
        """
        sample = [policy(number).id for number in random.sample(range(len(self._values)), _SAMPLE)]
        since = time.time() - seconds
        for name in sample:
            await self.store.watch(name, _PATIENCE)
        end = time.monotonic() + _SETTLE
        while behind := [name for name in sample if not _saw(await self.store.observed(name), since)]:
            if time.monotonic() > end:
                raise PeerError(f"{len(behind)} of {_SAMPLE} policies saw no value, `{behind[0]}` is one of them")
            await asyncio.sleep(0.1)

    async def _shares(self, seconds: int) -> dict[str, list[float]]:
        shares: dict[str, list[float]] = {host.name: [] for host in self._hosts}
        for _ in range(seconds):
            before, began = [cpu_seconds([host.pid]) for host in self._hosts], time.monotonic()
            await asyncio.sleep(1)
            passed = time.monotonic() - began
            for host, used in zip(self._hosts, before, strict=True):
                shares[host.name].append((cpu_seconds([host.pid]) - used) / passed * 100)
        return shares


def measure(scale: Scale) -> list[Figure]:
    """Few policies, then many."""
    folder = scale.folder / "two_hosts"
    folder.mkdir(parents=True, exist_ok=True)
    with (
        RedisServer(free_port(), folder, tied=True) as redis,
        RabbitServer(free_port(), free_port(), free_port(), folder / "rabbit", tied=True) as rabbit,
    ):
        return figures(*asyncio.run(run(redis.url, rabbit.url, folder, scale)))


async def run(redis_url: str, amqp_url: str, folder: Path, scale: Scale) -> tuple[Phase, Phase]:
    """Both phases."""
    team = Team(redis_url, amqp_url, folder)
    adding = scale.pick(200, 20)
    try:
        few = await team.phase(FEW, adding)
        many = await team.phase(scale.pick(100_000, 5_000), adding, scale.pick(30, 5))
    finally:
        await team.close()
    return few, many


def tenant(number: int) -> str:
    """The account of policy ``number``."""
    return f"AUTH_{number:032x}"


def policy(number: int) -> Policy:
    """A policy whose threshold no value here crosses."""
    text = f"FOR TENANT {tenant(number)} WHEN PUTS_SEC > 3 DO SET filter0 TRANSIENT"
    plan = plan_of(["metric", "PUTS_SEC", ">", 3], tenant(number))
    return Policy(f"policy-{number:08x}", text, text, plan.to_data(), True, number)


def _saw(observed: Mapping[str, Any] | None, since: float) -> bool:
    """Whether a policy's actor had a value in a window after ``since``."""
    return observed is not None and observed["window"] >= since and observed["values"]["PUTS_SEC"] is not None


def figures(few: Phase, many: Phase) -> list[Figure]:
    """The rows of the table for both."""
    medians = {name: statistics.median(found) for name, found in many.shares.items()}
    spread = "; ".join(
        f"{name}: {many.divided[name]} policies, median {medians[name]:.0f} %, worst {max(found):.0f} %"
        for name, found in many.shares.items()
    )
    starting = "CPU of the processes: " + ", ".join(f"{one} {used:.1f} s" for one, used in many.start_cpu.items())
    what = f"{many.policies} policies over two actor hosts"
    one_more = f"one policy more where there are {many.policies}"
    than = f"× where there are {few.policies}"
    times = f"{many.added.middle * 1000:.1f} and {few.added.middle * 1000:.1f} ms"
    used = f"{many.added.cpu_each * 1000:.2f} and {few.added.cpu_each * 1000:.2f} ms of both hosts together"
    slower = many.added.middle / few.added.middle
    dearer = many.added.cpu_each / few.added.cpu_each
    each = many.added.documents / len(many.added.seconds)
    return [
        at_most("two hosts start", f"{what}: until all run", many.start, START_LIMIT, "s", starting, digits=1),
        at_most(
            "two hosts CPU", f"{what}, a new value each second: share of one core, the busier host",
            max(medians.values()), CPU_LIMIT, "%", spread, digits=1, shares=dict(many.shares),
        ),
        at_most("two hosts add", f"{one_more}: from commit to read by its host, {than}", slower, GROWTH_LIMIT, "×",
                f"p50 {times}", digits=2, few=few.added.seconds, many=many.added.seconds),
        at_most("two hosts add CPU", f"{one_more}: CPU of the hosts, {than}", dearer, GROWTH_LIMIT, "×", used, 2),
        at_most("two hosts add reads", f"{one_more}: documents of policies that hosts read", each, 1, digits=2),
    ]  # fmt: skip
