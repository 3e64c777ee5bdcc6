"""Two replicas of the API behind one address are killed in turn, and no request of readers or writers is lost.

The address forwards connections only, so some break; the client retries, which is safe for reading, for
deleting, and for creating under a key by which each replica recognises the request.
"""

import itertools
import secrets
import shutil
import signal
import tempfile
import threading
import time
from pathlib import Path

import pytest
from tests.support.cluster.balancer import Balancer

from sluice_aio.base.layout import Layout
from sluice_aio.cluster.cluster import Cluster
from sluice_client import Client, ClientError, Retries

REPLICAS = ("api", "api2")
#: Longer than the restart of a replica on a slow machine.
PATIENT = Retries(tries=8)


@pytest.fixture(scope="module")
def cluster():
    folder = Path(tempfile.mkdtemp(prefix="sluice-"))
    try:
        with Cluster(Layout.free(folder), {"redis", *REPLICAS}) as running:
            yield running
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class Load:
    """Continuous readers and writers with a client each; records failures, and the expected objects."""

    def __init__(self, url, token, readers=2, writers=3):
        self._url, self._token = url, token
        self._id = secrets.token_hex(4)
        self._over = threading.Event()
        work = [self._read] * readers + [self._write] * writers
        self._threads = [threading.Thread(target=self._run, args=(what, at)) for at, what in enumerate(work)]
        self.done = [0] * len(work)
        self.failed = []
        self.expected = {}

    def _run(self, turn, number):
        # a request that waits for a new worker is served late, not lost
        with Client(self._url, self._token, timeout=60, retries=PATIENT) as client:
            for count in itertools.count():
                if self._over.is_set():
                    return
                try:
                    turn(client, f"w{number}", count)
                except ClientError as error:
                    self.failed.append((turn.__name__, number, count, str(error)))
                self.done[number] += 1

    def _read(self, client, name, count):
        found = [one["id"] for one in client.policies(page=100)]
        assert len(found) == len(set(found))
        if found:
            client.health()

    def _write(self, client, name, count):
        sentence = f"FOR CONTAINER AUTH_{name}/{self._id}-{count} DO SET noop"
        made = client.create_policy(sentence)
        self.expected[made["id"]] = sentence
        assert client.policy(made["id"])["source"] == sentence
        if count % 2:
            client.delete_policy(made["id"])
            del self.expected[made["id"]]

    def go_on(self, turns):
        """Wait until each thread has started and ended this many more turns."""
        enough = [count + 1 + turns for count in self.done]
        end = time.monotonic() + 90
        while any(count < least for count, least in zip(self.done, enough, strict=True)):
            assert time.monotonic() < end, (self.done, enough)
            time.sleep(0.05)

    def __enter__(self):
        for one in self._threads:
            one.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        for one in self._threads:
            one.join()


@pytest.fixture
def load(cluster):
    """Load through one address, and afterwards: no request failed, each object exists exactly once."""
    with Balancer([cluster.layout.ports[name] for name in REPLICAS]) as balancer:
        with Load(balancer.url, cluster.token) as running:
            running.go_on(1)
            yield running
        assert not running.failed, f"{len(running.failed)} of {sum(running.done)}: {running.failed[:5]}"
        for name in REPLICAS:  # both see the same
            with Client(cluster.layout.url(name), cluster.token) as client:
                assert {one["id"]: one["source"] for one in client.policies()} == running.expected
        with Client(cluster.api_url, cluster.token) as client:
            for policy in running.expected:
                client.delete_policy(policy)


def test_replicas_that_are_ended_and_started_in_turn_lose_no_request(cluster, load):
    for name in REPLICAS:
        cluster.restart(name)  # SIGTERM, then anew
        load.go_on(1)


def test_workers_that_are_killed_in_the_middle_lose_no_request(cluster, load, eventually):
    for name in REPLICAS * 2:
        for worker in cluster.workers(name):
            worker.signal(signal.SIGKILL)
            load.go_on(1)
        eventually(lambda name=name: len(cluster.workers(name)) == 2, 60)


def test_a_replica_that_is_killed_as_a_whole_loses_no_request(cluster, load):
    cluster.kill("api")
    load.go_on(2)
    cluster.restart("api")
    load.go_on(1)
