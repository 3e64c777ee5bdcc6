"""From "the API answered 201" to "all agents have applied and acknowledged it".

Real Redis, the real API under gunicorn, and 8 processes with 15 real agents each, every agent with its own
snapshot of 1,000 assignments.  Changes come one at a time: the next when all have acknowledged the last.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import redis
from benchmarks.harness.figures import Figure, at_most
from benchmarks.harness.pairs import quantile
from benchmarks.harness.population import strangers
from benchmarks.harness.scale import Scale, say

from sluice_aio.base.layout import Layout
from sluice_aio.cluster.cluster import Cluster
from sluice_client import Client
from sluice_core.errors import PeerError
from sluice_core.store.keys import Keys
from sluice_core.store.records import Draft, Gap
from sluice_core.store.store import Store

PROCESSES: Final = 8
AGENTS: Final = 15
ASSIGNMENTS: Final = 1000
P90_MS, WORST_MS = 40.0, 100.0
_PATIENCE: Final = 30.0
#: Changes that warm up the API's workers.
_WARM_UP: Final = 20


def measure(scale: Scale) -> list[Figure]:
    """One policy after the other."""
    folder = scale.folder / "rollout"
    with contextlib.ExitStack() as stack:
        cluster = stack.enter_context(Cluster(Layout.free(folder), {"redis", "api"}))
        store = Store(cluster.redis_url)
        stack.callback(store.close)
        store.commit(Draft("benchmark", puts=tuple(strangers(ASSIGNMENTS))))
        say(f"rollout: starting {PROCESSES} processes with {AGENTS} agents each")
        acks = stack.enter_context(Acknowledgements(cluster.redis_url, PROCESSES * AGENTS))
        for number in range(PROCESSES):
            stack.enter_context(_agents(cluster, folder, number))
        acks.wait(store.head().epoch, _PATIENCE)
        for one in store.nodes():
            if one.assignments != ASSIGNMENTS:
                raise PeerError(f"agent `{one.node}` has {one.assignments} assignments, expected {ASSIGNMENTS}")
        client = stack.enter_context(Client(cluster.api_url, cluster.token))
        moments = _changes(client, store, acks, scale.pick(1000, 40))
    return _figures(moments)


@dataclass(frozen=True, slots=True)
class Moments:
    """Unix times of one change: POST sent, committed to Redis, answered with 201, acknowledged by all."""

    asked: float
    committed: float
    answered: float
    done: float


def _changes(client: Client, store: Store, acks: Acknowledgements, count: int) -> list[Moments]:
    """One change after the other; Redis' own record has the time of each commit."""
    seen = []
    before = epoch = store.head().epoch
    for number in range(count + _WARM_UP):
        if number % 200 == 0:
            say(f"rollout: change {number}")
        asked = time.time()
        client.create_policy(f"FOR CONTAINER AUTH_rollout/c{number} DO SET compression WITH engine=zstd")
        answered = time.time()
        epoch += 1
        seen.append((asked, answered, acks.wait(epoch, _PATIENCE)))
    found = store.changes_after(before, 0, count + 100)
    if isinstance(found, Gap) or len(found) != len(seen):
        raise PeerError(f"the change stream does not have exactly the {len(seen)} changes after epoch {before}")
    moments = [Moments(asked, change.at, *rest) for change, (asked, *rest) in zip(found, seen, strict=True)]
    return moments[_WARM_UP:]


def _figures(moments: list[Moments]) -> list[Figure]:
    times = [max(0.0, one.done - one.answered) * 1e3 for one in moments]
    commits = [(one.done - one.committed) * 1e3 for one in moments]
    whole = [(one.done - one.asked) * 1e3 for one in moments]
    what = f"to applied and acknowledged by {PROCESSES * AGENTS} agents, {len(times)} changes"
    above = sum(one > WORST_MS for one in times)
    return [
        at_most(
            "rollout p90",
            f"REST 201 {what}: nine in ten",
            quantile(times, 0.9),
            P90_MS,
            "ms",
            f"p50 {quantile(times, 0.5):.1f}, p99 {quantile(times, 0.99):.1f} ms",
            digits=1,
            times_ms=times,
        ),
        at_most("rollout worst", f"REST 201 {what}: worst", max(times), WORST_MS, "ms", f"{above} above", digits=1),
        _reported("rollout from commit", f"committed in Redis {what}: nine in ten", commits),
        _reported("rollout from POST", f"POST sent {what}: nine in ten", whole),
    ]


def _reported(name: str, what: str, times: list[float]) -> Figure:
    """The nodes in the answer, beside the figure: agents may have acknowledged before the API has answered."""
    p90 = quantile(times, 0.9)
    beside = f"p50 {quantile(times, 0.5):.1f}, p99 {quantile(times, 0.99):.1f}, worst {max(times):.1f} ms"
    return Figure(name, what, p90, f"{p90:.1f} ms", beside=beside, details={"times_ms": times})


@contextlib.contextmanager
def _agents(cluster: Cluster, folder: Path, number: int) -> Iterator[None]:
    """A process with its part of the agents."""
    command = [
        sys.executable,
        "-m",
        "benchmarks.control_plane.agents",
        cluster.redis_url,
        str(folder / "agents"),
        str(number),
    ]
    with open(folder / f"agents-{number}.log", "wb") as log:
        process = subprocess.Popen(
            [*command, str(AGENTS)], stdout=log, stderr=log, cwd=Path(__file__).parents[2], start_new_session=True
        )
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


class Acknowledgements:
    """Listens to the channel on which agents acknowledge, and records the time of the last one."""

    def __init__(self, url: str, agents: int) -> None:
        self._agents = agents
        self._client = redis.Redis.from_url(url, protocol=2)
        self._pubsub = self._client.pubsub(ignore_subscribe_messages=True)  # type: ignore[no-untyped-call]
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._changed = threading.Condition()
        self._epochs: dict[bytes, int] = {}
        self._complete: dict[int, float] = {}
        self._reached = 0  # the epoch that all agents have acknowledged
        self._stopped = False

    def __enter__(self) -> Acknowledgements:
        self._pubsub.subscribe(Keys().acks)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped = True
        self._thread.join(5)
        self._pubsub.close()
        self._client.close()

    def wait(self, epoch: int, limit: float) -> float:
        """Return the unix time at which the last agent acknowledged ``epoch`` or a later one.

        :raises PeerError: if that takes longer than ``limit`` seconds
        """
        with self._changed:
            if not self._changed.wait_for(lambda: epoch in self._complete, limit):
                have = sum(found >= epoch for found in self._epochs.values())
                raise PeerError(f"epoch {epoch} acknowledged by {have} of {self._agents} agents after {limit:g} s")
            return self._complete.pop(epoch)

    def _listen(self) -> None:
        while not self._stopped:
            message = self._pubsub.get_message(timeout=0.5)
            if message is not None:
                self._take(message["data"], time.time())

    def _take(self, said: bytes, now: float) -> None:
        node, _, epoch = said.rpartition(b" ")
        self._epochs[node] = int(epoch)
        if len(self._epochs) < self._agents:
            return
        slowest = min(self._epochs.values())
        if slowest > self._reached:
            with self._changed:
                self._complete.update(dict.fromkeys(range(self._reached + 1, slowest + 1), now))
                self._reached = slowest
                self._changed.notify_all()
