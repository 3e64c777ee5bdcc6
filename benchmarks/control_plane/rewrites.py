"""The rate at which stored objects are rewritten, beside plain clients that read and write the same bytes.

A cluster with one rewriter, three replicas, and objects of logs.  In turns, the objects are copied by one plain client
per core (GET and PUT of each through a proxy without Sluice), rewritten to what a compression policy says, copied
again, and rewritten to plain bytes.  Copies are of equal objects that no job touches: those that are compressed by
then would be read without their filter, as fewer bytes.  Rates are bytes of plain objects per second.  A job's time is
that from its start to its end as Redis has them, so how often it is looked at does not count.

    python -m benchmarks --only rewrites [--quick]
"""

from __future__ import annotations

import contextlib
import os
import statistics
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Final

from benchmarks.harness.corpus import log_corpus
from benchmarks.harness.figures import Figure
from benchmarks.harness.scale import Scale, say
from tests.support.cluster.rewrites import rewrite

from sluice_aio.base.layout import Layout
from sluice_aio.base.swift_http import SwiftHttp
from sluice_aio.cluster.cluster import Cluster
from sluice_aio.cluster.components import DEFAULT
from sluice_aio.conf.common import USERS
from sluice_client import Client
from sluice_core.errors import PeerError
from sluice_core.store.store import Store
from sluice_rewrites import operations
from sluice_rewrites.messages import PLAIN, POLICIES

#: The required part of the rate of plain clients.
LIMIT: Final = 0.8
SIZE: Final = 4_000_000
_USER: Final = "test:tester"
_TARGET: Final = "AUTH_test/stored"
_POLICY: Final = f"FOR CONTAINER {_TARGET} DO SET compression WITH engine=zstd ON PROXY"
_PATIENCE: Final = 600.0


def measure(scale: Scale) -> list[Figure]:
    """Rates of both goals beside plain clients."""
    count, rounds = scale.pick(48, 6), scale.pick(5, 1)
    layout = Layout.free(scale.folder / "rewrites")
    with Cluster(layout, DEFAULT | {"plain", "rewriter"}) as cluster, _tools(cluster) as (api, store):
        fill(cluster, count)
        ratios: dict[str, list[float]] = {POLICIES: [], PLAIN: []}
        rates: dict[str, list[float]] = {"copy": [], POLICIES: [], PLAIN: []}
        for number in range(rounds):
            for goal in (POLICIES, PLAIN):
                say(f"rewrites: round {number + 1} of {rounds}, copying, then rewriting to {goal}")
                copied = copy_rate(cluster, count)
                rewritten = rewrite_rate(api, store, goal, count)
                ratios[goal].append(rewritten / copied)
                rates["copy"].append(copied)
                rates[goal].append(rewritten)
    return [figure(goal, ratios[goal], rates[goal], rates["copy"], count) for goal in (POLICIES, PLAIN)]


@contextlib.contextmanager
def _tools(cluster: Cluster) -> Iterator[tuple[Client, Store]]:
    with (
        Client(cluster.api_url, cluster.token) as api,
        contextlib.closing(Store(cluster.redis_url)) as store,
    ):
        yield api, store


def fill(cluster: Cluster, count: int) -> None:
    """Store the objects, equal ones for the plain clients, and a container for copies."""
    client = SwiftHttp(cluster.plain_url).login(_USER, USERS[_USER][0])
    body = log_corpus(SIZE)
    objects = [f"{container}/{number}" for container in ("stored", "source") for number in range(count)]
    for path in ("stored", "source", "copied", *objects):
        answer = client.request("PUT", path, body if "/" in path else b"")
        if answer.status not in (201, 202):
            raise PeerError(f"PUT {path}: {answer.status}")
    client.close()


def copy_rate(cluster: Cluster, count: int) -> float:
    """Bytes per second of one client per core that reads objects and writes them to another container."""
    workers = os.cpu_count() or 1
    faults: list[str] = []

    def work(first: int) -> None:
        client = SwiftHttp(cluster.plain_url).login(_USER, USERS[_USER][0])
        for number in range(first, count, workers):
            got = client.request("GET", f"source/{number}")
            put = client.request("PUT", f"copied/{number}", got.body)
            if (got.status, len(got.body), put.status) != (200, SIZE, 201):
                faults.append(f"{got.status} with {len(got.body)} bytes, {put.status}")
        client.close()

    begin = time.monotonic()
    threads = [threading.Thread(target=work, args=(first,)) for first in range(workers)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    if faults:
        raise PeerError(f"plain clients got {faults[0]}")
    return count * SIZE / (time.monotonic() - begin)


def rewrite_rate(api: Client, store: Store, goal: str, count: int) -> float:
    """Bytes per second of one rewrite of all objects to ``goal``; the policies must match it before and after."""
    policy = api.create_policy(_POLICY, wait=20)["id"] if goal == POLICIES else ""
    job = rewrite(api, _TARGET, goal, _PATIENCE)
    if policy:
        api.delete_policy(policy, wait=20)
    if job["rewritten"] != count or job["failed"]:
        raise PeerError(f"{job['rewritten']} of {count} objects were rewritten: {job['failed']}")
    progress = store.run(operations.read_progress(store.keys, job["id"]))
    return count * SIZE / (progress.ended - progress.started)


def figure(goal: str, ratios: Sequence[float], rates: Sequence[float], copied: Sequence[float], count: int) -> Figure:
    """The row of one goal."""
    ratio = statistics.median(ratios)
    rewritten, plain = (f"{statistics.median(values) / 1e6:.1f} MB/s" for values in (rates, copied))
    beside = (
        f"{count} objects of {SIZE / 1e6:g} MB, {len(ratios)} rounds; rewritten {rewritten}, copied {plain}; "
        f"ratios {min(ratios):.2f} to {max(ratios):.2f}"
    )
    what = f"logs rewritten to {goal}: rate × one plain client per core that reads and writes them"
    return Figure(f"rewrite {goal}", what, ratio, f"{ratio:.2f} ×", f"≥ {LIMIT:g} ×", ratio >= LIMIT, beside)
