"""An agent writes the accounts of its node, and reports for requests of all accounts."""

import asyncio

import pytest

from sluice_agent.metrics.usage import NodeAccounts
from sluice_core.messages.nodes import MetricBatch
from sluice_core.store.store import AsyncStore
from sluice_rewrites.accounts import AccountsFound, accounts_after, close_request, open_request, read_collection

LIMIT = 20
STORED = MetricBatch("n.1", "STORED", 60, 1, {"tenant": {"AUTH_a": 5.0, "AUTH_b": 0.0}, "container": {"AUTH_c/c": 1.0}})
RING = ("10.0.0.1:6202/sdb",)
ALL = AccountsFound(("AUTH_a", "AUTH_z"), RING, RING)


def run(story):
    asyncio.run(asyncio.wait_for(story, LIMIT))


class Scene:
    """An agent and a reader, which has got ``asked`` requests."""

    def __init__(self, store, mine):
        self.store = store
        self.now = 0.0
        self.asked = 0
        self.accounts = NodeAccounts("n1", mine, lambda: self.now)
        self.accounts.reader_started(self.ask)

    def ask(self):
        self.asked += 1

    async def look(self, after=0.0):
        self.now += after
        await self.accounts._look()
        return self.asked

    def request(self, name):
        self.store.run(open_request(self.store.keys, name))

    def collection(self, name):
        return self.store.run(read_collection(self.store.keys, name))


@pytest.fixture
def play(store, redis_server):
    def play(story):
        async def whole():
            mine = AsyncStore(redis_server.url)
            await story(Scene(store, mine))
            await mine.close()

        run(whole())

    return play


def test_the_accounts_of_a_node_are_written_once_and_again_after_a_while(store, redis_server):
    now = [0.0]

    async def story():
        mine = AsyncStore(redis_server.url)
        accounts = NodeAccounts("n1", mine, lambda: now[0])

        async def listed(after):
            now[0] = after
            await accounts.add(STORED)
            return store.run(accounts_after(store.keys, "", 10))

        assert await listed(0.0) == ["AUTH_a", "AUTH_b"]
        store.client.flushdb()
        assert await listed(60.0) == []
        assert await listed(1000.0) == ["AUTH_a", "AUTH_b"]
        await mine.close()

    run(story())


def test_without_redis_accounts_are_written_with_a_later_batch(store, redis_server):
    async def story():
        away, there = AsyncStore("redis://127.0.0.1:1"), AsyncStore(redis_server.url)
        accounts = NodeAccounts("n1", away)
        await accounts.add(STORED)
        accounts._store = there
        await accounts.add(STORED)
        assert store.run(accounts_after(store.keys, "", 10)) == ["AUTH_a", "AUTH_b"]
        await away.close()
        await there.close()

    run(story())


def test_a_reader_is_asked_once_for_each_request_and_reports_what_it_found(play):
    async def story(scene):
        assert await scene.look() == 0, "nobody asks"
        scene.request("r")
        assert await scene.look() == 1
        assert await scene.look() == 1, "it still reads"
        assert scene.collection("r").reading == {"n1"}
        await scene.accounts.answer(ALL)
        found = scene.collection("r")
        assert (found.is_complete, found.reading, found.accounts) == (True, frozenset(), 2)
        assert await scene.look() == 1
        assert scene.store.run(accounts_after(scene.store.keys, "", 10)) == ["AUTH_a", "AUTH_z"]

    play(story)


def test_what_is_asked_while_the_reader_reads_is_answered_by_the_next_reading(play):
    async def story(scene):
        scene.request("r")
        await scene.look()
        scene.request("later")
        await scene.accounts.answer(ALL)
        assert (scene.collection("r").is_complete, scene.collection("later").is_complete) == (True, False)
        assert await scene.look() == 2
        await scene.accounts.answer(ALL)
        assert (scene.collection("r").is_complete, scene.collection("later").is_complete) == (True, True)

    play(story)


def test_all_accounts_are_written_for_each_request_since_redis_may_have_lost_them(play):
    async def story(scene):
        await scene.accounts.add(STORED)
        scene.store.client.flushdb()
        scene.request("r")
        await scene.look()
        await scene.accounts.answer(ALL)
        assert scene.store.run(accounts_after(scene.store.keys, "", 10)) == ["AUTH_a", "AUTH_z"]

    play(story)


def test_what_could_not_be_read_is_read_again_while_somebody_waits(play):
    async def story(scene):
        scene.request("r")
        await scene.look()
        await scene.accounts.answer(AccountsFound((), RING, RING, ("locked",)))
        assert scene.collection("r").faults == ("`n1`: locked",)
        assert await scene.look() == 1, "not at once"
        assert await scene.look(6.0) == 2
        await scene.accounts.answer(AccountsFound((), RING, RING, ("locked",)))
        scene.store.run(close_request(scene.store.keys, "r"))
        assert await scene.look(6.0) == 2, "nobody waits"
        scene.request("q")
        assert await scene.look() == 3
        await scene.accounts.answer(ALL)
        assert scene.collection("q").is_complete
        assert await scene.look(6.0) == 3

    play(story)


def test_a_reader_that_ended_is_asked_again_when_there_is_another_one(play):
    async def story(scene):
        scene.request("r")
        assert await scene.look() == 1
        scene.accounts.reader_ended()
        assert await scene.look() == 1
        scene.accounts.reader_started(scene.ask)
        assert await scene.look() == 2

    play(story)


def test_without_redis_the_reader_is_asked_again(play, store):
    async def story(scene):
        scene.request("r")
        await scene.look()
        away, there = AsyncStore("redis://127.0.0.1:1"), scene.accounts._store
        scene.accounts._store = away
        await scene.accounts.answer(ALL)
        scene.accounts._store = there
        assert await scene.look() == 2
        await scene.accounts.answer(ALL)
        assert scene.collection("r").is_complete
        await away.close()

    play(story)
