"""The service that keeps history, on a real Redis; the test sets the time."""

import asyncio

import pytest
from tests.support.actors.host import settings

from sluice_actors.metric_history.service import MetricHistory
from sluice_core.messages.bandwidth_report import BandwidthReport, IdleFlowReport
from sluice_core.messages.nodes import MetricBatch
from sluice_core.store.store import AsyncStore
from sluice_metric_history.operations import find_series, forget_series, read_directory, read_points
from sluice_metric_history.records import SeriesKey
from sluice_metric_history.resolutions import RESOLUTIONS

START = 1_200_000_000
PUTS = SeriesKey("PUTS_SEC", "tenant", "AUTH_a")


class World:
    """A service that keeps history from :data:`START` on, and the contents of Redis."""

    def __init__(self, url, prefix, megabytes=10):
        self.now = START - 0.5
        self.store = AsyncStore(url, prefix)
        given = settings(url, prefix, history_megabytes=megabytes)
        self.service = MetricHistory(given, self, "history", lambda: self.now)

    def owns(self, name):
        return True

    async def run(self, first, last, metric="PUTS_SEC", at=None, **batch):
        """Send a batch for each second; its rows are written at its end."""
        for second in range(first, last):
            self.now = second + 1.1
            values = batch or {"values": {"tenant": {"AUTH_a": 3.0}}}
            self.service.receive("", MetricBatch("n1", metric, second, second, **values).encode())
            if at:
                self.service.add_report(at(second), IdleFlowReport())
            self.now = second + 1.7
            await self.service.write_due()

    async def line(self, key, first, last, step=1):
        record = await self.store.run(find_series(self.store.keys, [key]))
        resolution = next(one for one in RESOLUTIONS if one.step == step)
        points = await self.store.run(read_points(self.store.keys, resolution, record.id, first, last))
        return [None if one is None else pytest.approx(one.mean, rel=1e-4) for one in points]

    async def close(self):
        await self.service.close()
        await self.store.close()


@pytest.fixture
def story(redis_server):
    """Runs a scenario with a world."""

    def run(scenario, **more):
        async def play():
            world = World(redis_server.url, "metric_history", **more)
            await world.store.client.flushdb()
            try:
                await world.service.enter()
                await scenario(world)
            finally:
                await world.store.client.config_set("maxmemory", 0)
                await world.close()

        asyncio.run(asyncio.wait_for(play(), 60))

    return run


def test_batches_of_nodes_become_points(story):
    async def scenario(world):
        await world.run(START, START + 32)
        assert await world.line(PUTS, START + 28, START + 33) == [3.0] * 4 + [None]
        assert await world.line(PUTS, START + 10, START + 30, step=10) == [3.0, 3.0]
        assert world.service.report() == {"keeping": True, "written": 23, "dropped": 0, "series": 2, "room": 58}

    story(scenario)


def test_bandwidth_of_the_same_second_is_beside_them(story):
    node = {"node": "n1", "side": "proxy", "method": "GET", "capacity": 9.0, "assigned": 0.0, "measured": 4.0}

    def report(second):
        return BandwidthReport(second + 1.1, "h1", 1, 1, nodes=(node,))

    async def scenario(world):
        await world.run(START, START + 22, at=report)
        capacity = SeriesKey("NODE_GET_BW_CAPACITY", "node", "n1/proxy")
        assert await world.line(capacity, START + 19, START + 21) == [9.0, 9.0]

    story(scenario)


def test_a_mean_whose_batch_is_empty_is_no_0(story):
    mean = {"values": {"tenant": {"AUTH_a": 4.0}}, "weights": {"tenant": {"AUTH_a": 2.0}}}

    async def scenario(world):
        await world.run(START, START + 21, "ERRORS", **mean)
        await world.run(START + 21, START + 24, "ERRORS", values={})
        key = SeriesKey("ERRORS", "tenant", "AUTH_a")
        assert await world.line(key, START + 19, START + 23) == [4.0, 4.0, None, None]

    story(scenario)


def test_a_redis_that_is_full_makes_a_gap_and_nothing_waits(story):
    async def scenario(world):
        await world.run(START, START + 20)
        await world.store.client.config_set("maxmemory", 1)
        await world.run(START + 20, START + 24)
        await world.store.client.config_set("maxmemory", 0)
        await world.run(START + 24, START + 28)
        assert await world.line(PUTS, START + 17, START + 27) == [3.0] * 3 + [None] * 4 + [3.0] * 3
        assert world.service.report()["dropped"] == 4

    story(scenario)


def test_what_somebody_forgot_is_written_no_more(story):
    async def scenario(world):
        await world.run(START, START + 20)
        there = await world.store.run(read_directory(world.store.keys))
        await world.store.run(forget_series(world.store.keys, [there[PUTS]]))
        await world.run(START + 20, START + 62, values={"tenant": {"AUTH_b": 1.0}})
        assert PUTS not in await world.store.run(read_directory(world.store.keys))
        await world.run(START + 62, START + 64, values={"tenant": {"AUTH_b": 1.0}})
        assert not await world.store.client.exists(world.store.keys.metric_points(1, there[PUTS].id))

    story(scenario)


def test_without_room_nothing_is_kept(redis_server):
    async def play():
        world = World(redis_server.url, "metric_history", megabytes=0)
        started = []
        world.service.start(started.append)
        assert (started, world.service.report()["keeping"]) == ([], False)
        await world.close()

    asyncio.run(play())
