"""The host that divides pools among volumes, and its messages, on a bus without a broker and a real Redis."""

import asyncio

import pytest
from tests.support.actors.host import run_scenario, settings, wait_until
from tests.support.actors.ownership import SingleHost

from sluice_actors.policies.group_index import GroupIndex
from sluice_actors.volumes.volume_floors import VolumeFloors
from sluice_core.connections.exchanges import metric_routing_key, volume_shares_routing_key
from sluice_core.describe import BANDWIDTH, PROXY
from sluice_core.messages.bandwidth import Shares
from sluice_core.messages.events import FLOOR_SHORT
from sluice_core.messages.nodes import MetricBatch
from sluice_core.messages.policies import NAME, VOLUME, Assignment, Change, Target
from sluice_core.store.records import Draft
from sluice_core.store.store import AsyncStore, cancel_tasks
from sluice_core.testing import FakeBus
from sluice_volumes import operations
from sluice_volumes.messages import PoolCalibration, VolumeRecord
from sluice_volumes.metrics import VOLUME_WRITE_BW

MB = 1e6
#: Volume → its pool.
POOLS = {"a": "n@nbd#fast", "b": "n@nbd#slow"}
NODE = "n1"


class Wire(FakeBus):
    """Publisher and consumer of the host."""

    def __init__(self):
        super().__init__()
        self.connected = asyncio.Event()
        self.connected.set()

    def start(self):
        """Connects to nothing."""

    async def close(self):
        """Closes nothing."""

    def heard(self):
        """The messages to the machine."""
        key = volume_shares_routing_key(NODE)
        return [Shares.decode(body) for to, body in self.sent if to == key]


class World:
    """One host whose seconds pass at once, and a machine with a volume in each pool."""

    def __init__(self, redis_url):
        self.store = AsyncStore(redis_url, "floors")
        self.wire, self.events, self.tasks = Wire(), [], []
        self.seconds = 1000
        given = settings(redis_url, "floors")
        self.host = VolumeFloors(given, self.store, SingleHost(), GroupIndex(), self.clock, self.log)
        self.host._publisher = self.host._consumer = self.wire

    def clock(self):
        """A time just before a round, which begins 0.3 s after a second."""
        self.seconds += 1
        return self.seconds + 0.2999

    def log(self, kind, text, source, subject):
        self.events.append((kind, subject))

    async def begin(self, *calibrated):
        """Set floors in pools of which ``calibrated`` are calibrated; the machine writes."""
        floor = Assignment(
            "p.0", "p", BANDWIDTH, "set", "bandwidth", Target(VOLUME, NAME, "AUTH_p/a"), params={"put_bw": 3 * MB},
            place=PROXY,
        )  # fmt: skip
        await self.store.commit(Draft("test", puts=(floor,)))
        for volume, pool in POOLS.items():
            record = VolumeRecord(volume, "p", "AUTH_p", pool=pool)
            await self.store.run(operations.RECORDS.create(self.store.keys, record))
        for pool in calibrated:
            measured = PoolCalibration(pool, 10 * MB, 10 * MB, 1e3, 1e3, 0.0)
            await self.store.run(operations.CALIBRATIONS.write(self.store.keys, measured))
        moved = {VOLUME: {f"AUTH_p/{volume}": 5 * MB for volume in POOLS}}
        batch = MetricBatch(NODE, VOLUME_WRITE_BW, 1000, 1, moved)
        self.host.receive(metric_routing_key(VOLUME_WRITE_BW, NODE), batch.encode())
        self.host.start(lambda work: self.tasks.append(asyncio.get_running_loop().create_task(work)))

    async def until(self, condition):
        async def holds():
            return condition()

        await wait_until(holds)

    async def close(self):
        await cancel_tasks(self.tasks, again=0.2)
        await self.host.close()
        await self.store.client.flushdb()
        await self.store.close()


@pytest.fixture
def story(redis_server):
    """Runs a scenario with a world."""

    def run(scenario):
        async def play():
            world = World(redis_server.url)
            try:
                await scenario(world)
            finally:
                await world.close()

        run_scenario(play())

    return run


def test_a_machine_that_missed_that_its_shares_ended_is_told_again(story):
    async def scenario(world):
        await world.begin("n@nbd#fast")
        await world.until(lambda: any(one.rows for one in world.wire.heard()))
        world.host.apply(Change(2, "h", 1.0, drops=("p.0",)))
        told = len(world.wire.sent)
        await world.until(lambda: len(world.wire.sent) > told)
        world.wire.sent.clear()  # the first such message is lost
        await world.until(lambda: world.wire.sent)
        (again,) = world.wire.heard()
        assert again.rows == ()

    story(scenario)


def test_a_pool_that_was_never_calibrated_is_named_when_a_volume_in_it_has_a_floor(story):
    async def scenario(world):
        await world.begin()
        await world.until(lambda: world.events)
        named = world.seconds
        await world.until(lambda: world.seconds > named + 10)  # further rounds were made
        assert world.events == [(FLOOR_SHORT, "n@nbd#fast")]

    story(scenario)
