"""Attachments of konnectors that took volumes over are confirmed or revoked, on a real Redis."""

import asyncio
from dataclasses import replace

import pytest
from tests.support.actors.ownership import SingleHost

from sluice_actors.volumes.attachments import Confirmations
from sluice_core.errors import NotFound, PeerError
from sluice_core.messages.nodes import NodeReport
from sluice_core.store.store import AsyncStore
from sluice_volumes import operations
from sluice_volumes.messages import DETACH, VolumeOperation
from sluice_volumes.testing.fake_cinder import FakeCinder
from sluice_volumes.testing.fake_konnector import FakeKonnector


class World:
    """A store, a Cinder with an attached volume, a konnector that took it over, a clock, and the service."""

    def __init__(self, store):
        self.store = store
        self.now = 100.0
        self.cinder = FakeCinder()
        self.volume = self.cinder.create_volume(1, "a", "", {}).id
        self.attachment = self.cinder.attach(self.volume, {"host": "h1"}).id
        self.konnector = FakeKonnector()
        self.konnector.volumes[self.volume] = {"attachment": self.attachment}
        self.events = []
        self.service = Confirmations(
            lambda urls: dict.fromkeys(urls, self.konnector).__getitem__, store, SingleHost(), 15.0,
            lambda: self.now, lambda kind, text, source, subject: self.events.append((kind, subject)), self.cinder,
        )  # fmt: skip

    async def answered(self, **said):
        """The calls of the konnector, after a report of its node and a round."""
        asked = {"unconfirmed_volumes": {self.volume: self.attachment}, "konnector": "https://n1", "at": self.now}
        await self.store.report(replace(NodeReport("n1", "h", 1), **{**asked, **said}))
        await self.service.answer_all()
        told = self.konnector.confirmed, self.konnector.revoked
        self.konnector.confirmed, self.konnector.revoked = [], []
        return told


@pytest.fixture
def story(redis_server):
    """Runs a scenario with a world."""

    def run(scenario):
        async def play():
            store = AsyncStore(redis_server.url, "confirmations")
            try:
                await scenario(World(store))
            finally:
                await store.client.flushdb()
                await store.close()

        asyncio.run(asyncio.wait_for(play(), 20))

    return run


def test_an_attachment_that_cinder_has_is_confirmed_also_when_redis_was_wiped(story):
    async def scenario(world):
        assert await world.answered(unconfirmed_volumes={}) == ([], [])
        assert await world.answered() == ([world.attachment], [])
        assert world.events == []

    story(scenario)


def test_an_attachment_that_has_ended_is_revoked_and_an_event_says_so(story):
    async def scenario(world):
        world.cinder.delete_attachment(world.attachment)
        world.cinder.attach(world.volume, {"host": "elsewhere"})
        assert await world.answered() == ([], [world.attachment])
        assert world.events == [("volume_failed", world.volume)]
        assert await world.answered() == ([], [])  # the former report: it has released the volume by now

    story(scenario)


@pytest.mark.parametrize("silent", [{"at": 84.0}, {"konnector": ""}])
def test_a_node_that_is_silent_or_has_no_konnector_is_not_answered(story, silent):
    async def scenario(world):
        assert await world.answered(**silent) == ([], [])

    story(scenario)


@pytest.mark.parametrize("call", ["attachments", "volume"])
@pytest.mark.parametrize("fault", [PeerError("cinder cannot be asked"), NotFound("it could not be found")])
def test_nothing_is_said_while_cinder_does_not_show_the_volume(story, call, fault):
    async def scenario(world):
        if call == "volume":  # an empty list of attachments, as a service user without rights sees it
            world.cinder.delete_attachment(world.attachment)
        world.cinder.state.faults[call] = fault
        assert await world.answered() == ([], [])
        assert await world.answered() != ([], [])

    story(scenario)


def test_a_volume_that_is_being_detached_waits_for_the_end_of_that(story):
    async def scenario(world):
        operation = VolumeOperation("o1", DETACH, "p1", world.volume, {"node": "n1"}, created=100.0)
        await world.store.run(operations.create_operation(world.store.keys, operation))
        assert await world.answered() == ([], [])

    story(scenario)


def test_a_konnector_that_fails_is_answered_later(story):
    async def scenario(world):
        world.konnector.faults["confirm"] = PeerError("answers 500")
        assert await world.answered() == ([], [])
        assert await world.answered() == ([world.attachment], [])

    story(scenario)
