"""What the regulator and the disk-file classes cost when nothing is promised: throughput beside plain Swift.

Two clusters stand side by side, one with a regulator in proxies and object servers and Sluice's disk files, one
without anything of ours.  They are loaded in turns, one right after the other; the ratio is taken within each turn.
Of identical instances the one that was started first is slower, by some percent: so everything is done twice, with
new clusters, each of the two first once.
"""

from __future__ import annotations

import contextlib
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from benchmarks.figures import Figure
from benchmarks.scale import say

from sluice_aio.bandwidth_stage import Capacity, Stage, Terms
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
_METHODS: Final = ("GET", "PUT")
_TERMS: Final = Terms(capacity=Capacity(get=None, put=None), sizes=(_SIZE,))
_SETUP: Final = Setup(parts=frozenset(), s3api=False, proxy_workers=1)

#: Clients for a method, not started yet.
_Make = Callable[[str], Load]
#: Bytes per second of ours and of plain Swift, of one turn.
_Pair = tuple[float, float]


def plain(row: Row) -> list[Figure]:
    """GET and PUT of 4 MiB through one proxy worker."""
    found: dict[str, dict[str, list[_Pair]]] = {method: {} for method in _METHODS}
    for first in ("ours", "plain"):
        with _clusters(row, first) as (ours, theirs):
            for method in _METHODS:
                found[method][first] = _pairs(row, f"{method}, {first} started first", ours, theirs, method)
    return [_figure(method, pairs) for method, pairs in found.items()]


@contextlib.contextmanager
def _clusters(row: Row, first: str) -> Iterator[tuple[_Make, _Make]]:
    """Both, one of them started first."""
    with contextlib.ExitStack() as stack:
        if first == "ours":
            ours = _ours(stack.enter_context(row.stage(_TERMS)))
            theirs = _theirs(row, stack)
        else:
            theirs = _theirs(row, stack)
            ours = _ours(stack.enter_context(row.stage(_TERMS)))
        yield ours, theirs


def _ours(stage: Stage) -> _Make:
    stage.fill(_ACCOUNT)
    return lambda method: stage.load(_ACCOUNT, _CLIENTS, method, proxies=("proxy",))


def _theirs(row: Row, stack: contextlib.ExitStack) -> _Make:
    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="bp-", dir=row.scale.folder))
    cluster = stack.enter_context(Cluster(Layout.free(Path(folder)), PLAIN_SWIFT, setup=_SETUP))
    swift = SwiftHttp(cluster.plain_url).login("test:tester6", USERS["test:tester6"][0])
    named = {"X-Auth-Token": swift.token}
    swift.raw("PUT", f"/v1/{_ACCOUNT}/c", {**named, "Content-Length": "0"})
    for number in range(4):
        swift.raw("PUT", f"/v1/{_ACCOUNT}/c/{_SIZE}-{number}", named, bytes(_SIZE))
    place = cluster.plain_url.removeprefix("http://")
    return lambda method: Load(Spec([place], swift.token, f"/v1/{_ACCOUNT}", "c", method, _CLIENTS, (_SIZE,)))


def _pairs(row: Row, what: str, ours: _Make, theirs: _Make, method: str) -> list[_Pair]:
    pairs: list[_Pair] = []
    seconds, cycles = row.scale.pick(4, 2), row.scale.pick(14, 2)
    for cycle in range(cycles):
        say(f"bandwidth: beside plain Swift, {what}, {cycle + 1} of {cycles}")
        if cycle % 2:
            mine, other = _rate(ours(method), seconds), _rate(theirs(method), seconds)
        else:
            other, mine = _rate(theirs(method), seconds), _rate(ours(method), seconds)
        pairs.append((mine, other))
    return pairs


def _figure(method: str, found: dict[str, list[_Pair]]) -> Figure:
    """The mean of the two orders, each the median of its pairs."""
    ratios = {first: [mine / other for mine, other in pairs] for first, pairs in found.items()}
    medians = {first: statistics.median(one) for first, one in ratios.items()}
    ratio = statistics.mean(medians.values())
    every = [one for several in ratios.values() for one in several]
    quarters = statistics.quantiles(every, n=4)
    mine, other = (statistics.median(pair[which] for pairs in found.values() for pair in pairs) for which in (0, 1))
    orders = ", ".join(f"{first} started first {median:.3f}" for first, median in medians.items())
    half = f"half of the {len(every)} pairs {quarters[0]:.3f}..{quarters[2]:.3f}"
    beside = f"{mine / MB:.0f} / {other / MB:.0f} MB/s; {half}; {orders}"
    what = f"{method} of 4 MiB, no assignment: throughput × plain Swift"
    return Figure(f"plain {method}", what, ratio, f"{ratio:.3f} ×", f"≥ {_TARGET:g} ×", ratio >= _TARGET, beside)


def _rate(load: Load, seconds: int) -> float:
    """Mean of so many whole seconds, after one of settling."""
    with load:
        first = int(time.time()) + 1
        load.await_second(first + seconds)
        return statistics.mean(load.rates(first + 1, first + seconds).values())
