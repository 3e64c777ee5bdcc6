"""The demo of the main use: a live workload switches compression on, and off again.

A policy compresses what a tenant uploads while it uploads more than three objects a second.  Real
files are uploaded at one a second, at eight, and at one again; then everything is downloaded and compared,
and the files on the object servers' disks are checked.
"""

from __future__ import annotations

import shutil
import time
from collections import Counter
from dataclasses import dataclass
from typing import Final

from sluice_aio.base.layout import Layout
from sluice_aio.base.swift_http import SwiftHttp
from sluice_aio.cluster import disks
from sluice_aio.cluster.cluster import Cluster
from sluice_aio.cluster.records import uninterrupted
from sluice_aio.conf.common import USERS
from sluice_aio.demo import corpus, verify, watch
from sluice_aio.demo.upload import Upload, Uploader
from sluice_aio.demo.watch import Seen, Watcher
from sluice_client import ApiError, Client, Unreachable

_COLUMNS: Final = (
    ("phase", "<10"),
    ("second", ">6"),
    ("target/s", ">8"),
    ("PUTS_SEC", ">8"),
    ("policy", "<8"),
    ("enforced", ">8"),
    ("objects", ">7"),
    ("logical x3", ">11"),
    ("on disks", ">11"),
    ("ratio", ">5"),
)
SENTENCE: Final = "FOR TENANT AUTH_test WHEN PUTS_SEC > 3 DO SET compression WITH engine=zstd ON PROXY TRANSIENT"
CONTAINER: Final = "demo"
#: Uploads a second, and for how many seconds.
SLOW: Final = 1.0
FAST: Final = 8.0
SLOW_SECONDS: Final = 8
FAST_SECONDS: Final = 15
#: Time limit for the end of the policy, and duration of uploads after it.
BACK_LIMIT: Final = 30
AFTER_SECONDS: Final = 5
#: Enough objects for all phases.
_OBJECTS: Final = int(SLOW_SECONDS * SLOW + FAST_SECONDS * FAST + (BACK_LIMIT + AFTER_SECONDS) * SLOW) + 10
_REPLICAS: Final = 3


def human(size: float) -> str:
    """Bytes with a unit, as ``1.2 MiB``."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024 or unit == "GiB":
            break
        size /= 1024
    return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the table; bytes count every replica."""

    phase: str
    rate: float
    seen: Seen
    objects: int
    logical: int
    stored: int


class Table:
    """Waits for each second and aligns the columns."""

    def __init__(self) -> None:
        self._began: float | None = None
        self._second = 0

    def wait(self) -> None:
        """Wait until the next second of this table."""
        if self._began is None:
            self._began = time.monotonic()
        self._second += 1
        time.sleep(max(0.0, self._began + self._second - time.monotonic()))

    @staticmethod
    def head() -> str:
        """The names of the columns."""
        return " ".join(f"{name:{width}}" for name, width in _COLUMNS)

    def row(self, line: Line) -> str:
        """One line of the table."""
        value = line.seen.values.get("PUTS_SEC")
        cells = (
            line.phase,
            str(self._second),
            f"{line.rate:g}",
            "-" if value is None else f"{value:.1f}",
            "away" if line.seen.error else line.seen.state,
            f"{line.seen.nodes}/{line.seen.total}",
            str(line.objects),
            human(line.logical),
            human(line.stored),
            f"{line.stored / line.logical:.2f}" if line.logical else "-",
        )
        return " ".join(f"{cell:{width}}" for cell, (_, width) in zip(cells, _COLUMNS, strict=True))


class Demo:
    """One run on a running cluster."""

    def __init__(self, cluster: Cluster) -> None:
        user, (key, self._account) = next(iter(USERS.items()))
        self._cluster = cluster
        self._swift = SwiftHttp(cluster.proxy_url).login(user, key)
        self._client = Client(cluster.api_url, cluster.token)
        self._table = Table()

    def run(self) -> bool:
        """Return True if all checks passed."""
        samples = corpus.choose(_OBJECTS)
        policy = self._client.create_policy(SENTENCE, wait=10)
        print(f"\npolicy     {policy['policy']}\nid         {policy['id']}\n")
        self._swift.request("PUT", CONTAINER)
        failures = (ApiError, Unreachable)
        watcher = Watcher(lambda: self._client.policy(policy["id"]), failures)
        uploader = Uploader(self._swift, CONTAINER, samples)
        watcher.start()
        try:
            self._workload(watcher, uploader)
        finally:
            uploader.stop()
            watcher.stop()
        return self._judge(watcher, uploader.done)

    def _workload(self, watcher: Watcher, uploader: Uploader) -> None:
        print(self._table.head())
        while not watcher.polls:
            time.sleep(0.05)  # the check of the first uploads needs it, too
        uploader.start(SLOW)
        self._phase("slow", SLOW, SLOW_SECONDS, watcher, uploader)
        uploader.set_rate(FAST)
        self._phase("fast", FAST, FAST_SECONDS, watcher, uploader)
        uploader.set_rate(SLOW)
        for _ in range(BACK_LIMIT):
            if watcher.taken_back():
                break
            self._phase("slow again", SLOW, 1, watcher, uploader)
        self._phase("after", SLOW, AFTER_SECONDS, watcher, uploader)

    def _phase(self, name: str, rate: float, seconds: int, watcher: Watcher, uploader: Uploader) -> None:
        """Print a line a second."""
        for _ in range(seconds):
            self._table.wait()
            logical = uploader.logical_bytes() * _REPLICAS
            stored = disks.stored_bytes(self._cluster.device_folders)
            line = Line(name, rate, watcher.seen, len(uploader.done), logical, stored)
            print(self._table.row(line), flush=True)

    def _judge(self, watcher: Watcher, uploads: list[Upload]) -> bool:
        verdicts = {one.sample.name: watch.verdict(watcher.polls, one.begin, one.end) for one in uploads}
        sizes = disks.stored_sizes(self._cluster.device_folders, f"{self._account}/{CONTAINER}")
        checks = [
            verify.check_uploads(uploads),
            verify.Check("the policy was enforced on all nodes", watcher.ever(watch.IN_FORCE), "while it was busy"),
            verify.Check("and taken back by itself", watcher.taken_back(), "when it was calm again"),
            *verify.check_answers(self._swift, CONTAINER, uploads),
            verify.check_listing(self._swift, CONTAINER, uploads),
            verify.check_coverage(uploads, verdicts),
            verify.check_disks(uploads, verdicts, sizes),
        ]
        self._swift.close()
        self._summary(checks, uploads, verdicts, sizes)
        return all(check.good for check in checks)

    @staticmethod
    def _summary(
        checks: list[verify.Check], uploads: list[Upload], verdicts: dict[str, str], sizes: dict[str, list[int]]
    ) -> None:
        print()
        for check in checks:
            print(f"{'ok  ' if check.good else 'FAIL'} {check.name:<46} {check.detail}")
        unsure = [name for name, word in verdicts.items() if word == watch.UNDECIDABLE]
        if unsure:
            print(f"\nnot judged, because the policy changed around them: {', '.join(unsure)}")
        print(f"\n{'':12} {'objects':>8} {'x 3 replicas':>14} {'on the disks':>14}")
        counts = Counter(verdicts.values())
        for word in (watch.INSIDE, watch.OUTSIDE, watch.UNDECIDABLE):
            members = [one for one in uploads if verdicts[one.sample.name] == word]
            logical = sum(len(one.sample.body) for one in members) * _REPLICAS
            stored = sum(sum(sizes.get(one.sample.name, [])) for one in members)
            print(f"{word:12} {counts[word]:>8} {human(logical):>14} {human(stored):>14}")


def run_demo(layout: Layout, keep: bool) -> int:
    """Start a separate cluster, run the demo, stop it again; exit status 0 only if all checks passed."""
    began = time.monotonic()
    own = layout.for_demo()
    cluster = Cluster(own)
    for one in (Cluster(layout), cluster):  # both would use the same ports
        one.refuse_when_running()
    _clear(own)
    good = finished = False
    try:
        cluster.start(lambda line: print(line, flush=True))
        good = Demo(cluster).run()
        finished = True
    finally:
        if not (keep and finished):
            with uninterrupted():
                cluster.stop()
    print(f"\n{'everything held' if good else 'NOT everything held'}, {time.monotonic() - began:.0f} seconds")
    if keep:
        print(f"the cluster runs on: swift {cluster.proxy_url}, api {cluster.api_url}; stop it with `make down`")
    elif good:
        _clear(own)
    else:
        print(f"logs and data are in {own.folder}")
    return 0 if good else 1


def _clear(layout: Layout) -> None:
    if layout.folder.exists():
        shutil.rmtree(layout.folder)
