"""csv_select over a link of 1 Gbit/s, and over loopback, beside a plain GET of the same object.

The reader stands in a network namespace of its own behind a veth pair whose side of the store sends through a token
bucket (``tc tbf``); a second proxy of the cluster listens there.  It takes root.  Every row of the object has a
number from 0 to 99, so ``where=level < k`` keeps k percent; plain GETs and selections alternate, medians
are compared.  The figure is the share of the rows that must be filtered out for the selection to take as long as
the plain GET, on the straight line between the two measured shares around it.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

from benchmarks.harness.figures import Figure, at_most
from benchmarks.harness.scale import Scale, say

from sluice_aio.base.layout import Layout
from sluice_aio.base.server import Child
from sluice_aio.base.swift_http import SwiftHttp
from sluice_aio.cluster.cluster import Cluster
from sluice_aio.cluster.components import swift_command
from sluice_client import Client
from sluice_core.errors import PeerError

#: Percent of the rows that are kept.
KEPT: Final = (100, 90, 75, 50, 25, 10, 1)
_STORE, _READER = "10.203.77.1", "10.203.77.2"
_PATH: Final = "csv-link/readings.csv"
_PLAIN: Final = -1
_PIECE: Final = 1 << 18


def measure(scale: Scale) -> list[Figure]:
    """The figures of both ways."""
    if os.geteuid() != 0:
        raise PeerError("network namespaces take root")
    data = readings(scale.pick(100_000_000, 10_000_000))
    with Cluster(Layout.free(scale.folder)) as cluster, Client(cluster.api_url, cluster.token) as api:
        swift = SwiftHttp(cluster.proxy_url).login("test:tester", "testing")
        swift.request("PUT", "csv-link")
        if swift.request("PUT", _PATH, body=data, content_type="text/csv").status != 201:
            raise PeerError("the object was not stored")
        made = api.create_policy("FOR CONTAINER AUTH_test/csv-link DO SET csv_select", wait=10)
        if made["enforced"]["nodes"] < 1:
            raise PeerError(f"the policy is not enforced: {made}")
        rounds = scale.pick(7, 2)
        path = f"{swift.account}/{_PATH}"
        say("csv_select over loopback")
        near = read_all(f"{cluster.proxy_url}{path}", swift.token, rounds)
        say("csv_select over 1 Gbit/s")
        with link() as namespace, proxy(cluster) as url:
            command = ["ip", "netns", "exec", namespace, sys.executable, "-m", "benchmarks.filters.csv_link"]
            done = subprocess.run(
                [*command, f"{url}{path}", swift.token, str(rounds)], capture_output=True, check=False, text=True
            )
            if done.returncode != 0:
                raise PeerError(f"the reader failed: {done.stderr[-500:]}")
            far = {int(kept): tuple(found) for kept, found in json.loads(done.stdout).items()}
    return figures(near, far)


def figures(near: Mapping[int, Sequence[float]], far: Mapping[int, Sequence[float]]) -> list[Figure]:
    """Convert the results of ``read_all`` to figures."""
    fewer = far[_PLAIN][1] / far[10][1]
    what = "bytes to the reader at 10 % of the rows, plain GET ÷ csv_select"
    return [
        at_most(
            "csv_select 1 Gbit/s",
            "share of rows filtered out at which it takes the time of a plain GET",
            break_even(far),
            0.25,
            beside=_times(far),
        ),
        Figure("csv_select bytes", what, fewer, f"{fewer:.1f} ×", "≥ 5 ×", fewer >= 5, f"{far[10][1] / 1e6:.1f} MB"),
        Figure(
            "csv_select loopback",
            "the same share without a slow link",
            break_even(near),
            f"{break_even(near):.3f}",
            beside=_times(near),
        ),
    ]


def break_even(found: Mapping[int, Sequence[float]]) -> float:
    """The share of rows filtered out at which the selection is as fast as the plain GET; 1 if it never is."""
    plain = found[_PLAIN][0]
    before: tuple[float, float] | None = None
    for kept in KEPT:
        share, seconds = 1 - kept / 100, found[kept][0]
        if seconds <= plain:
            if before is None or before[1] <= seconds:
                return share
            return before[0] + (share - before[0]) * (before[1] - plain) / (before[1] - seconds)
        before = (share, seconds)
    return 1.0


def _times(found: Mapping[int, Sequence[float]]) -> str:
    kept = ", ".join(f"{one} % {found[one][0]:.2f} s" for one in KEPT)
    return f"plain {found[_PLAIN][0]:.2f} s for {found[_PLAIN][1] / 1e6:.0f} MB; kept: {kept}"


def readings(size: int) -> bytes:
    """CSV of about ``size`` bytes."""
    dice = random.Random(12)
    rows = [
        f"{number},2026-11-{number % 28 + 1:02d}T{number % 24:02d}:00:00,meter-{dice.randrange(1000)},"
        f"{dice.uniform(0, 100):.3f},{dice.randrange(100)},ok,main street {dice.randrange(300)}\n"
        for number in range(20_000)
    ]
    block = "".join(rows).encode()
    return b"id,time,meter,kwh,level,state,address\n" + block * max(1, size // len(block))


def read_all(url: str, token: str, rounds: int) -> dict[int, tuple[float, float]]:
    """(median seconds, bytes) of a plain GET and of each share kept, in turn."""
    times: dict[int, list[float]] = {kept: [] for kept in (_PLAIN, *KEPT)}
    sizes: dict[int, int] = {}
    for number in range(rounds + 1):
        for kept in times:
            seconds, sizes[kept] = _read(url, token, "" if kept == _PLAIN else f"where=level < {kept}")
            if number:  # the first round warms up
                times[kept].append(seconds)
    return {kept: (statistics.median(found), float(sizes[kept])) for kept, found in times.items()}


def _read(url: str, token: str, wish: str) -> tuple[float, int]:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=120)
    headers = {"X-Auth-Token": token, **({"X-Csv-Select": wish} if wish else {})}
    begin = time.perf_counter()
    with contextlib.closing(connection):
        connection.request("GET", parts.path, headers=headers)
        answer = connection.getresponse()
        size = 0
        while piece := answer.read(_PIECE):
            size += len(piece)
        if answer.status != 200:
            raise PeerError(f"status {answer.status}")
    return time.perf_counter() - begin, size


@contextlib.contextmanager
def link() -> Iterator[str]:
    """The name of a namespace behind a link of 1 Gbit/s."""
    name = f"sluice{os.getpid()}"
    near, far = f"{name}a", f"{name}b"
    _ip("netns", "add", name)
    try:
        _ip("link", "add", near, "type", "veth", "peer", "name", far, "netns", name)
        _ip("addr", "add", f"{_STORE}/30", "dev", near)
        _ip("link", "set", near, "up")
        _ip("-n", name, "addr", "add", f"{_READER}/30", "dev", far)
        _ip("-n", name, "link", "set", far, "up")
        shape = ("root", "tbf", "rate", "1gbit", "burst", "256kb", "latency", "50ms")
        _run("tc", "qdisc", "add", "dev", near, *shape)
        yield name
    finally:
        subprocess.run(["ip", "link", "del", near], capture_output=True, check=False)
        _ip("netns", "del", name)


def _ip(*words: str) -> None:
    _run("ip", *words)


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, check=False, text=True)
    if done.returncode != 0:
        raise PeerError(f"`{' '.join(command)}`: {done.stderr.strip()}")


@contextlib.contextmanager
def proxy(cluster: Cluster) -> Iterator[str]:
    """A proxy like the cluster's, on the store's side of the link; its URL."""
    layout = cluster.layout
    text = (layout.swift_dir / "proxy.conf").read_text(encoding="utf-8")
    lines = [f"bind_ip = {_STORE}" if line.startswith("bind_ip") else line for line in text.splitlines()]
    conf = layout.swift_dir / "link.conf"
    conf.write_text("\n".join(lines) + "\n", encoding="utf-8")
    port = layout.ports["proxy"]
    child = Child(swift_command(layout, "swift-proxy-server", str(conf), "-v"), layout.logs / "link.log")
    child.start()
    try:
        end = time.monotonic() + 60
        while not _serves(port):
            if not child.running or time.monotonic() > end:
                raise PeerError(f"the proxy on the link does not serve, see `{child.log}`")
            time.sleep(0.1)
        yield f"http://{_STORE}:{port}"
    finally:
        child.stop()


def _serves(port: int) -> bool:
    connection = http.client.HTTPConnection(_STORE, port, timeout=1)
    with contextlib.closing(connection), contextlib.suppress(OSError, http.client.HTTPException):
        connection.request("GET", "/healthcheck")
        return connection.getresponse().status == 200
    return False


def main() -> None:
    """The reader: URL, token and rounds on the command line, JSON out."""
    url, token, rounds = sys.argv[1:]
    found: dict[int, Any] = read_all(url, token, int(rounds))
    print(json.dumps(found))


if __name__ == "__main__":
    main()
