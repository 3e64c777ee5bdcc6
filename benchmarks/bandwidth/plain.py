"""The cost of the regulator and the disk-file classes without objectives: throughput beside plain Swift.

Two clusters stand side by side, one with a regulator in proxies and object servers and Sluice's disk files, one
without Sluice.  Both are loaded at once, each by as many clients, so they have the same machine at each
moment and the same part of its processors: the one that needs less processor time for a byte moves more.  (In turns of
some seconds a shared machine differs from itself by a tenth.)  Of identical instances some are faster than others for
as long as they live: so the servers that data pass are started anew in each of many rounds, those of one cluster first
in one round and last in the next, and have :data:`_SETTLE` seconds of load before anything is measured (what is made at
the first requests, ours above all, is 2 to 3 % of the first seconds).  The mean over the rounds is given with its
standard error.
"""

from __future__ import annotations

import contextlib
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from benchmarks.bandwidth.row import Row
from benchmarks.harness.figures import Figure
from benchmarks.harness.scale import say
from tests.support.cluster.bandwidth_cluster import Capacity, Stage, Terms
from tests.support.cluster.load import Load, Spec

from sluice_aio.base.layout import OBJECT_DEVICES, Layout
from sluice_aio.base.setup import Setup
from sluice_aio.base.swift_http import SwiftHttp
from sluice_aio.cluster.cluster import Cluster
from sluice_aio.cluster.components import PLAIN_SWIFT
from sluice_aio.conf.common import USERS

MB: Final = 1_000_000
_ACCOUNT: Final = "AUTH_t1"
_SIZE: Final = 4 << 20
_CLIENTS: Final = 4
_TARGET: Final = 0.98
_SETTLE: Final = 10
_METHODS: Final = ("GET", "PUT")
_TERMS: Final = Terms(capacity=Capacity(get=None, put=None), sizes=(_SIZE,))
_SETUP: Final = Setup(parts=frozenset(), s3api=False, proxy_workers=1)

#: Proxy, and the other servers that carry data.
_OURS: Final = ("proxy", *OBJECT_DEVICES)
_THEIRS: Final = ("plain", *OBJECT_DEVICES)


@dataclass(frozen=True, slots=True)
class _Side:
    """One of the two clusters; ``make`` creates clients for a method, not started yet."""

    cluster: Cluster
    servers: Sequence[str]
    make: Callable[[str], Load]

    def restart(self) -> None:
        for name in self.servers:
            self.cluster.remove(name)
        self.cluster.add(self.servers)


@dataclass(slots=True)
class _Found:
    """Bytes per second of Sluice and of plain Swift, round by round."""

    ours: list[float]
    theirs: list[float]


def plain(row: Row) -> list[Figure]:
    """GET and PUT of 4 MiB through one proxy worker."""
    found = {method: _Found([], []) for method in _METHODS}
    rounds = row.scale.pick(48, 2)
    with contextlib.ExitStack() as stack:
        ours = _ours(stack.enter_context(row.stage(_TERMS)))
        theirs = _theirs(row, stack)
        for number in range(rounds):
            for side in (ours, theirs) if number % 2 else (theirs, ours):
                side.restart()
            for method, one in found.items():
                settle, seconds = row.scale.pick(_SETTLE, 1), row.scale.pick(6, 2)
                mine, other = _rates(ours.make(method), theirs.make(method), settle, seconds)
                one.ours.append(mine)
                one.theirs.append(other)
                both = f"{method} {mine / MB:.0f} MB/s, plain {other / MB:.0f}"
                say(f"bandwidth: beside plain Swift, round {number + 1} of {rounds}, {both}")
    return [_figure(method, one) for method, one in found.items()]


def _ours(stage: Stage) -> _Side:
    stage.fill(_ACCOUNT)
    return _Side(stage.cluster, _OURS, lambda method: stage.load(_ACCOUNT, _CLIENTS, method, proxies=("proxy",)))


def _theirs(row: Row, stack: contextlib.ExitStack) -> _Side:
    place = stack.enter_context(row.place("bp-"))
    layout = replace(Layout.free(place.folder), disks=place.disks)
    cluster = stack.enter_context(Cluster(layout, PLAIN_SWIFT, setup=_SETUP))
    swift = SwiftHttp(cluster.plain_url).login("test:tester6", USERS["test:tester6"][0])
    named = {"X-Auth-Token": swift.token}
    swift.raw("PUT", f"/v1/{_ACCOUNT}/c", {**named, "Content-Length": "0"})
    for number in range(4):
        swift.raw("PUT", f"/v1/{_ACCOUNT}/c/{_SIZE}-{number}", named, bytes(_SIZE))
    address = cluster.plain_url.removeprefix("http://")

    def make(method: str) -> Load:
        return Load(Spec([address], swift.token, f"/v1/{_ACCOUNT}", "c", method, _CLIENTS, (_SIZE,)))

    return _Side(cluster, _THEIRS, make)


def _rates(ours: Load, theirs: Load, settle: int, seconds: int) -> tuple[float, float]:
    """Mean of so many whole seconds, after the settling time."""
    with ours, theirs:
        first = int(time.time()) + 1 + settle
        for load in (ours, theirs):
            load.await_second(first + seconds)
        mine, other = (statistics.mean(load.rates(first, first + seconds - 1).values()) for load in (ours, theirs))
        return mine, other


def _figure(method: str, found: _Found) -> Figure:
    ratios = [mine / other for mine, other in zip(found.ours, found.theirs, strict=True)]
    ratio = statistics.geometric_mean(ratios)
    error = statistics.stdev(ratios) / len(ratios) ** 0.5
    quarters = statistics.quantiles(ratios, n=4)
    half = f"half of the {len(ratios)} rounds {quarters[0]:.3f}..{quarters[2]:.3f}"
    medians = f"{statistics.median(found.ours) / MB:.0f} and {statistics.median(found.theirs) / MB:.0f} MB/s at once"
    beside = f"standard error {error:.3f}; {half}; {medians}"
    what = f"{method} of 4 MiB, no assignment: throughput × plain Swift"
    return Figure(f"plain {method}", what, ratio, f"{ratio:.3f} ×", f"≥ {_TARGET:g} ×", ratio >= _TARGET, beside)
