"""Half an hour of full load on filtered containers: growth of memory, and leaks of descriptors.

Clients put, read whole and in ranges, overwrite, post and delete objects in three containers (filters on the proxy
with the cache, filters on the storage nodes, an isolated filter) and cut some transfers in either direction.  What
they read is compared.  Every service with code of Sluice in it is looked at each five seconds: the memory that is
its own (``/proc/<pid>/smaps_rollup``: private dirty bytes, so what is mapped from files or shared does not count)
and its open descriptors, all of its processes together.
"""

from __future__ import annotations

import contextlib
import http.client
import itertools
import random
import shutil
import statistics
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from benchmarks.harness.corpus import log_corpus
from benchmarks.harness.figures import Figure
from benchmarks.harness.scale import Scale, say
from benchmarks.harness.trio import ACCOUNT, KEY, USER
from benchmarks.harness.works import make_container
from tests.support.swift_suite.trials import ISOLATED_NOOP, NOOP

from sluice_aio.base.layout import OBJECT_DEVICES, Layout
from sluice_aio.base.swift_http import SwiftHttp
from sluice_aio.cluster.cluster import Cluster
from sluice_aio.cluster.components import DEFAULT
from sluice_client import Client
from sluice_core.errors import PeerError

NEAR, BELOW, JAILED = "near", "below", "jailed"
SENTENCES: Final = (
    f"FOR CONTAINER {ACCOUNT}/{NEAR} DO SET compression ON PROXY, SET encryption ON PROXY",
    f"FOR CONTAINER {ACCOUNT}/{NEAR} DO SET caching ON PROXY",
    f"FOR CONTAINER {ACCOUNT}/{BELOW} DO SET compression ON STORAGE_NODE, SET encryption ON STORAGE_NODE",
    f"FOR CONTAINER {ACCOUNT}/{JAILED} DO SET inoop ON PROXY",
)
WATCHED: Final = ("proxy", *OBJECT_DEVICES, "agent", "sandbox")
CLIENTS: Final = 6
NAMES: Final = 40
SIZES: Final = (1, 4_000, 70_000, 400_000, 3_000_000)
#: Allowed growth from the middle third to the last one: a share, or bytes if that is less.
GROWTH: Final = 1.05
SLACK: Final = 2 << 20
_EACH: Final = 5.0
#: One of so many values is recorded.
_EACH_MINUTE: Final = 12


@dataclass(slots=True)
class Series:
    """Private bytes and descriptors of one service over time."""

    memory: list[int] = field(default_factory=list)
    descriptors: list[int] = field(default_factory=list)


def measure(scale: Scale) -> list[Figure]:
    """Load for thirty minutes, then the figures."""
    seconds = scale.pick(1800, 30)
    folder = scale.folder / "soak"
    with contextlib.ExitStack() as stack:
        say("soak: starting a cluster")
        cluster = stack.enter_context(Cluster(Layout.free(folder), DEFAULT | {"sandbox"}))
        swift = SwiftHttp(cluster.proxy_url).login(USER, KEY)
        stack.callback(swift.close)
        _prepare(cluster, swift)
        load = Load(swift)
        stack.callback(load.stop)
        load.start()
        found = _watch(cluster, load, seconds)
        load.stop()
    shutil.rmtree(folder, ignore_errors=True)
    load.check()
    counts = ", ".join(f"{count} {what}" for what, count in sorted(load.counts.items()))
    return [figure for name, series in found.items() for figure in _figures(name, series, counts)]


def _prepare(cluster: Cluster, swift: SwiftHttp) -> None:
    for name in (NEAR, BELOW, JAILED):
        make_container(swift, name)
        swift.request("HEAD", f"{name}/first")  # the workers say hello
    with Client(cluster.api_url, cluster.token) as api:
        api.register_filter(ISOLATED_NOOP)
        api.upload_filter(str(ISOLATED_NOOP["keyword"]), NOOP, wait=30)
        for sentence in SENTENCES:
            api.create_policy(sentence, wait=30)


def _watch(cluster: Cluster, load: Load, seconds: float) -> dict[str, Series]:
    found = {name: Series() for name in WATCHED}
    begin = time.monotonic()
    told = 0
    while (passed := time.monotonic() - begin) < seconds and not load.faults:
        for name, series in found.items():
            main = cluster.process(name)
            pids = [main.pid, *(member.pid for member in cluster.workers(name))]
            series.memory.append(sum(map(private_bytes, pids)))
            series.descriptors.append(sum(map(descriptors, pids)))
        if passed // 300 > told:
            told += 1
            say(f"soak: {passed / 60:.0f} minutes, {sum(load.counts.values())} requests")
        time.sleep(_EACH)
    return found


def private_bytes(pid: int) -> int:
    """Bytes of memory that belong to process ``pid`` alone; 0 if it has ended."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines():
            if line.startswith("Private_Dirty:"):
                return int(line.split()[1]) << 10
    return 0


def descriptors(pid: int) -> int:
    """Open descriptors of process ``pid``; 0 if it has ended."""
    with contextlib.suppress(OSError):
        return len(list(Path(f"/proc/{pid}/fd").iterdir()))
    return 0


def thirds(values: Sequence[int]) -> tuple[float, float]:
    """Medians of the middle third and of the last one."""
    size = max(1, len(values) // 3)
    return statistics.median(values[-2 * size : -size] or values), statistics.median(values[-size:])


def _figures(name: str, series: Series, counts: str) -> list[Figure]:
    before, after = thirds(series.memory)
    ratio = after / before if before else 1.0
    held, open_now = thirds(series.descriptors)
    return [
        Figure(
            f"soak {name} memory",
            f"{name}, full load: private memory, last third × middle third",
            ratio,
            f"{ratio:.3f} ×",
            f"≤ {GROWTH:g} ×",
            ratio <= GROWTH or after - before <= SLACK,
            f"{before / 2**20:.1f} → {after / 2**20:.1f} MiB, most {max(series.memory) / 2**20:.1f}; {counts}",
            {"memory": series.memory[::_EACH_MINUTE]},
        ),
        Figure(
            f"soak {name} descriptors",
            f"{name}, full load: open descriptors, last third − middle third",
            open_now - held,
            f"{open_now - held:g}",
            f"≤ {CLIENTS}",
            open_now - held <= CLIENTS,
            f"{held:g} → {open_now:g}, most {max(series.descriptors)}",
            {"descriptors": series.descriptors[::_EACH_MINUTE]},
        ),
    ]


class Load:
    """Clients without pauses; each owns names of its own, so it knows the expected content."""

    def __init__(self, swift: SwiftHttp) -> None:
        self._swift = swift
        self._over = threading.Event()
        self._threads: list[threading.Thread] = []
        self._text = log_corpus(max(SIZES))
        self._noise = random.Random(5).randbytes(max(SIZES))
        self.counts: Counter[str] = Counter()
        self.faults: list[str] = []

    def start(self) -> None:
        """Begin."""
        self._threads = [threading.Thread(target=self._serve, args=(number,)) for number in range(CLIENTS)]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """End, and wait for it."""
        self._over.set()
        for thread in self._threads:
            thread.join()

    def check(self) -> None:
        """:raises PeerError: if any answer differed from the expected one
        :raises PeerError: when any answer was not what it had to be
        """
        if self.faults:
            raise PeerError(f"wrong under load: {'; '.join(self.faults[:3])}")

    def _serve(self, number: int) -> None:
        dice = random.Random(number)
        held: dict[str, bytes] = {}
        containers = itertools.cycle((NEAR, BELOW, JAILED))
        try:
            while not self._over.is_set():
                path = f"{next(containers)}/{number}-{dice.randrange(NAMES // CLIENTS)}"
                self._one(dice, held, path)
        except PeerError as error:
            self.faults.append(str(error))
        finally:
            self._swift.close()

    def _one(self, dice: random.Random, held: dict[str, bytes], path: str) -> None:
        what = dice.choices(("put", "get", "range", "post", "delete", "cut get", "cut put"), (5, 10, 4, 1, 1, 1, 1))[0]
        if path not in held:
            what = "put"
        self.counts[what] += 1
        if what == "put":
            size = dice.choice(SIZES)
            begin = dice.randrange(max(SIZES) - size + 1)
            data = dice.choice((self._text, self._noise))[begin : begin + size]
            self._expect(self._swift.request("PUT", path, data, content_type="text/plain").status, 201, path)
            held[path] = data
        elif what == "get":
            answer = self._swift.request("GET", path)
            self._expect(answer.status, 200, path)
            self._same(answer.body, held[path], path)
        elif what == "range":
            first = dice.randrange(len(held[path]))
            last = min(len(held[path]) - 1, first + dice.choice((0, 5_000, 200_000)))
            answer = self._swift.request("GET", path, range=f"bytes={first}-{last}")
            self._expect(answer.status, 206, path)
            self._same(answer.body, held[path][first : last + 1], path)
        elif what == "post":
            self._expect(self._swift.request("POST", path, x_object_meta_a=str(dice.random())).status, 202, path)
        elif what == "delete":
            self._expect(self._swift.request("DELETE", path).status, 204, path)
            del held[path]
        else:
            self._cut(what, path)

    def _cut(self, what: str, path: str) -> None:
        """A transfer that the client ends in the middle; a cut upload must store nothing."""
        connection = http.client.HTTPConnection(self._swift.address, timeout=60)
        headers: Mapping[str, str] = {"X-Auth-Token": self._swift.token}
        with contextlib.closing(connection), contextlib.suppress(OSError):
            if what == "cut get":
                connection.request("GET", f"{self._swift.account}/{path}", headers=headers)
                connection.getresponse().read(1000)
                return
            connection.putrequest("PUT", f"{self._swift.account}/{path}")
            for name, value in (*headers.items(), ("Content-Length", str(len(self._noise)))):
                connection.putheader(name, value)
            connection.endheaders(self._noise[: len(self._noise) // 2])

    def _expect(self, status: int, wanted: int, path: str) -> None:
        if status != wanted:
            raise PeerError(f"`{path}`: status {status}, expected {wanted}")

    def _same(self, found: bytes, wanted: bytes, path: str) -> None:
        if found != wanted:
            raise PeerError(f"`{path}`: {len(found)} bytes are not the {len(wanted)} that were put")
