"""Pools of a Cinder in memory, stored in a real Redis."""

import asyncio

import pytest
from tests.support.actors.ownership import SingleHost

from sluice_actors.runtime.services import Service
from sluice_actors.volumes.discovery import PoolDiscovery, discover, pool_batches
from sluice_core.errors import Forbidden, PeerError
from sluice_core.store.store import AsyncStore
from sluice_volumes.messages import Pool
from sluice_volumes.operations import POOLS
from sluice_volumes.testing.fake_cinder import FakeCinder

FAST = Pool("h@nbd#fast", 100.0, 90.0, {"fabric": "nbd"})
SLOW = Pool("h@nbd#slow", 100.0, 80.0, {"fabric": "nbd"})


@pytest.fixture
def story(redis_server):
    """Runs a scenario with a store."""

    def run(scenario):
        async def play():
            store = AsyncStore(redis_server.url, "discovery")
            try:
                await scenario(store)
            finally:
                await store.client.flushdb()
                await store.close()

        asyncio.run(asyncio.wait_for(play(), 20))

    return run


def test_pools_come_fill_up_and_go(story):
    async def scenario(store):
        cinder = FakeCinder(FAST, SLOW)
        await discover(cinder, store, 7.0)
        known = await store.run(POOLS.read_all(store.keys))
        assert {name: (one.free, one.seen) for name, one in known.items()} == {
            "h@nbd#fast": (90.0, 7.0),
            "h@nbd#slow": (80.0, 7.0),
        }
        cinder.state.pools = [Pool("h@nbd#fast", 100.0, 10.0)]
        await discover(cinder, store, 8.0)
        assert [(one.name, one.free) for one in (await store.run(POOLS.read_all(store.keys))).values()] == [
            ("h@nbd#fast", 10.0)
        ]
        cinder.state.pools = []
        await discover(cinder, store, 9.0)
        assert await store.run(POOLS.read_all(store.keys)) == {}

    story(scenario)


def test_free_and_used_space_are_metrics_of_pools_that_know_them():
    unknown = Pool("h@rbd#all", -1.0, -1.0)
    free, used = pool_batches([FAST, SLOW, unknown], 1013.0, 4)
    assert (free.metric, free.window, free.period, free.merge, free.seq) == ("POOL_FREE", 1005, 5.0, "lowest", 4)
    assert free.values == {"pool": {"h@nbd#fast": 0.9, "h@nbd#slow": 0.8}}
    assert used.values == {"pool": {"h@nbd#fast": 10.0, "h@nbd#slow": 20.0}}


@pytest.mark.parametrize("fault", [PeerError("away"), Forbidden("not an administrator")])
def test_a_cinder_that_shows_no_pools_leaves_those_that_are_known(story, fault):
    async def scenario(store):
        cinder = FakeCinder(FAST)
        await discover(cinder, store, 7.0)
        cinder.state.faults["reading the pools"] = fault
        with pytest.raises(PeerError):
            await discover(cinder, store, 8.0)
        assert (await store.run(POOLS.read_all(store.keys)))["h@nbd#fast"].seen == 7.0

    story(scenario)


def test_only_the_host_that_owns_the_pools_reads_them(story):
    async def scenario(store):
        idle = SingleHost()
        idle.owns = lambda name: False
        reading, other = FakeCinder(FAST), FakeCinder(FAST)
        services = [
            PoolDiscovery(reading, store, SingleHost(), lambda: 7.0, "amqp://127.0.0.1:1", interval=0.01),
            PoolDiscovery(other, store, idle, lambda: 7.0, "amqp://127.0.0.1:1", interval=0.01),
        ]
        tasks = []
        for service in services:
            assert isinstance(service, Service)
            service.start(lambda work: tasks.append(asyncio.ensure_future(work)))
        while len(reading.state.asked) < 3:
            await asyncio.sleep(0.01)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for service in services:
            await service.close()
        assert other.state.asked == []

    story(scenario)
