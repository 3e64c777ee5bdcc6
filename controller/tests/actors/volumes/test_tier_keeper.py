"""Volumes are retyped to the tiers of their policies, with a Cinder in memory and a real Redis."""

import asyncio

import pytest
from tests.support.actors.ownership import SingleHost

from sluice_actors.policies.group_index import GroupIndex
from sluice_actors.volumes.tier_keeper import AGAIN, TierKeeper
from sluice_core.describe import TIER
from sluice_core.errors import CallerError
from sluice_core.messages.events import VOLUME_FAILED
from sluice_core.messages.policies import NAME, TENANT, VOLUME, Assignment, Change, Target
from sluice_core.store.store import AsyncStore
from sluice_volumes import operations
from sluice_volumes.messages import RETYPE, Pool, Tier, VolumeRecord
from sluice_volumes.testing.fake_cinder import FakeCinder

MB = 1e6
POOL = Pool("n@nbd#fast", 1e12, 1e11, {"bandwidth": "400", "resiliency": "none", "fabric": "nbd"})
TIERS = (
    Tier("bulk", "t1", bandwidth=10 * MB, cost=1.0),
    Tier("good", "t2", bandwidth=100 * MB, cost=3.0),
    Tier("dear", "t3", bandwidth=200 * MB, cost=9.0),
    Tier("safe", "t4", resiliency="2", cost=2.0),
)


def says(level, path, policy="p", created=1, **params):
    target = Target(level, NAME, path)
    return Assignment(f"{policy}.0", policy, TIER, "set", "tier", target, params=params, created=created)


class World:
    """One volume of project ``p1``, and the service."""

    def __init__(self, store):
        self.store = store
        self.now = 100.0
        self.events = []
        self.cinder = FakeCinder(POOL)
        for one in TIERS:
            self.cinder.create_type(one.name, {})
        self.volume = self.cinder.as_caller("t", "p1").create_volume(1, "data", "bulk", {}).id
        self.service = TierKeeper(self.cinder, store, SingleHost(), GroupIndex(), lambda: self.now, self.log)

    def log(self, kind, text, source="", **more):
        self.events.append((kind, text, more["policy"]))

    async def begin(self):
        keys = self.store.keys
        await self.store.run(operations.write_pools(keys, [POOL]))
        for one in TIERS:
            await self.store.run(operations.TIERS.create(keys, one))
        record = VolumeRecord(self.volume, "p1", "AUTH_p1", "data", "bulk")
        await self.store.run(operations.RECORDS.create(keys, record))
        await self.service.retype_all()

    async def say(self, *puts):
        self.service.apply(Change(1, "h", 1.0, puts=puts))
        await self.service.retype_all()

    def type(self):
        return self.cinder.volume(self.volume).type

    async def retypes(self):
        found = await self.store.run(operations.JOBS.read_all(self.store.keys))
        return [(one.data["tier"], one.state, one.by) for one in found.values() if one.what == RETYPE]


@pytest.fixture
def story(redis_server):
    """Runs a scenario with a world."""

    def run(scenario):
        async def play():
            store = AsyncStore(redis_server.url, "tiers")
            try:
                world = World(store)
                await world.begin()
                await scenario(world)
            finally:
                await store.client.flushdb()
                await store.close()

        asyncio.run(asyncio.wait_for(play(), 20))

    return run


def test_the_cheapest_tier_that_promises_what_is_demanded(story):
    async def scenario(world):
        await world.say(says(TENANT, "AUTH_p1", bandwidth=50 * MB))
        assert world.type() == "good"
        assert await world.retypes() == [("good", "under_way", "policy/p")]
        await world.service.retype_all()
        assert len(await world.retypes()) == 1

    story(scenario)


def test_what_is_said_of_the_volume_itself_comes_before_its_tenant(story):
    async def scenario(world):
        tenant = says(TENANT, "AUTH_p1", "q", created=9, bandwidth=50 * MB)
        await world.say(tenant, says(VOLUME, f"AUTH_p1/{world.volume}", name="dear"))
        assert world.type() == "dear"

    story(scenario)


def test_others_policies_and_the_tier_that_it_has_change_nothing(story):
    async def scenario(world):
        await world.say(says(TENANT, "AUTH_p2", bandwidth=50 * MB), says(VOLUME, "AUTH_p1/other", "q", name="dear"))
        await world.say(says(TENANT, "AUTH_p1", "r", name="bulk"))
        assert (world.type(), await world.retypes(), world.events) == ("bulk", [], [])

    story(scenario)


def test_a_volume_that_was_retyped_in_cinder_itself_comes_back(story):
    async def scenario(world):
        world.cinder.retype(world.volume, "dear")
        await world.say(says(TENANT, "AUTH_p1", name="bulk"))
        assert world.type() == "bulk"
        assert [tier for tier, _, _ in await world.retypes()] == ["bulk"]

    story(scenario)


@pytest.mark.parametrize(
    ("params", "reason"),
    [
        ({"name": "none-such"}, "there is no tier `none-such`"),
        ({"name": "safe"}, "its pool `n@nbd#fast` does not meet `resiliency` of tier `safe`"),
        ({"bandwidth": 900 * MB}, "its pool `n@nbd#fast` does not meet `bandwidth`"),
        ({"bandwidth": 300 * MB}, "no tier that its pool `n@nbd#fast` meets promises that"),
    ],
)
def test_what_cannot_be_done_is_one_event_until_it_is_tried_again(story, params, reason):
    async def scenario(world):
        for _ in range(3):
            await world.say(says(TENANT, "AUTH_p1", **params))
        ((kind, text, policy),) = world.events
        assert (kind, policy) == (VOLUME_FAILED, "p")
        assert text.endswith(f"the tier of its policy: {reason}")
        world.now += AGAIN
        await world.service.retype_all()
        assert len(world.events) == 2

    story(scenario)


def test_a_retype_that_cinder_refuses_is_an_event_with_its_reason(story):
    async def scenario(world):
        world.cinder.state.faults["retype"] = CallerError("not while it is backed up")
        await world.say(says(TENANT, "AUTH_p1", name="good"))
        assert await world.retypes() == [("good", "failed", "policy/p")]
        await world.service.retype_all()
        assert [text.rpartition(": ")[2] for _, text, _ in world.events] == ["not while it is backed up"]

    story(scenario)
