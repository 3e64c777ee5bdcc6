"""A cap on replication holds for rsync, SSYNC and the reconstructor, is used, and copies are complete.

The bytes that nodes report are those that were copied, and a changed cap soon applies to the running copy.
"""

import contextlib
import hashlib
import os
import shutil
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime

import pytest
from tests.support.cluster.daemons import run_daemon

from sluice_aio.base.layout import STORAGE_AGENTS, Layout
from sluice_aio.base.setup import DISKFILE, EC21, GOLD, OBJECT, PROXY, STORAGE, Setup
from sluice_aio.base.swift_http import SwiftHttp
from sluice_aio.cluster.cluster import Cluster
from sluice_aio.cluster.components import DEFAULT
from sluice_aio.conf.common import USERS
from sluice_client import Client

pytestmark = pytest.mark.alone

USER = "test:tester"
#: Bytes per second for the cluster.
CAP = 1e6
#: The fraction of it that is used at least; by SSYNC, which does not wait for its share at its start; and its seconds
#: that may be moved too early.
USED, USED_BY_SSYNC, EARLY = 0.85, 0.8, 1.5
#: Enough for twenty seconds of it, each.
SIZES = {"small": (44, 512 * 1024), "large": (3, 8 << 20)}
FROM, OTHER, TO = "object1", "object2", "object3"
#: The same, when a fragment, half of an object, costs three times its size: it is rebuilt from two others.
CODED_SIZE, COST = (52, 256 * 1024), 3
FOLDERS = {"c": "objects", EC21: "objects-1"}
#: The fraction of copied bytes that nodes may report too much or too little: a daemon reports once a second and not at
#: its end, so that up to a second of twenty is missing; rsync's own protocol bytes come on top.
TOLD = 0.1
#: Caps before and after, or after and before; seconds of the measurement, and the largest relative deviation of their
#: mean from the cap: a piece of 64 KiB more or less is 8 % of the lesser, and a node's share is a bit less than all.
SLOW, QUICK, LATELY, ABOUT = 0.2e6, 0.6e6, 4, 0.2


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
        for container, kinds in (("c", SIZES), (EC21, {"coded": CODED_SIZE})):
            url = f"/v1/AUTH_test/{container}"
            bodies = [(f"{url}/{kind}{n}", size) for kind, (count, size) in kinds.items() for n in range(count)]
            for target, size in [(url, 0), *bodies]:
                headers = {"X-Auth-Token": swift.token}
                if not size:
                    headers |= {"Content-Length": "0", "X-Storage-Policy": EC21 if container == EC21 else GOLD}
                assert swift.raw("PUT", target, headers, os.urandom(size)).status < 300


@pytest.fixture
def client(cluster):
    with Client(cluster.api_url, cluster.token) as made:
        yield made


def capped(client):
    """Bytes per second of the last share of storage nodes for all replication; 0: unlimited."""
    rows = client.collection("/bw/nodes", "nodes").list(method="REPLICATION")
    return sum(row["assigned"] or 0.0 for row in rows)


@pytest.fixture
def capping(client, eventually):
    """Sets the cap, any number of times; it is in force when that returns."""
    made = []

    def cap(rate):
        sentence = f"FOR CLUSTER DO SET replication WITH max_bw={rate:.0f}Bps"
        if made:
            client.update_policy(made[0], {"policy": sentence}, wait=10)
        else:
            made.append(client.create_policy(sentence, wait=10)["id"])
        # a replicator that starts before is unlimited for one job
        eventually(lambda: capped(client) == pytest.approx(rate))

    yield cap
    for policy in made:
        client.delete_policy(policy)
    eventually(lambda: not capped(client))


@pytest.fixture
def cap(capping):
    capping(CAP)


def folder(cluster, server, container="c"):
    return cluster.layout.device(server) / FOLDERS[container]


def files(cluster, server, container="c"):
    """Path below the device → digest of each object."""
    root = folder(cluster, server, container)
    found = (path for path in root.rglob("*.data") if path.is_file())
    return {str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest() for path in found}


def large(path):
    """The large objects below ``path``."""
    return [file for file in path.rglob("*.data") if file.stat().st_size > 1 << 20]


def partitions(cluster, server, kind, container="c"):
    """The partitions with a large object, or the others; lowest first."""
    found = [one for one in folder(cluster, server, container).iterdir() if one.is_dir()]
    return sorted((one.name for one in found if bool(large(one)) == (kind == "large")), key=int)


def size_of(cluster):
    """Bytes of objects on all disks, those that are being written included."""
    total = 0
    for root in cluster.device_folders:
        for where, _, names in os.walk(root):
            for name in names:
                with contextlib.suppress(FileNotFoundError):
                    total += os.stat(os.path.join(where, name)).st_size if ".data" in name else 0
    return total


class Looking:
    """Samples a value repeatedly while it is entered; ``seen`` are the samples."""

    #: Seconds between two samples.
    pause = 0.05

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
        while not self._over.wait(self.pause):
            self.look()


class Told(Looking):
    """The API's reports of storage nodes' replication: second by second, as (node, its end, bytes per second)."""

    pause = 0.2

    def look(self):
        with Client(self._cluster.api_url, self._cluster.token) as client:
            for row in client.collection("/bw/nodes", "nodes").list(method="REPLICATION", side="storage_node"):
                one = row["node"], datetime.fromisoformat(row["at"]).timestamp(), row["measured"]
                if one not in self.seen[-50:]:
                    self.seen.append(one)

    def size(self):
        """Bytes of all seconds."""
        total, ends = 0.0, {}
        for node, end, rate in list(self.seen):
            total += rate * (end - ends.get(node, end))
            ends[node] = end
        return total

    def lately(self, since=0.0):
        """Bytes per second of all nodes, a mean over the last seconds; 0 when not as many began since then."""
        rates = {}
        for node, end, rate in list(self.seen):
            if end - 1 >= since:
                rates.setdefault(node, []).append(rate)
        return sum(sum(some[-LATELY:]) / LATELY for some in rates.values() if len(some) >= LATELY)

    def all_until(self, when):
        """Whether all nodes have reported the seconds that ended until then."""
        ends = {node: end for node, end, _ in list(self.seen)}
        return bool(ends) and min(ends.values()) >= when


class Watched(Looking):
    """Measures how fast all disks grow while it is entered."""

    def look(self):
        self.seen.append((time.monotonic(), size_of(self._cluster)))

    def span(self):
        """Bytes, and the seconds from the start of the growth to its end."""
        first, last = self.seen[0][1], self.seen[-1][1]
        begin = max(when for when, size in self.seen if size <= first + 64 * 1024)
        end = min(when for when, size in self.seen if size >= last)
        return last - first, end - begin

    def rate(self):
        size, seconds = self.span()
        return size / seconds

    def early(self, cap):
        """The bytes by which the worst of all time spans exceeded ``cap``."""
        worst, lowest = 0.0, float("inf")
        for when, size in self.seen:
            above = size - cap * when
            lowest = min(lowest, above)
            worst = max(worst, above - lowest)
        return worst


def copy(cluster, server, method):
    """One round of the daemon of ``server`` that copies with this method."""
    if method == "fragments":
        run_daemon(cluster, "object-reconstructor", servers=[server])
    else:
        run_daemon(cluster, "object-replicator", servers=[server], options={"sync_method": method})


def copied(cluster, lost, method="rsync", senders=(FROM,)):
    """One round of the daemons of ``senders``, at once, after servers lost these partitions; return the measurement."""
    container = EC21 if method == "fragments" else "c"
    # each has fragments of its own, but all have the same replicas
    whole = {server: files(cluster, server if method == "fragments" else FROM, container) for server in lost}
    for server, names in lost.items():
        for name in names:
            shutil.rmtree(folder(cluster, server, container) / name)
    with Watched(cluster) as watched, ThreadPoolExecutor() as pool:
        rounds = [pool.submit(copy, cluster, one, method) for one in senders]
        for one in rounds:
            one.result()
    assert {server: files(cluster, server, container) for server in lost} == whole
    return watched


def within(watched, cap, what, used=USED):
    """The cap holds, and most of it is used."""
    size, seconds = watched.span()
    early = watched.early(cap) / cap
    print(f"{what}: {size / 1e6:.1f} MB in {seconds:.1f} s, {watched.rate() / cap:.1%} of the cap, {early:.2f} s early")
    assert watched.rate() >= used * cap
    assert early <= EARLY


@pytest.mark.parametrize(
    ("method", "kind", "cost"),
    [("rsync", "small", 1), ("rsync", "large", 1), ("ssync", "small", 1), ("fragments", "coded", COST)],
)
def test_copies_use_the_cap_are_no_faster_whole_and_told(cluster, cap, eventually, method, kind, cost):
    container = EC21 if method == "fragments" else "c"
    with Told(cluster) as told:
        watched = copied(cluster, {TO: partitions(cluster, TO, kind, container)}, method)
        over = time.time()
        eventually(lambda: told.all_until(over + 1))
    size = cost * watched.span()[0]
    print(f"{method}, {kind}: {told.size() / size:.1%} of what was copied is told")
    within(watched, CAP / cost, f"{method}, {kind}", USED if method == "rsync" else USED_BY_SSYNC)
    assert told.size() == pytest.approx(size, rel=TOLD)


def test_two_that_send_share_one_cap(cluster, cap):
    # the partitions are lost only here, so that nothing is sent twice
    names = partitions(cluster, TO, "small")
    watched = copied(cluster, {TO: names, FROM: names[::2], OTHER: names[1::2]}, senders=(FROM, OTHER))
    within(watched, CAP, "rsync, two send")


@pytest.mark.parametrize(("first", "second"), [(SLOW, QUICK), (QUICK, SLOW)], ids=["raised", "lowered"])
def test_a_changed_cap_is_soon_that_of_an_object_on_its_way_by_ssync(cluster, capping, eventually, first, second):
    whole = files(cluster, TO)
    lost = next(one for one in folder(cluster, TO).iterdir() if one.is_dir() and len(large(one)) == 1)
    capping(first)
    shutil.rmtree(lost)
    with Told(cluster) as told, ThreadPoolExecutor() as pool:
        running = pool.submit(copy, cluster, FROM, "ssync")
        eventually(lambda: told.lately() == pytest.approx(first, rel=ABOUT), 20)
        capping(second)
        since = time.time() + 1  # credit of nodes and daemons is used up by then
        rate = eventually(lambda: told.lately(since), 20)
        print(f"from {first / 1e6} to {second / 1e6} MB/s: {rate / 1e6:.3f} MB/s")
        assert rate == pytest.approx(second, rel=ABOUT)
        assert not running.done()
        assert not large(lost)  # it is still the same object
        capping(5 * CAP)
        running.result()
    assert files(cluster, TO) == whole


@pytest.mark.parametrize("method", ["rsync", "ssync"])
def test_without_a_cap_copies_are_as_fast_as_they_can(cluster, method):
    watched = copied(cluster, {TO: partitions(cluster, TO, "small")}, method)
    print(f"{method}: {watched.rate() / 1e6:.2f} MB/s without a cap")
    assert watched.rate() >= 1.5 * CAP
