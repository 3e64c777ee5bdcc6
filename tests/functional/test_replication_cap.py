"""A cap on replication holds for rsync and SSYNC, is used, and copies are whole."""

import contextlib
import hashlib
import os
import shutil
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from sluice_aio.cluster import Cluster
from sluice_aio.cluster_setup import DISKFILE, OBJECT, PROXY, STORAGE, Setup
from sluice_aio.common_conf import USERS
from sluice_aio.components import DEFAULT
from sluice_aio.layout import STORAGE_AGENTS, Layout
from sluice_aio.swift_http import SwiftHttp
from sluice_client import Client

pytestmark = pytest.mark.functional

USER = "test:tester"
#: Bytes per second for the cluster.
CAP = 1e6
#: Part of it that is used at least; by SSYNC, which does not wait for its share before it begins; and seconds of it
#: that may be moved too early.
USED, USED_BY_SSYNC, EARLY = 0.85, 0.8, 1.5
#: Enough for twenty seconds of it, each.
SIZES = {"small": (44, 512 * 1024), "large": (3, 8 << 20)}
FROM, OTHER, TO = "object1", "object2", "object3"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    setup = Setup(parts=frozenset({PROXY, STORAGE, OBJECT, DISKFILE}), s3api=False, storage_agents=True)
    names = DEFAULT | frozenset(STORAGE_AGENTS) | {"rsync"}
    with Cluster(Layout.free(tmp_path_factory.mktemp("cap")), names, setup=setup) as made:
        fill(made)
        yield made


def fill(cluster):
    with contextlib.closing(SwiftHttp(cluster.proxy_url)) as swift:
        swift.login(USER, USERS[USER][0])
        url = "/v1/AUTH_test/c"
        bodies = [(f"{url}/{kind}{n}", size) for kind, (count, size) in SIZES.items() for n in range(count)]
        for target, size in [(url, 0), *bodies]:
            headers = {"X-Auth-Token": swift.token, **({} if size else {"Content-Length": "0"})}
            assert swift.raw("PUT", target, headers, os.urandom(size)).status < 300


@pytest.fixture
def client(cluster):
    with Client(cluster.api_url, cluster.token) as made:
        yield made


def capped(client):
    """Bytes per second that storage nodes were told last for all replication; 0: as much as it likes."""
    rows = client.collection("/bw/nodes", "nodes").all(method="REPLICATION")
    return sum(row["assigned"] or 0.0 for row in rows)


@pytest.fixture
def cap(client, eventually):
    policy = client.create_policy("FOR CLUSTER DO SET replication WITH max_bw=1MBps", wait=10)["id"]
    # a replicator that begins before is free for one job
    eventually(lambda: capped(client) == pytest.approx(CAP))
    yield
    client.delete_policy(policy)
    eventually(lambda: not capped(client))


def folder(cluster, server):
    return cluster.layout.device(server) / "objects"


def files(cluster, server):
    """Path below the device → digest of each object."""
    root = folder(cluster, server)
    found = (path for path in root.rglob("*.data") if path.is_file())
    return {str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest() for path in found}


def partitions(cluster, server, kind):
    """Those with a large object in them, or the others; lowest first."""
    found = [one for one in folder(cluster, server).iterdir() if one.is_dir()]
    large = {one for one in found if any(file.stat().st_size > 1 << 20 for file in one.rglob("*.data"))}
    chosen = large if kind == "large" else set(found) - large
    return sorted((one.name for one in chosen), key=int)


def size_of(cluster):
    """Bytes of objects on all disks, those that are being written included."""
    total = 0
    for root in cluster.device_folders:
        for where, _, names in os.walk(root):
            for name in names:
                with contextlib.suppress(FileNotFoundError):
                    total += os.stat(os.path.join(where, name)).st_size if ".data" in name else 0
    return total


class Watched:
    """Measures how fast all disks grow while it is entered."""

    def __init__(self, cluster):
        self._cluster = cluster
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look_on)
        self.seen = []

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        self._thread.join()

    def _look_on(self):
        while not self._over.wait(0.05):
            self.seen.append((time.monotonic(), size_of(self._cluster)))

    def span(self):
        """Bytes, and the seconds from where it began to grow to where it ended."""
        first, last = self.seen[0][1], self.seen[-1][1]
        begin = max(when for when, size in self.seen if size <= first + 64 * 1024)
        end = min(when for when, size in self.seen if size >= last)
        return last - first, end - begin

    def rate(self):
        size, seconds = self.span()
        return size / seconds

    def early(self, cap):
        """The bytes by which the worst of all spans of time was above ``cap``."""
        worst, lowest = 0.0, float("inf")
        for when, size in self.seen:
            above = size - cap * when
            lowest = min(lowest, above)
            worst = max(worst, above - lowest)
        return worst


def copied(cluster, lost, method="rsync", senders=(FROM,)):
    """One round of the replicators of ``senders``, at once, after servers lost these partitions; what was measured."""
    whole = files(cluster, FROM)
    for server, names in lost.items():
        for name in names:
            shutil.rmtree(folder(cluster, server) / name)
    with Watched(cluster) as watched, ThreadPoolExecutor() as pool:
        rounds = [
            pool.submit(cluster.run_daemon, "object-replicator", servers=[one], options={"sync_method": method})
            for one in senders
        ]
        for one in rounds:
            one.result()
    for server in lost:
        assert files(cluster, server) == whole
    return watched


def within(watched, cap, what, used=USED):
    """The cap holds, and most of it is used."""
    size, seconds = watched.span()
    early = watched.early(cap) / cap
    print(f"{what}: {size / 1e6:.1f} MB in {seconds:.1f} s, {watched.rate() / cap:.1%} of the cap, {early:.2f} s early")
    assert watched.rate() >= used * cap
    assert early <= EARLY


@pytest.mark.parametrize(("method", "kind"), [("rsync", "small"), ("rsync", "large"), ("ssync", "small")])
def test_copies_use_the_cap_are_no_faster_and_whole(cluster, cap, method, kind):
    watched = copied(cluster, {TO: partitions(cluster, TO, kind)}, method)
    within(watched, CAP, f"{method}, {kind}", USED if method == "rsync" else USED_BY_SSYNC)


def test_two_that_send_share_one_cap(cluster, cap):
    # what is lost here is only there, so that nothing is sent twice
    names = partitions(cluster, TO, "small")
    watched = copied(cluster, {TO: names, FROM: names[::2], OTHER: names[1::2]}, senders=(FROM, OTHER))
    within(watched, CAP, "rsync, two send")


@pytest.mark.parametrize("method", ["rsync", "ssync"])
def test_without_a_cap_copies_are_as_fast_as_they_can(cluster, method):
    watched = copied(cluster, {TO: partitions(cluster, TO, "small")}, method)
    print(f"{method}: {watched.rate() / 1e6:.2f} MB/s without a cap")
    assert watched.rate() >= 1.5 * CAP
