"""What the regulator and the disk-file classes cost when nothing is promised: throughput beside plain Swift.

Two clusters stand side by side, one with a regulator in proxies and object servers and Sluice's disk files, one
without anything of ours.  They are loaded in turns, one right after the other; the ratio is taken within each turn.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from benchmarks.figures import Figure
from benchmarks.scale import say

from sluice_aio.bandwidth_stage import Capacity, Terms
from sluice_aio.cluster import Cluster
from sluice_aio.cluster_setup import Setup
from sluice_aio.common_conf import USERS
from sluice_aio.components import PLAIN_SWIFT
from sluice_aio.layout import Layout
from sluice_aio.load import Load, Spec
from sluice_aio.swift_http import SwiftHttp

if TYPE_CHECKING:
    from benchmarks.bandwidth import Row

MB: Final = 1_000_000
_ACCOUNT: Final = "AUTH_t1"
_SIZE: Final = 4 << 20
_CLIENTS: Final = 4
_TARGET: Final = 0.98
_SETUP: Final = Setup(parts=frozenset(), s3api=False, proxy_workers=1)


def plain(row: Row) -> list[Figure]:
    """GET and PUT of 4 MiB through one proxy worker."""
    terms = Terms(capacity=Capacity(get=None, put=None), sizes=(_SIZE,))
    with row.stage(terms) as stage, tempfile.TemporaryDirectory(prefix="bp-", dir=row.scale.folder) as folder:
        cluster = Cluster(Layout.free(Path(folder)), PLAIN_SWIFT, setup=_SETUP)
        with cluster:
            swift = SwiftHttp(cluster.plain_url).login("test:tester6", USERS["test:tester6"][0])
            _fill(swift)
            stage.fill(_ACCOUNT)
            place = cluster.plain_url.removeprefix("http://")

            def theirs(method: str) -> Load:
                return Load(Spec([place], swift.token, f"/v1/{_ACCOUNT}", "c", method, _CLIENTS, (_SIZE,)))

            def ours(method: str) -> Load:
                return stage.load(_ACCOUNT, _CLIENTS, method, proxies=("proxy",))

            return [_compare(row, method, ours, theirs) for method in ("GET", "PUT")]


def _compare(row: Row, method: str, ours: Callable[[str], Load], theirs: Callable[[str], Load]) -> Figure:
    ratios: list[float] = []
    rates: tuple[list[float], list[float]] = ([], [])
    seconds, cycles = row.scale.pick(6, 3), row.scale.pick(16, 3)
    for cycle in range(cycles):
        say(f"bandwidth: {method} beside plain Swift, {cycle + 1} of {cycles}")
        pair = [(0, ours), (1, theirs)]
        found = {}
        for which, make in pair if cycle % 2 else reversed(pair):
            found[which] = _rate(make(method), seconds)
            rates[which].append(found[which])
        ratios.append(found[0] / found[1])
    ratio = statistics.median(ratios)
    quarters = statistics.quantiles(ratios, n=4)
    beside = (
        f"{statistics.median(rates[0]) / MB:.0f} / {statistics.median(rates[1]) / MB:.0f} MB/s; "
        f"half of the {cycles} pairs {quarters[0]:.3f}..{quarters[2]:.3f}"
    )
    what = f"{method} of 4 MiB, no assignment: throughput × plain Swift"
    return Figure(f"plain {method}", what, ratio, f"{ratio:.3f} ×", f"≥ {_TARGET:g} ×", ratio >= _TARGET, beside)


def _rate(load: Load, seconds: int) -> float:
    """Mean of so many whole seconds, after one of settling."""
    with load:
        first = int(time.time()) + 1
        load.await_second(first + seconds)
        return statistics.mean(load.rates(first + 1, first + seconds).values())


def _fill(swift: SwiftHttp) -> None:
    named = {"X-Auth-Token": swift.token}
    swift.raw("PUT", f"/v1/{_ACCOUNT}/c", {**named, "Content-Length": "0"})
    for number in range(4):
        swift.raw("PUT", f"/v1/{_ACCOUNT}/c/{_SIZE}-{number}", named, bytes(_SIZE))
