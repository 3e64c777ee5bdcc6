"""A cap on replication holds for rsync and SSYNC, and copies are whole."""

import contextlib
import hashlib
import os
import shutil
import threading
import time

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
OBJECTS = 24
SIZE = 512 * 1024
FROM, TO = "object1", "object3"


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
        for target, body in [(url, b""), *((f"{url}/{number}", os.urandom(SIZE)) for number in range(OBJECTS))]:
            headers = {"X-Auth-Token": swift.token, **({} if body else {"Content-Length": "0"})}
            assert swift.raw("PUT", target, headers, body).status < 300


@pytest.fixture
def client(cluster):
    with Client(cluster.api_url, cluster.token) as made:
        yield made


@pytest.fixture
def cap(client):
    policy = client.create_policy("FOR CLUSTER DO SET replication WITH max_bw=1MBps", wait=10)["id"]
    yield
    client.delete_policy(policy)


def folder(cluster, server):
    return cluster.layout.device(server) / "objects"


def files(cluster, server):
    """Path below the device → digest of each object."""
    root = folder(cluster, server)
    found = (path for path in root.rglob("*.data") if path.is_file())
    return {str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest() for path in found}


def size_of(cluster, server):
    total = 0
    for where, _, names in os.walk(cluster.layout.device(server)):
        for name in names:
            try:
                total += os.stat(os.path.join(where, name)).st_blocks * 512
            except FileNotFoundError:
                continue
    return total


class Watched:
    """Measures how fast the disk of ``server`` grows while it is entered."""

    def __init__(self, cluster, server):
        self._cluster = cluster
        self._server = server
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
            self.seen.append((time.monotonic(), size_of(self._cluster, self._server)))

    def rate(self):
        """Bytes per second, from where it began to grow to where it ended."""
        first, last = self.seen[0][1], self.seen[-1][1]
        begin = max(when for when, size in self.seen if size <= first + 64 * 1024)
        end = min(when for when, size in self.seen if size >= last)
        return (last - first) / (end - begin)


def copied(cluster, method):
    """One round of the replicator of one server after another lost all of its objects: bytes per second."""
    for partition in folder(cluster, TO).iterdir():
        shutil.rmtree(partition)
    with Watched(cluster, TO) as watched:
        cluster.run_daemon("object-replicator", servers=[FROM], options={"sync_method": method})
    assert len(files(cluster, TO)) == OBJECTS
    assert files(cluster, TO) == files(cluster, FROM)
    return watched.rate()


@pytest.mark.parametrize("method", ["rsync", "ssync"])
def test_copies_are_no_faster_than_the_cap_and_whole(cluster, cap, method):
    rate = copied(cluster, method)
    print(f"{method}: {rate / 1e6:.2f} MB/s under a cap of {CAP / 1e6:g} MB/s")
    assert rate <= 1.1 * CAP
    assert rate >= 0.5 * CAP


@pytest.mark.parametrize("method", ["rsync", "ssync"])
def test_without_a_cap_copies_are_as_fast_as_they_can(cluster, method):
    rate = copied(cluster, method)
    print(f"{method}: {rate / 1e6:.2f} MB/s without a cap")
    assert rate >= 1.5 * CAP
