"""The history of metrics while processes are killed: gaps without measurements, and the same series afterwards."""

import asyncio
import shutil
import tempfile
import time
from pathlib import Path

import pytest
from tests.support.actors.team import ScheduledNodes

from sluice_aio.base.layout import Layout
from sluice_aio.cluster.cluster import Cluster
from sluice_client import Client

#: A series appears with the next ranking, each ten seconds.
LIMIT = 60.0


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


def measured(api, begin=-120):
    """Time → value of the seconds that have one."""
    if not list(api.metric_series("PUTS_SEC", "AUTH_busy")):
        return {}
    points = api.metric_history("PUTS_SEC", "AUTH_busy", begin=str(begin), step=1)["points"]
    return {at: mean for at, mean, *_ in points if mean is not None}


async def publish_until(cluster, condition):
    """Two nodes report a busy tenant until ``condition`` holds."""
    nodes = ScheduledNodes(cluster.amqp_url, lambda window: {"AUTH_busy": 9.0})
    await nodes.start()
    try:
        end = time.monotonic() + LIMIT
        while not await asyncio.to_thread(condition):
            assert time.monotonic() < end
            await asyncio.sleep(0.2)
    finally:
        await nodes.close()


def publish(cluster, api, more):
    """Publish until ``more`` seconds than before were measured; return them."""
    before = len(measured(api))
    asyncio.run(publish_until(cluster, lambda: len(measured(api)) >= before + more))
    return measured(api)


def test_without_the_broker_there_is_a_gap_and_never_a_line(cluster, api):
    before = publish(cluster, api, 5)
    assert set(before.values()) == {9.0}
    cluster.kill("rabbit")
    killed = time.time()
    cluster.restart("rabbit")
    after = publish(cluster, api, 5)
    # the seconds in which the broker was down are missing, and those around them have the measured values
    assert set(after.values()) == {9.0}
    assert max(at for at in after if at < killed) + 2 < min(at for at in after if at > killed)


def test_a_host_that_begins_anew_goes_on_with_the_same_series(cluster, api):
    publish(cluster, api, 2)
    (series,) = api.metric_series("PUTS_SEC", "AUTH_busy")
    cluster.kill("actors")
    killed = time.time()
    cluster.restart("actors")
    after = publish(cluster, api, 3)
    assert min(after) < killed < max(after)
    assert list(api.metric_series("PUTS_SEC", "AUTH_busy")) == [series]
