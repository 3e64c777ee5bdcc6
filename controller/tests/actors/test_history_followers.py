"""After a failover that lost changes and made others instead, the API's cache and the actor hosts read all again."""

import asyncio

import pytest
from tests.support.failover import fail_over

from sluice_actors.hosts.change_stream import ChangeStream
from sluice_controller.catalog import policy_cache as shelves
from sluice_controller.catalog.policy_cache import PolicyCache
from sluice_core.errors import PeerError
from sluice_core.messages.policies import Policy
from sluice_core.store.records import Draft
from sluice_core.store.store import AsyncStore, Store
from sluice_dsl.catalogue.vocabulary import default_catalogue
from sluice_dsl.compile import compile_text

CATALOGUE = default_catalogue()
PREFIX = "lineage"


@pytest.fixture
def store(redis_server):
    made = Store(redis_server.url, PREFIX)
    made.client.flushdb()
    yield made
    made.close()


def create(store, *names):
    for name in names:
        (one,) = compile_text(f"FOR TENANT AUTH_{name} DO SET compression", CATALOGUE)
        store.commit(Draft("t", policies=(Policy(name, one.source, one.text, one.plan.to_data(), False, 1),)))


@pytest.mark.parametrize("more", ["x", "xyz"], ids=["as many", "more"])
@pytest.mark.parametrize("seen", ["ab", ""], ids=["followed", "read at once"])
def test_the_policy_cache_shows_what_redis_has(store, monkeypatch, more, seen):
    monkeypatch.setattr(shelves, "_LOOK_AGAIN", 0.0)
    cache = PolicyCache(store)
    create(store, "a")
    if seen:
        cache.contents()
    create(store, "b")
    assert set(cache.contents().policies) == {"a", "b"}
    fail_over(store, 1, policies=("b",))
    create(store, *more)
    assert set(cache.contents().policies) == {"a", *more}
    assert cache.contents().head == PolicyCache(store).contents().head


def test_an_idle_policy_cache_checks_the_history_at_most_once_a_second(store, monkeypatch):
    create(store, "a")
    cache = PolicyCache(store)
    cache.contents()
    asked = []
    run = type(store).run
    monkeypatch.setattr(type(store), "run", lambda store, operation: asked.append(operation) or run(store, operation))
    for _ in range(50):
        cache.contents()
    assert sum(1 for one in asked if one.commands[0][0] != "MGET") <= 2  # MGET reads the head, each time


@pytest.mark.parametrize("more", ["", "x", "xyz"], ids=["fewer", "as many", "more"])
def test_an_actor_host_reads_everything_again(store, redis_server, more):
    create(store, "a", "b")

    async def story():
        mine = AsyncStore(redis_server.url, PREFIX)
        stream = ChangeStream(mine)
        await stream.begin()
        create(store, "c")
        (change,) = await stream.next()
        stream.follow(change)
        waiting = asyncio.create_task(stream.next())
        while not store.client.info("clients")["blocked_clients"]:
            await asyncio.sleep(0.01)
        fail_over(store, 2, policies=("c",))
        create(store, *more)
        with pytest.raises(PeerError, match="redis at"):
            await waiting
        assert await stream.next() is None
        assert (await stream.begin()).epoch == 2 + len(more)
        create(store, "last")
        assert [one.policies for one in await stream.next()] == [("last",)]
        await mine.close()

    async def limited():
        async with asyncio.timeout(30):
            await story()

    asyncio.run(limited())
