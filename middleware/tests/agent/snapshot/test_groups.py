"""An agent against a real Redis: groups change, agents restart and refuse assignments."""

import asyncio
import contextlib

import pytest

from sluice_agent.agent import Agent
from sluice_agent.settings import Settings
from sluice_core.messages.policies import Target
from sluice_core.messages.predicate import Facts
from sluice_core.messages.registry import Group, Placement
from sluice_core.snapshot.keys import SNAPSHOT_REGISTRY_KEY
from sluice_core.snapshot.reader import SnapshotReader, SnapshotWriter
from sluice_core.store.records import Draft
from sluice_core.store.store import AsyncStore
from sluice_core.testing import assignment

GOLD = Target("tenant", "group", "gold")
LOGS = Target("container", "group", "logs")


@pytest.fixture
def node(redis_server, tmp_path):
    """A function that starts the agent of one node, any number of times."""

    @contextlib.asynccontextmanager
    async def start():
        agent = Agent(Settings("n1", redis_server.url, str(tmp_path / "snapshot"), report_interval=0.5))
        task = asyncio.create_task(agent.run())
        try:
            yield agent
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    return start


@pytest.fixture
def in_force(tmp_path):
    """The assignments that a worker finds for a path."""

    def find(path):
        reader = SnapshotReader(tmp_path / "snapshot")
        reader.refresh()
        try:
            pipelines = reader.find(*path.split("/", 2)).resolve(Facts("PUT"))
            return [one.id for one in pipelines.get("filter", ())]
        finally:
            reader.close()

    return find


def play(story):
    async def limited():
        async with asyncio.timeout(30):
            await story

    asyncio.run(limited())


async def at_epoch(url, epoch):
    """The report with which the node acknowledges ``epoch``."""
    store = AsyncStore(url)
    news = store.client.pubsub()
    try:
        await news.subscribe(store.keys.acks)
        while True:
            for report in await store.nodes():
                if (report.epoch, report.state) == (epoch, "ok"):
                    return report
            await news.get_message(timeout=5)
    finally:
        await news.aclose()
        await store.close()


def gold(*members, of=()):
    """The change that sets the group's ``members``, which were ``of`` before."""
    puts, drops = Group("gold", members=members).changes_from(Group("gold", members=of))
    return {"entries": puts, "entry_drops": drops}


def commit(store, *puts, **more):
    return store.commit(Draft("test", puts=puts, **more))


def test_a_policy_on_a_group_follows_who_joins_and_who_leaves(store, node, redis_server, in_force):
    async def story():
        async with node():
            commit(store, assignment("g.0", target=GOLD))
            report = await at_epoch(redis_server.url, 1)
            assert (report.refused, report.assignments, in_force("AUTH_a/c/o")) == ({}, 1, [])
            commit(store, **gold("AUTH_a"))
            await at_epoch(redis_server.url, 2)
            assert in_force("AUTH_a/c/o") == ["g.0"]
            commit(store, **gold("AUTH_b", of=("AUTH_a",)))
            await at_epoch(redis_server.url, 3)
            assert (in_force("AUTH_a/c/o"), in_force("AUTH_b/c/o")) == ([], ["g.0"])
            commit(store, entry_drops=("group/gold", "tenant_member/gold/AUTH_b"))
            await at_epoch(redis_server.url, 4)
            assert in_force("AUTH_b/c/o") == []

    play(story())


def test_what_changed_while_the_agent_was_off_is_compared_with_its_snapshot(store, node, redis_server, in_force):
    async def story():
        commit(store, assignment("g.0", target=GOLD), assignment("l.0", target=LOGS))
        commit(store, **gold("AUTH_a", "AUTH_b"))
        commit(store, entries=Group("logs", "container", ("AUTH_c/x",)).entries())
        async with node():
            await at_epoch(redis_server.url, 3)
            assert in_force("AUTH_c/x/o") == ["l.0"]
        commit(store, **gold("AUTH_b", "AUTH_c", of=("AUTH_a", "AUTH_b")))
        async with node():
            await at_epoch(redis_server.url, 4)
            found = [in_force(f"{account}/c/o") for account in ("AUTH_a", "AUTH_b", "AUTH_c")]
            assert found == [[], ["g.0"], ["g.0"]]

    play(story())


def test_a_snapshot_of_an_agent_without_groups_is_loaded_again(store, node, redis_server, tmp_path, in_force):
    async def story():
        commit(store, assignment("g.0", target=GOLD), **gold("AUTH_a"))
        async with node():
            await at_epoch(redis_server.url, 1)
        _as_of_an_old_agent(tmp_path / "snapshot")
        assert in_force("AUTH_a/c/o") == []
        async with node() as agent:
            while in_force("AUTH_a/c/o") != ["g.0"]:
                await asyncio.sleep(0.01)
            assert not agent.writer.incomplete

    play(story())


def _as_of_an_old_agent(folder):
    """The same epoch, without any data of the registry."""
    writer = SnapshotWriter(folder)
    writer.open()
    with writer._environment.begin(write=True) as transaction:
        for key in [key for key, _ in transaction.cursor() if key.startswith((b"t/", b"g/"))]:
            transaction.delete(key)
        transaction.delete(SNAPSHOT_REGISTRY_KEY)
    writer.close()


def test_a_placement_reaches_the_workers(store, node, redis_server, tmp_path):
    async def story():
        async with node():
            commit(store, entries=(Placement("AUTH_a", "ec21").entry(),))
            await at_epoch(redis_server.url, 1)
            reader = SnapshotReader(tmp_path / "snapshot")
            reader.refresh()
            assert (reader.placement("AUTH_a"), reader.placement("AUTH_b")) == ("ec21", "")
            commit(store, entry_drops=("placement/AUTH_a",))
            await at_epoch(redis_server.url, 2)
            assert reader.placement("AUTH_a") == ""
            reader.close()

    play(story())
