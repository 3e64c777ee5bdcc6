"""100,000 policies over two actor hosts: how long they need to start, and what a second costs each of them.

Real processes with a real Redis and RabbitMQ.  Each tenant has one policy and one new value per second, of which
none crosses its threshold; one host closes the windows and pushes the other's share.  Start-up runs from the start of
both processes to the moment at which all policies run.

    python -m benchmarks.two_hosts [--quick]
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from signal import SIGTERM
from typing import Final

from benchmarks.figures import Figure, at_most, table
from benchmarks.scale import Scale, say

from sluice_actors.testing import plan_of
from sluice_actors.testing_team import HostProcess, ScheduledNodes
from sluice_aio.services import RabbitServer, RedisServer, free_port
from sluice_core.errors import PeerError
from sluice_core.messages import Policy
from sluice_core.store import AsyncStore, Draft

START_LIMIT: Final = 30.0
CPU_LIMIT: Final = 60.0
HOSTS: Final = ("h1", "h2")
_BATCH: Final = 1000
_PATIENCE: Final = 120.0


@dataclass(frozen=True, slots=True)
class Run:
    """Seconds to start; the share of a core that each host took, second by second; policies of each; one more."""

    policies: int
    start: float
    shares: Mapping[str, Sequence[float]]
    divided: Mapping[str, int]
    one_more: float


def measure(scale: Scale) -> list[Figure]:
    """One run."""
    folder = scale.folder / "two_hosts"
    folder.mkdir(parents=True, exist_ok=True)
    with (
        RedisServer(free_port(), folder, tied=True) as redis,
        RabbitServer(free_port(), free_port(), free_port(), folder / "rabbit", tied=True) as rabbit,
    ):
        count = scale.pick(100_000, 10_000)
        return _figures(asyncio.run(_run(redis.url, rabbit.url, folder, count, scale.pick(30, 5))))


async def _run(redis_url: str, amqp_url: str, folder: Path, count: int, seconds: int) -> Run:
    store = AsyncStore(redis_url)
    tenants = [f"AUTH_{number:032x}" for number in range(count)]
    say(f"two hosts: writing {count} policies")
    await _fill(store, tenants)
    nodes = ScheduledNodes(amqp_url, lambda window: {one: random.random() * 3 for one in tenants}, nodes=1)
    options = {"redis_url": redis_url, "amqp_url": amqp_url}
    hosts = [HostProcess(name, folder, store, **options) for name in HOSTS]
    try:
        began = time.monotonic()
        for host in hosts:
            await host.start()
        divided = await _running(hosts, count)
        start = time.monotonic() - began
        await nodes.start()
        say(f"two hosts: all run after {start:.1f} s")
        await asyncio.sleep(5)  # the first windows find out who is there
        shares = await _shares(hosts, seconds)
        one_more = await _one_more(store, hosts, count)
    finally:
        await nodes.close()
        for host in hosts:
            await host.end(SIGTERM)
        await store.close()
    return Run(count, start, shares, divided, one_more)


def _policy(number: int, tenant: str) -> Policy:
    text = f"FOR TENANT {tenant} WHEN PUTS_SEC > 3 DO SET filter0 TRANSIENT"
    plan = plan_of(["metric", "PUTS_SEC", ">", 3], tenant)
    return Policy(f"policy-{number:08x}", text, text, plan.to_data(), True, number)


async def _fill(store: AsyncStore, tenants: Sequence[str]) -> None:
    for at in range(0, len(tenants), _BATCH):
        part = tuple(_policy(at + number, one) for number, one in enumerate(tenants[at : at + _BATCH]))
        await store.commit(Draft("benchmark", policies=part))


async def _running(hosts: Sequence[HostProcess], count: int) -> dict[str, int]:
    """
    :raises PeerError: when they do not
    """
    end = time.monotonic() + _PATIENCE
    while time.monotonic() < end:
        reports = {host.name: await host.report() for host in hosts}
        divided = {name: int(report.get("actors", 0)) for name, report in reports.items()}
        if sum(divided.values()) == count and all(divided.values()):
            return divided
        await asyncio.sleep(0.1)
    raise PeerError(f"not within {_PATIENCE:g} s: {count} policies run")


async def _shares(hosts: Sequence[HostProcess], seconds: int) -> dict[str, list[float]]:
    shares: dict[str, list[float]] = {host.name: [] for host in hosts}
    for _ in range(seconds):
        before, began = [_cpu(host.pid) for host in hosts], time.monotonic()
        await asyncio.sleep(1)
        passed = time.monotonic() - began
        for host, used in zip(hosts, before, strict=True):
            shares[host.name].append((_cpu(host.pid) - used) / passed * 100)
    return shares


async def _one_more(store: AsyncStore, hosts: Sequence[HostProcess], count: int) -> float:
    """CPU seconds of both hosts for a hundred policies more, each in a change of its own, above their rest."""
    rest, began = sum(_cpu(host.pid) for host in hosts), time.monotonic()
    await asyncio.sleep(5)
    rest = (sum(_cpu(host.pid) for host in hosts) - rest) / (time.monotonic() - began)
    before, began = sum(_cpu(host.pid) for host in hosts), time.monotonic()
    for number in range(100):
        await store.commit(Draft("benchmark", policies=(_policy(count + number, f"AUTH_more{number}"),)))
    await _running(hosts, count + 100)
    used = sum(_cpu(host.pid) for host in hosts) - before - rest * (time.monotonic() - began)
    return max(0.0, used) / 100 * 1000


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _figures(run: Run) -> list[Figure]:
    medians = {name: statistics.median(found) for name, found in run.shares.items()}
    spread = "; ".join(
        f"{name}: {run.divided[name]} policies, median {medians[name]:.0f} %, worst {max(found):.0f} %"
        for name, found in run.shares.items()
    )
    what = f"{run.policies} policies over two actor hosts"
    more = f"one policy more: {run.one_more:.1f} ms of CPU on both together"
    return [
        at_most("two hosts start", f"{what}: until all run", run.start, START_LIMIT, "s", more, digits=1),
        at_most(
            "two hosts CPU", f"{what}, a new value each second: share of one core, the busier host",
            max(medians.values()), CPU_LIMIT, "%", spread, digits=1, shares=dict(run.shares),
        ),
    ]  # fmt: skip


def main() -> int:
    """This part alone."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.two_hosts", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the policies")
    given = parser.parse_args()
    logging.getLogger("pika").setLevel(logging.CRITICAL)
    with tempfile.TemporaryDirectory(prefix="sluice-") as folder:
        print(table(measure(Scale(Path(folder), given.quick))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
