"""The API's time for reading and creating policies: one gunicorn worker, 10,000 stored policies.

The real server with a real Redis; clients on kept connections, one and four at a time.  Reading comes first, with
exactly the 10,000; each creation adds one.

    python -m benchmarks --only api [--quick]
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Final

from benchmarks.control_plane.api_load import Ask, Asks, Clients, Taken
from benchmarks.control_plane.api_population import NODES, OF_EACH_TENANT, populate, sentence, tenant
from benchmarks.harness.figures import Figure
from benchmarks.harness.scale import Scale, say

from sluice_aio.base.layout import Layout
from sluice_aio.base.setup import Setup
from sluice_aio.cluster.cluster import Cluster
from sluice_core.errors import PeerError
from sluice_core.messages.policies import Policy
from sluice_core.store.store import Store

POLICIES: Final = 10_000
PAGE: Final = 100
CONCURRENCY: Final = (1, 4)
WARM_UP: Final = 30
#: Step through the policies: visits each of them once, far from the one before.
_STRIDE: Final = 6007


def measure(scale: Scale) -> list[Figure]:
    """Reading, then creating."""
    layout = Layout.free(scale.folder / "api")
    with Cluster(layout, {"redis", "api"}, setup=Setup(parts=frozenset(), api_options={"workers": "1"})) as cluster:
        workers = cluster.workers("api")
        if len(workers) != 1:
            raise PeerError(f"the API has {len(workers)} workers, expected 1")
        count = scale.pick(POLICIES, 500)
        say(f"api: writing {count} policies")
        store = Store(cluster.redis_url)
        try:
            policies = populate(store, count)
        finally:
            store.close()
        groups = {
            "api": [cluster.process("api").pid, *(one.pid for one in workers)],
            "redis": [cluster.process("redis").pid],
        }
        clients = Clients(layout.ports["api"], cluster.token, groups)
        return list(_figures(clients, policies, scale))


def _figures(clients: Clients, policies: Sequence[Policy], scale: Scale) -> Iterator[Figure]:
    repeat = {"show": 1000, "page": 200, "newest": 200, "text": 200, "tenant": 400, "state": 200, "rare state": 200}
    repeat |= {"overview": 200, "create": 500}
    for name, (what, asks) in questions(policies).items():
        clients.run(asks, WARM_UP, 1)
        for concurrency in CONCURRENCY:
            say(f"api: {name}, {concurrency} at a time")
            taken = clients.run(asks, scale.pick(repeat[name], 20), concurrency)
            yield figure(name, f"{what}, {len(policies)} policies present", concurrency, taken)


def questions(policies: Sequence[Policy]) -> dict[str, tuple[str, Asks]]:
    """Name → description, and its requests."""
    count = len(policies)
    active = sum((one.dynamic and number % 4 == 0) or not one.dynamic for number, one in enumerate(policies))

    def show(number: int) -> Ask:
        return Ask(f"/policies/{policies[number * _STRIDE % count].id}")

    def page(number: int) -> Ask:
        before = policies[number * _STRIDE % (count - PAGE)]
        return Ask(f"/policies?limit={PAGE}&marker={before.created}-{before.id}", marks=PAGE)

    def of_tenant(number: int) -> Ask:
        return Ask(f"/policies?limit={PAGE}&tenant={tenant(number * _STRIDE % count)}", marks=OF_EACH_TENANT)

    def of_state(number: int) -> Ask:
        return Ask(f"/policies?limit={PAGE}&state=active", marks=min(PAGE, active))

    def newest(number: int) -> Ask:
        return Ask(f"/policies?limit={PAGE}&order=newest", marks=PAGE)

    def with_text(number: int) -> Ask:
        return Ask(f"/policies?limit={PAGE}&order=newest&text=puts_sec", marks=min(PAGE, count // 2))

    def of_rare_state(number: int) -> Ask:
        return Ask(f"/policies?limit={PAGE}&state=failed", mark=b'"total":0', marks=1)

    def overview(number: int) -> Ask:
        return Ask("/overview", mark=b'"total":%d' % count)

    def create(number: int) -> Ask:
        text = sentence(number, f"AUTH_new{number // OF_EACH_TENANT:029x}")
        return Ask("/policies", json.dumps({"policy": text}).encode(), 201)

    return {
        "show": ("show one policy", show),
        "page": (f"a page of {PAGE} anywhere in the list", page),
        "newest": (f"the newest {PAGE} policies", newest),
        "text": (f"the newest {PAGE} of the policies with a text", with_text),
        "tenant": (f"list the {OF_EACH_TENANT} policies of one tenant", of_tenant),
        "state": (f"the first {PAGE} policies in one state", of_state),
        "rare state": ("the policies in a state in which there are none", of_rare_state),
        "overview": ("the counts of everything", overview),
        "create": ("create a policy, static and dynamic in turn", create),
    }


def figure(name: str, what: str, concurrency: int, taken: Taken) -> Figure:
    """A rate; there is no target, and the CPU beside it allows a comparison with a quieter machine."""
    beside = (
        f"per request CPU {taken.cpu_ms('api'):.2f} ms of the API, {taken.cpu_ms('redis'):.2f} ms of Redis;"
        f" latency p50 {taken.latency_ms(0.5):.1f}, p95 {taken.latency_ms(0.95):.1f},"
        f" p99 {taken.latency_ms(0.99):.1f} ms"
    )
    return Figure(
        f"api {name} c{concurrency}",
        f"{what}, one worker, {NODES} nodes, {concurrency} at a time: requests/s",
        taken.rate,
        f"{taken.rate:.0f} /s",
        beside=beside,
        details={"latencies": taken.latencies, "cpu": taken.cpu, "seconds": taken.seconds},
    )
