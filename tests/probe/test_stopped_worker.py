"""A proxy worker that is stopped in the middle of its work delays no client of another worker.

The worker is stopped at many moments of a load that uses all shared state of a node's workers: the agent's credit,
the cached objects, the snapshot.  Requests over connections that another worker has accepted then take no longer than
at a Swift without Sluice, one of whose workers is stopped in the same way.  New connections wait in both cases: each
worker of Swift has a socket of its own, and the kernel chooses among them.
"""

from __future__ import annotations

import contextlib
import http.client
import os
import random
import signal
import threading
import time
from pathlib import Path

from sluice_aio.base.swift_http import SwiftHttp
from sluice_core.errors import PeerError

BODY = b"".join(b"%d: a line that compresses\n" % number for number in range(20_000))
#: Moments at which a worker is stopped, and seconds for which it stays stopped.
ROUNDS = 12
STOPPED = 0.6
CLIENTS = {"proxy": ("test:tester", "testing"), "plain": ("test2:tester2", "testing2")}
METHODS = ("PUT", "GET", "GET", "HEAD", "DELETE")
SENTENCES = (
    "FOR CONTAINER AUTH_test/shared DO SET caching WITH admit=1, SET compression ON PROXY, SET encryption",
    "FOR TENANT AUTH_test DO SET bandwidth WITH get_bw=1MBps put_bw=1MBps",
)


class Load:
    """Threads that write, read and delete a few objects, each request over a connection of its own."""

    def __init__(self, url, login, threads=4):
        self._new_client = lambda: SwiftHttp(url).login(*login)
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(number,)) for number in range(threads)]
        self.count = 0

    def _run(self, seed):
        rng, client = random.Random(seed), self._new_client()
        while not self._over.is_set():
            method = rng.choice(METHODS)
            with contextlib.suppress(PeerError):
                client.request(method, f"shared/o{rng.randrange(4)}", BODY if method == "PUT" else b"")
            client.close()
            self.count += 1

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        for thread in self._threads:
            thread.join()


class Connection:
    """A kept connection, and the worker that has accepted it."""

    def __init__(self, swift):
        self._swift = swift
        self._connection = http.client.HTTPConnection(swift.address, timeout=30)
        self.ask("HEAD")

    def ask(self, method, name="", body=b""):
        path = f"{self._swift.account}/shared" + (f"/{name}" if name else "")
        self._connection.request(method, path, body or None, {"X-Auth-Token": self._swift.token})
        with self._connection.getresponse() as response:
            response.read()
            assert response.status < 500, (method, response.status)

    def is_of(self, worker):
        """Whether ``worker`` has accepted it."""
        ours, theirs = (
            address[1] for address in (self._connection.sock.getsockname(), self._connection.sock.getpeername())
        )
        rows = (line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:])
        inode = next(row[9] for row in rows if [int(row[at].rpartition(":")[2], 16) for at in (1, 2)] == [theirs, ours])
        return f"socket:[{inode}]" in map(os.readlink, Path(f"/proc/{worker.pid}/fd").iterdir())

    def close(self):
        self._connection.close()


@contextlib.contextmanager
def stopped(worker):
    assert worker.signal(signal.SIGSTOP)
    try:
        yield
    finally:
        worker.signal(signal.SIGCONT)


def connection_of(swift, worker):
    """A connection that ``worker`` has accepted: new ones are opened until it has one."""
    for _ in range(64):
        found = Connection(swift)
        with contextlib.suppress(OSError, StopIteration):  # the worker closed a file meanwhile
            if found.is_of(worker):
                return found
        found.close()
    raise AssertionError(f"worker {worker.pid} accepts no connection")


def longest_wait(url, login, workers, eventually):
    """Seconds of the slowest request to a worker while the other one is stopped."""
    swift = SwiftHttp(url).login(*login)
    assert swift.request("PUT", "shared").status in (201, 202)
    rng, slowest = random.Random(4), 0.0
    with Load(url, login) as load:
        for number in range(ROUNDS):
            seen = load.count
            eventually(lambda seen=seen: load.count > seen + 4, 30)
            alive, other = workers[number % 2], workers[1 - number % 2]
            connection = connection_of(swift, alive)
            with stopped(other):
                end = time.monotonic() + STOPPED
                while (began := time.monotonic()) < end:
                    method = rng.choice(METHODS)
                    connection.ask(method, f"o{rng.randrange(4)}", BODY if method == "PUT" else b"")
                    slowest = max(slowest, time.monotonic() - began)
            connection.close()
    swift.close()
    return slowest


def test_a_stopped_worker_keeps_no_request_of_another_waiting(cluster, policies, swift, eventually):
    assert swift.request("PUT", "shared").status in (201, 202)
    for sentence in SENTENCES:
        policies(sentence)
    waits = {}
    for name, login in CLIENTS.items():
        workers = cluster.workers(name)
        assert len(workers) == 2, f"`{name}` has the workers {workers}, expected two"
        waits[name] = longest_wait(cluster.layout.url(name), login, workers, eventually)
    print(f"slowest request beside a stopped worker: {waits}")
    assert waits["proxy"] < 2 * waits["plain"] + 1.0
