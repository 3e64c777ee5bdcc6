"""While Redis or RabbitMQ is unreachable the API reports that, makes no partial change, and recovers."""

import asyncio
import http.client
import json
import shutil
import tempfile
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import redis
from tests.support.actors.team import ScheduledNodes
from tests.support.controller.described_calls import check_unavailable, example_calls

from sluice_aio.base.layout import Layout
from sluice_aio.cluster.cluster import Cluster
from sluice_client import Client

BUSY = "FOR TENANT AUTH_busy WHEN PUTS_SEC > 3 DO SET compression TRANSIENT"
#: These are about the API itself; the others use Swift or Cinder first, which are not here:
#: ``tests/functional/block/test_api_without_redis.py`` has a Cinder.
OTHERS = ("/health", "/schema", "/permissions", "/locality/", "/containers/", "/placements/", "/volumes")
#: Keys that other processes write: live hosts, states of actors, and transfers.
ALIVE = (
    b"sluice:hosts",
    b"sluice:owners",
    b"sluice:observed",
    b"sluice:watched",
    b"sluice:states",
    b"sluice:bandwidth",
    b"_tooz",
)
SOON = 30


@pytest.fixture(scope="module")
def cluster():
    folder = Path(tempfile.mkdtemp(prefix="sluice-"))
    try:
        with Cluster(Layout.free(folder), {"redis", "rabbit", "actors", "api"}) as running:
            yield running
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def api(cluster):
    with Client(cluster.api_url, cluster.token) as client:
        yield client


def ask(cluster, method, path, body=None, kind="application/json"):
    """Status, headers and body of a request without retries."""
    connection = http.client.HTTPConnection(urlsplit(cluster.api_url).netloc, timeout=60)
    try:
        headers = {"X-Auth-Token": cluster.token} | ({} if body is None else {"Content-Type": kind})
        connection.request(method, path, body=body, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()
    finally:
        connection.close()


def kept(cluster):
    """All that the API has written."""
    with redis.Redis.from_url(cluster.redis_url) as connection:
        keys = [key for key in connection.scan_iter(count=1000) if not key.startswith(ALIVE) and b":team" not in key]
        return {key: connection.dump(key) for key in keys}


def test_every_call_is_503_while_redis_is_away_and_nothing_is_half_done(cluster, api, eventually):
    made = api.create_policy("FOR TENANT AUTH_kept DO SET compression")
    before = kept(cluster)
    schema = json.loads(ask(cluster, "GET", "/schema")[2])
    cluster.kill("redis")
    try:
        refused_all(cluster, schema)
    finally:
        cluster.restart("redis")
    eventually(lambda: [one["id"] for one in api.policies()] == [made["id"]], SOON)
    assert kept(cluster) == before
    api.delete_policy(made["id"])


def refused_all(cluster, schema):
    calls = [one for one in example_calls(schema) if not one[1].startswith(OTHERS) and one[1] != "/metrics"]
    away = check_unavailable(lambda *call: ask(cluster, *call), calls)
    assert away == {"GET", "PUT", "POST", "DELETE"}
    for path in ("/health", "/schema", "/metrics", "/permissions"):
        status = ask(cluster, "GET", path)[0]
        assert status == (503 if path == "/health" else 200), path
    assert json.loads(ask(cluster, "GET", "/health")[2])["dependencies"]["redis"] == "degraded"


def test_a_policy_that_is_made_while_the_broker_is_away_sees_metrics_when_it_is_back(cluster, api, eventually):
    cluster.kill("rabbit")
    eventually(lambda: api.health()["dependencies"]["broker"] == "degraded", SOON)
    made = api.create_policy(BUSY)
    assert made["state"] == "waiting"
    eventually(lambda: report(cluster).get("actors") == 1, SOON)
    cluster.restart("rabbit")

    async def busy():
        nodes = ScheduledNodes(cluster.amqp_url, lambda window: {"AUTH_busy": 9.0})
        await nodes.start()
        try:
            end = time.monotonic() + 2 * SOON
            while (await asyncio.to_thread(api.policy, made["id"]))["state"] != "active":
                assert time.monotonic() < end
                await asyncio.sleep(0.1)
        finally:
            await nodes.close()

    asyncio.run(busy())
    eventually(lambda: api.health()["dependencies"]["broker"] == "ok", SOON)  # hosts report every few seconds
    api.delete_policy(made["id"])


def report(cluster):
    with redis.Redis.from_url(cluster.redis_url) as connection:
        return next((json.loads(raw) for raw in connection.hgetall("sluice:hosts").values()), {})
