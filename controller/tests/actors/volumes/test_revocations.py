"""Konnectors that are reachable again get the revocations that they missed, on a real Redis."""

import asyncio
import re
from dataclasses import replace

import pytest
from tests.support.actors.ownership import SingleHost

from sluice_actors.volumes.attachments import Revocations
from sluice_core.errors import PeerError
from sluice_core.messages.nodes import NodeReport
from sluice_core.process.logs import TextFormatter
from sluice_core.store.store import AsyncStore
from sluice_volumes import operations
from sluice_volumes.messages import DETACH, DONE, VolumeOperation
from sluice_volumes.testing.fake_konnector import FakeKonnector

TAKEN = VolumeOperation(
    "o1", DETACH, "p1", "v1", {"node": "n1", "attachment": "a1", "konnector_told": False}, DONE, created=100.0
)


class World:
    """A store, a konnector that has volume ``v1`` by attachment ``a1``, a clock, and the service."""

    def __init__(self, store):
        self.store = store
        self.now = 100.0
        self.konnector = FakeKonnector()
        self.konnector.volumes["v1"] = {"attachment": "a1"}
        self.events = []
        self.service = Revocations(
            lambda urls: dict.fromkeys(urls, self.konnector).__getitem__, store, SingleHost(), 15.0,
            lambda: self.now, lambda kind, text, source, subject: self.events.append((kind, subject)),
        )  # fmt: skip

    async def told(self):
        """Whether the konnector got the revocation, after another round."""
        await self.service.notify_konnectors()
        return (await self.store.run(operations.JOBS.read(self.store.keys, "o1"))).data["konnector_told"]

    async def report(self, **said):
        await self.store.report(replace(NodeReport("n1", "h", 1, konnector="https://n1"), **{"at": self.now, **said}))


@pytest.fixture
def story(redis_server):
    """Runs a scenario with a world in which ``v1`` was taken from node ``n1``."""

    def run(scenario):
        async def play():
            store = AsyncStore(redis_server.url, "revocations")
            try:
                await store.run(operations.create_operation(store.keys, TAKEN))
                await scenario(World(store))
            finally:
                await store.client.flushdb()
                await store.close()

        asyncio.run(asyncio.wait_for(play(), 20))

    return run


def test_a_konnector_that_is_back_is_told_once_and_an_event_says_so(story):
    async def scenario(world):
        assert not await world.told()
        await world.report(konnector="")
        assert not await world.told()
        await world.report()
        assert await world.told()
        assert (world.konnector.volumes, world.konnector.revoked) == ({}, ["a1"])
        assert await world.told()
        assert world.events == [("volume_failed", "v1")]

    story(scenario)


def test_a_node_that_is_silent_is_not_asked(story):
    async def scenario(world):
        await world.report(at=world.now - 16.0)
        assert not await world.told()

    story(scenario)


def test_a_konnector_that_fails_is_told_later(story, caplog):
    caplog.handler.setFormatter(TextFormatter("%(context)s %(message)s"))

    async def scenario(world):
        await world.report()
        world.konnector.faults["revoke"] = PeerError("answers 500")
        assert not await world.told()
        assert await world.told()

    story(scenario)
    assert re.search(r" \[o1 req-[0-9a-f-]{36}\] node `n1` cannot be told to release volume `v1`", caplog.text)


def test_a_konnector_that_has_the_volume_anew_keeps_it(story):
    async def scenario(world):
        await world.report()
        world.konnector.volumes["v1"] = {"attachment": "a2"}
        assert await world.told()
        assert (list(world.konnector.volumes), world.events) == (["v1"], [])

    story(scenario)
