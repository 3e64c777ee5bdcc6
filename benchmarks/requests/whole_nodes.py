"""The cost of Sluice on whole nodes without a matching policy: each instance has object servers of its own.

Three clusters, one with everything of Sluice inside Swift (``sluice-reads``, ``sluice``, ``sluice-storage``,
``egg:openstack-sluice#object``, the disk files), two plain ones.  Proxies have one worker, object servers one process.
GETs and PUTs of 10 KB and 1 MB go to the three in turns; CPU is from the kernel's clocks, of the proxy and of the
three object servers by themselves.  First the snapshot has a few assignments, then many, none for what is asked.

    python -m benchmarks --only whole_nodes [--quick]
"""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from benchmarks.harness.blocks import Bench, Block, Work, of
from benchmarks.harness.cpu import cpu_seconds
from benchmarks.harness.figures import Figure, at_most
from benchmarks.harness.pairs import INSTANCES, ORDERS, SLUICE, compare
from benchmarks.harness.population import strangers
from benchmarks.harness.scale import Scale, say
from benchmarks.harness.works import getting, make_container, put_all, putting

from sluice_aio.base.layout import OBJECT_DEVICES, Layout
from sluice_aio.base.setup import DISKFILE, KEYS, OBJECT, PROXY, READS, STORAGE, Setup
from sluice_aio.base.swift_http import SwiftHttp
from sluice_aio.cluster.cluster import Cluster
from sluice_aio.cluster.components import MOTIF_DAEMONS, PLAIN_SWIFT
from sluice_aio.conf.common import USERS
from sluice_core.errors import PeerError
from sluice_core.store.records import Draft
from sluice_core.store.store import Store

LIMIT: Final = 1.03
FEW, MANY = 300, 100_000
SIZES: Final[Mapping[str, int]] = {"10 KB": 10_000, "1 MB": 1_000_000}
#: Requests of a block, full and quick: short blocks, because the machine drifts within a second.
COUNTS: Final[Mapping[str, tuple[int, int]]] = {"10 KB": (60, 40), "1 MB": (16, 10)}
GROUPS: Final = ("proxy", "objects")
CONTAINER: Final = "small"
_OBJECTS: Final = 40
_USER: Final = "test:tester"
_BATCH: Final = 1000
#: Operation and size → blocks by instance, cycle after cycle.
Samples = dict[tuple[str, str], list[dict[str, Block]]]


@dataclass(frozen=True, slots=True)
class Kind:
    """The set-up of a cluster; ``proxy`` is the component that gets the requests."""

    components: frozenset[str]
    setup: Setup
    proxy: str = "proxy"


PLAIN_NODES: Final = Kind(PLAIN_SWIFT, Setup(parts=frozenset(), proxy_workers=1, s3api=False), "plain")
SLUICE_NODES: Final = Kind(
    (PLAIN_SWIFT - {"plain"}) | {"proxy", "redis", "rabbit", "agent"},
    Setup(parts=frozenset({PROXY, READS, KEYS, STORAGE, OBJECT, DISKFILE}), proxy_workers=1, s3api=False),
)


class WholeNodes:
    """The three clusters, in folders below ``folder``; a context manager.

    :param ours: the one that is compared with the two others
    """

    def __init__(self, folder: Path, ours: Kind = SLUICE_NODES, others: Kind = PLAIN_NODES) -> None:
        self._kinds = {name: ours if name == SLUICE else others for name in INSTANCES}
        self.clusters = {
            name: Cluster(Layout.free(folder / name), kind.components, setup=kind.setup)
            for name, kind in self._kinds.items()
        }
        self._stack = contextlib.ExitStack()
        self.assignments = 0

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            for name, cluster in self.clusters.items():
                stack.enter_context(cluster)
                self._fill(name)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def client(self, name: str) -> SwiftHttp:
        """A client with a token, for threads, of the instance ``name``.

        :raises PeerError: if it is unreachable
        """
        cluster = self.clusters[name]
        url = cluster.plain_url if self._kinds[name].proxy == "plain" else cluster.proxy_url
        return SwiftHttp(url).login(_USER, USERS[_USER][0])

    def cpu(self, name: str) -> dict[str, float]:
        """CPU seconds so far of the proxy, the object servers and the motif daemons (if there are any) of ``name``."""
        kind = self._kinds[name]
        daemons = tuple(one for one in MOTIF_DAEMONS if one in kind.components)
        members = {"proxy": (kind.proxy,), "objects": tuple(OBJECT_DEVICES), "motifs": daemons}
        return {group: cpu_seconds(self._pids(name, servers)) for group, servers in members.items()}

    def restart(self, order: Sequence[str]) -> None:
        """Restart all proxies and object servers in ``order``: of identical ones the first is a little slower."""
        for name in order:
            for server in (*OBJECT_DEVICES, self._kinds[name].proxy):
                self.clusters[name].restart(server)
            client = self.client(name)
            client.request("HEAD", f"{CONTAINER}/nothing")
            client.close()

    def populate(self, count: int) -> None:
        """Write so many assignments of other targets into the snapshot.

        :raises PeerError: if the agent has not applied them after two minutes
        """
        cluster = self.clusters[SLUICE]
        wanted = list(strangers(count))[self.assignments :]
        with contextlib.closing(Store(cluster.redis_url)) as store:
            epoch = 0
            for first in range(0, len(wanted), _BATCH):
                epoch = store.commit(Draft("benchmark", puts=tuple(wanted[first : first + _BATCH]))).epoch
            self.assignments += len(wanted)
            end = time.monotonic() + 120
            while not all(one.epoch >= epoch and one.assignments == count for one in store.nodes()):
                if time.monotonic() > end:
                    raise PeerError(f"epoch {epoch} with {count} assignments is not applied")
                time.sleep(0.05)

    def _pids(self, name: str, servers: Sequence[str]) -> Iterator[int]:
        for server in servers:
            yield from (member.pid for member in self.clusters[name].process(server).session())

    def _fill(self, name: str) -> None:
        client = self.client(name)
        make_container(client, CONTAINER)
        for text, size in SIZES.items():
            put_all(client, _paths(text), random.Random(1).randbytes(size))
        client.close()


def _paths(text: str) -> list[str]:
    return [f"{CONTAINER}/{text.replace(' ', '')}-{number}" for number in range(_OBJECTS)]


def measure(scale: Scale) -> list[Figure]:
    """Rows by population, operation, size and group of servers."""
    with WholeNodes(scale.folder / "whole") as nodes:
        found = []
        for population in (FEW, scale.pick(MANY, 3000)):
            nodes.populate(population)
            found += figures(population, sample(nodes, scale))
    return found


def sample(nodes: WholeNodes, scale: Scale) -> Samples:
    """Rounds of restarts; in each, interleaved blocks of every operation and size."""
    bench, samples = Bench(nodes), Samples()
    works: dict[tuple[str, str], Work] = {}
    for text, size in SIZES.items():
        works["GET", text] = getting(_paths(text), size)
        works["PUT", text] = putting(CONTAINER, 100, random.Random(2).randbytes(size))
    rounds, cycles = scale.pick(6, 1), scale.pick(16, 1)
    for number in range(rounds):
        order = ORDERS[number % len(ORDERS)]
        say(f"whole nodes: {nodes.assignments} assignments, round {number + 1} of {rounds}, {', '.join(order)}")
        nodes.restart(order)
        for (operation, text), work in works.items():
            same = dict.fromkeys(INSTANCES, work)
            bench.warm(same, 10)
            count = scale.pick(*COUNTS[text])
            samples.setdefault((operation, text), []).extend(bench.cycles(same, cycles, count, first=number * cycles))
    return samples


def figures(population: int, samples: Samples) -> list[Figure]:
    """One row for each group of servers, operation and size; latencies beside it."""
    found = []
    for (operation, text), cycles in samples.items():
        latency = compare(of(cycles, lambda block: block.latency))
        for group in GROUPS:
            cpu = compare(of(cycles, lambda block, group=group: block.cpu_per_request(group)))
            found.append(
                at_most(
                    f"idle {operation} {text} {group} {population}",
                    f"{text} {operation}, no policy applies, {population} assignments: CPU of {group} × plain",
                    cpu.ratio,
                    LIMIT,
                    "×",
                    f"{cpu.beside()}; {cpu.milliseconds(3)}; median latency {latency.ratio:.3f} ×",
                    cycles_ms=[
                        {name: block.cpu_per_request(group) * 1e3 for name, block in cycle.items()} for cycle in cycles
                    ],
                )
            )
    return found
