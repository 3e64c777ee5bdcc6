"""The cost of a history of a thousand series: bytes in Redis, CPU of the writer, and the time of a query.

The service that keeps history runs with a simulated clock: twelve nodes send a batch of each of ten metrics for a
hundred tenants each second, for simulated hours that end now.  Then the real server with one worker is asked for 600
points.

    python -m benchmarks --only metric_history [--quick]
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Iterable, Iterator
from typing import Any, Final

from benchmarks.control_plane.api_load import Ask, Clients
from benchmarks.harness.cpu import cpu_seconds
from benchmarks.harness.figures import Figure, at_most
from benchmarks.harness.scale import Scale, say

from sluice_actors.metric_history.service import MetricHistory
from sluice_actors.settings import OPTIONS, checked
from sluice_aio.base.layout import Layout
from sluice_aio.base.setup import Setup
from sluice_aio.cluster.cluster import Cluster
from sluice_core.errors import PeerError
from sluice_core.messages.nodes import MetricBatch
from sluice_core.store.store import Store
from sluice_metric_history.resolutions import SERIES_BYTES

METRICS: Final = (
    "GETS_SEC",
    "PUTS_SEC",
    "GET_BW",
    "PUT_BW",
    "THROUGHPUT",
    "ACTIVE_REQUESTS",
    "VOLUME_READ_BW",
    "VOLUME_WRITE_BW",
    "VOLUME_READ_IOPS",
    "VOLUME_WRITE_IOPS",
)
TENANTS: Final = [f"AUTH_{number:032x}" for number in range(100)]
NODES: Final = 12
#: Seconds after its end at which batches of a second arrive, and at which its row is due.
_CAME, _DUE = 0.1, 0.7
_POINTS: Final = 600
_MB: Final = 1e6
_LIMITS: Final = {"megabytes": 200.0, "core": 5.0, "query": 50.0}


class _Owner:
    """Owns every name."""

    acting = True

    def owns(self, name: str) -> bool:
        return True

    def owns_slot(self, slot: str) -> bool:
        return True

    def fence(self, names: Iterable[str]) -> dict[str, str]:
        return {}

    def refused(self, slot: str) -> None:
        """No other host claims a name."""


def measure(scale: Scale) -> list[Figure]:
    """Writing, then reading."""
    layout = Layout.free(scale.folder / "history")
    with Cluster(layout, {"redis", "api"}, setup=Setup(parts=frozenset(), api_options={"workers": "1"})) as cluster:
        store = Store(cluster.redis_url)
        try:
            before = _memory(store)
            seconds = scale.pick(2 * 3600, 180)
            say(f"metric_history: keeping {len(METRICS) * len(TENANTS)} series for {seconds} simulated seconds")
            redis_pid = cluster.process("redis").pid
            history = _Simulated(cluster.redis_url, seconds)
            redis_cpu = cpu_seconds([redis_pid])
            asyncio.run(history.run())
            redis_cpu = (cpu_seconds([redis_pid]) - redis_cpu) / seconds
            taken = _memory(store) - before
        finally:
            store.close()
        written = list(_written(history, redis_cpu, taken, seconds))
        pids = [one.pid for one in cluster.workers("api")]
        clients = Clients(layout.ports["api"], cluster.token, {"api": pids, "redis": [redis_pid]})
        return [*written, *_read(clients, scale)]


class _Simulated:
    """The service with a simulated clock that ends now."""

    def __init__(self, url: str, seconds: int) -> None:
        self.begin = int(time.time()) - seconds
        self.seconds = seconds
        self.now = self.begin - 0.5
        self.cpu = 0.0
        self.report: dict[str, Any] = {}
        values = {option.name: option.default for option in OPTIONS} | {"redis_url": url, "host": "bench"}
        self.service = MetricHistory(checked(values, "bench"), _Owner(), "history", lambda: self.now)

    async def run(self) -> None:
        """Keep history; ``cpu`` is the processor time of this thread in the service."""
        await self.service.enter()
        source = random.Random(1)
        for second in range(self.begin, self.begin + self.seconds):
            batches = [self._batch(metric, node, second, source) for metric in METRICS for node in range(NODES)]
            began = time.thread_time()
            self.now = second + 1 + _CAME
            for batch in batches:
                self.service.receive("", batch)
            self.now = second + 1 + _DUE
            await self.service.write_due()
            self.cpu += time.thread_time() - began
        self.report = self.service.report()
        await self.service.close()

    def _batch(self, metric: str, node: int, second: int, source: random.Random) -> bytes:
        load = source.random()
        values = {name: load * number for number, name in enumerate(TENANTS, 1)}
        return MetricBatch(f"n{node}", metric, second, second, {"tenant": values}).encode()


def _memory(store: Store) -> int:
    found: dict[str, Any] = store.client.info("memory")  # type: ignore[assignment]
    return int(found["used_memory"])


def _written(history: _Simulated, redis_cpu: float, taken: int, seconds: int) -> Iterator[Figure]:
    report = history.report
    series = report["series"]
    if report["dropped"] or series < len(METRICS) * len(TENANTS):
        raise PeerError(f"{report['dropped']} rows were dropped, {series} series kept")
    per_thousand = taken / series * 1000 / _MB
    beside = f"{taken / series:.0f} bytes each, {SERIES_BYTES} are reckoned; {series} series, {seconds} s"
    what = "Redis' memory for 1,000 series, all resolutions"
    yield at_most("history memory", what, per_thousand, _LIMITS["megabytes"], "MB", beside, digits=1)
    core = history.cpu / seconds * 100
    what = f"CPU of the writer for {series} series of {NODES} nodes, decoding of batches included"
    beside = f"Redis {redis_cpu * 100:.2f} % of a core"
    yield at_most("history cpu", what, core, _LIMITS["core"], "% of a core", beside, digits=2)


def _read(clients: Clients, scale: Scale) -> Iterator[Figure]:
    for step in (1, 10, 60):

        def ask(number: int, step: int = step) -> Ask:
            target = TENANTS[number * 37 % len(TENANTS)]
            path = f"/metrics/{METRICS[number % len(METRICS)]}/history?target={target}"
            return Ask(f"{path}&from=-{step * _POINTS}&step={step}", mark=b"],[", marks=_POINTS - 1)

        clients.run(ask, 20, 1)
        taken = clients.run(ask, scale.pick(400, 20), 1)
        beside = f"p50 {taken.latency_ms(0.5):.1f} ms; CPU {taken.cpu_ms('api'):.1f} ms of the API"
        what = f"a query of {_POINTS} points of {step} s, one worker, p95"
        yield at_most(f"history query {step} s", what, taken.latency_ms(0.95), _LIMITS["query"], "ms", beside, digits=1)
