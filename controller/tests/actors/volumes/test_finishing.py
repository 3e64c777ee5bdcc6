"""Abandoned operations, finished by an actor host on a real Redis."""

import asyncio
import re
from dataclasses import replace

import pytest
from tests.support.actors.ownership import SingleHost

from sluice_actors.volumes.finishing import GRACE, OperationFinisher
from sluice_core.errors import PeerError
from sluice_core.messages.nodes import NodeReport
from sluice_core.process.logs import TextFormatter, current_request
from sluice_core.store.store import AsyncStore
from sluice_volumes import operations
from sluice_volumes.konnector_client import KonnectorAway
from sluice_volumes.messages import (
    ATTACH,
    CALIBRATE,
    CREATE,
    DETACH,
    UNDER_WAY,
    Pool,
    VolumeOperation,
    VolumeRecord,
)
from sluice_volumes.reconciler import PATIENCE
from sluice_volumes.testing.fake_cinder import FakeCinder
from sluice_volumes.testing.fake_konnector import FakeKonnector

ORDER = VolumeOperation("o1", CREATE, "p1", created=100.0, by="alice")


class World:
    """A store, a Cinder, a konnector, a clock, and the service."""

    def __init__(self, store):
        self.store = store
        self.now = 100.0 + GRACE
        self.cinder = FakeCinder()
        self.konnector = FakeKonnector()
        self.urls = None
        self.service = OperationFinisher(self.cinder, self.konnectors, store, SingleHost(), "AUTH_", lambda: self.now)

    def konnectors(self, urls):
        self.urls = urls
        return dict.fromkeys(urls, self.konnector).__getitem__

    async def order(self, operation):
        assert await self.run(operations.create_operation, operation) == ""

    async def run(self, operation, *given):
        return await self.store.run(operation(self.store.keys, *given))

    async def finished(self, name="o1"):
        await self.service.finish_all()
        return await self.run(operations.JOBS.read, name)


@pytest.fixture
def story(redis_server):
    """Runs a scenario with a world."""

    def run(scenario):
        async def play():
            store = AsyncStore(redis_server.url, "finishing")
            try:
                await scenario(World(store))
            finally:
                await store.client.flushdb()
                await store.close()

        asyncio.run(asyncio.wait_for(play(), 20))

    return run


def test_a_volume_of_a_process_that_died_is_found_and_has_a_record(story):
    async def scenario(world):
        await world.order(ORDER)
        made = world.cinder.as_caller("t", "p1").create_volume(1, "a", "", {"sluice_operation": "o1"})
        found = await world.finished()
        assert (found.state, found.volume, found.claimed) == ("done", made.id, 0.0)
        record = await world.run(operations.RECORDS.read, made.id)
        assert (record.account, record.by) == ("AUTH_p1", "alice")

    story(scenario)


def test_what_is_never_found_has_failed_after_a_while(story):
    async def scenario(world):
        await world.order(ORDER)
        assert (await world.finished()).state == UNDER_WAY
        world.now = 100.0 + PATIENCE
        found = await world.finished()
        assert (found.state, found.reason, found.ended) == ("failed", "cinder has no such volume", world.now)

    story(scenario)


def test_an_operation_is_left_to_its_request_at_first_and_to_who_claimed_it(story):
    async def scenario(world):
        world.cinder.as_caller("t", "p1").create_volume(1, "a", "", {"sluice_operation": "o1"})
        await world.order(ORDER)
        world.now = 100.0 + GRACE - 1
        assert (await world.finished()).state == UNDER_WAY
        world.now = 100.0 + GRACE
        claimed = replace(ORDER, claimed=world.now)
        assert await world.run(operations.JOBS.replace, ORDER, claimed)
        assert (await world.finished()) == claimed
        world.now += operations.LEASE
        assert (await world.finished()).state == "done"

    story(scenario)


def test_while_cinder_is_away_operations_wait_and_can_be_claimed(story):
    async def scenario(world):
        await world.order(ORDER)
        world.cinder.state.faults["volumes"] = PeerError("away")
        assert await world.finished() == ORDER

    story(scenario)


def test_an_attachment_cut_short_is_undone_at_the_konnector_of_its_node(story):
    async def scenario(world):
        await world.store.report(NodeReport("n1", "h", 1, konnector="https://n1"))
        await world.store.report(NodeReport("n2", "h", 1))
        volume = world.cinder.create_volume(1, "a", "", {})
        attachment = world.cinder.attach(volume.id, {"host": "h1"})
        data = {"node": "n1", "attachment": attachment.id}
        record = VolumeRecord(volume.id, "p1", "AUTH_p1", fixed=50.0)
        await world.run(operations.RECORDS.create, record)
        await world.order(replace(ORDER, what=ATTACH, volume=volume.id, data=data))
        found = await world.finished()
        assert (found.state, world.urls) == ("failed", {"n1": "https://n1"})
        assert (world.cinder.volume(volume.id).status, world.cinder.state.attachments) == ("available", {})
        assert await world.run(operations.RECORDS.read, volume.id) == record

    story(scenario)


def test_those_that_ended_long_ago_are_forgotten(story, monkeypatch):
    monkeypatch.setattr("sluice_actors.volumes.finishing.KEPT", 1)

    async def scenario(world):
        for number in range(3):
            await world.order(replace(ORDER, id=f"e{number}", state="done", ended=float(number)))
        await world.service.finish_all()
        assert set(await world.run(operations.JOBS.read_all)) == {"e2"}

    story(scenario)


def test_a_detachment_by_force_that_died_behind_cinder_is_finished(story):
    async def scenario(world):
        await world.store.report(NodeReport("n1", "h", 1, konnector="https://n1"))
        volume = world.cinder.create_volume(1, "a", "", {})
        record = VolumeRecord(volume.id, "p1", "AUTH_p1", fixed=50.0, node="n1", attachment="ended")
        await world.run(operations.RECORDS.create, record)
        data = {"node": "n1", "attachment": "ended", "force": True, "connection_type": "nbd"}
        await world.order(replace(ORDER, what=DETACH, volume=volume.id, data=data, step="asked"))
        world.konnector.faults["detach"] = KonnectorAway("nobody answers")
        found = await world.finished()
        assert (found.state, found.data["konnector_told"]) == ("done", False)
        assert await world.run(operations.RECORDS.read, volume.id) == replace(record, node="", attachment="")

    story(scenario)


def test_what_a_konnector_is_still_to_know_is_not_forgotten(story, monkeypatch):
    monkeypatch.setattr("sluice_actors.volumes.finishing.KEPT", 0)

    async def scenario(world):
        for number, told in enumerate((False, True)):
            data = {"konnector_told": told}
            await world.order(replace(ORDER, id=f"e{number}", what=DETACH, state="done", data=data))
        await world.service.finish_all()
        assert set(await world.run(operations.JOBS.read_all)) == {"e0"}

    story(scenario)


def test_a_pool_is_measured_although_nobody_asks_again(story):
    async def scenario(world):
        await world.store.report(NodeReport("n1", "h", 1, konnector="https://n1"))
        world.cinder.state.pools.append(Pool("h@nbd#fast", 1e12, 1e12, specs={"volume_backend_name": "nbd"}))
        data = {"pool": "h@nbd#fast", "node": "n1", "seconds": 1, "size": 1, "specs": {"volume_backend_name": "nbd"}}
        await world.order(replace(ORDER, what=CALIBRATE, project="", data=data))
        while (found := await world.finished()).state == UNDER_WAY:
            pass
        assert (found.state, found.reason) == ("done", "")
        kept = (await world.run(operations.CALIBRATIONS.read_all))["h@nbd#fast"]
        assert (kept.read_bw, kept.node, kept.by, kept.at) == (9e7, "n1", "alice", world.now)

    story(scenario)


def test_what_waits_is_logged_with_its_operation_and_the_id_that_the_konnector_gets(story, monkeypatch, caplog):
    caplog.handler.setFormatter(TextFormatter("%(context)s %(message)s"))
    asked = []

    def detach(volume):
        asked.append(current_request())
        raise PeerError("answers 500")

    async def scenario(world):
        await world.store.report(NodeReport("n1", "h", 1, konnector="https://n1"))
        monkeypatch.setattr(world.konnector, "detach", detach)
        data = {"node": "n1", "attachment": "a1"}
        await world.order(replace(ORDER, what=DETACH, volume="v1", data=data, step="asked"))
        assert (await world.finished()).state == UNDER_WAY

    story(scenario)
    (request,) = asked
    assert re.fullmatch(r"req-[0-9a-f-]{36}", request)
    assert f" [{request} o1] operation `o1` on a volume waits: answers 500\n" in caplog.text
