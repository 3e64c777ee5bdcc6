"""An agent whose Redis is watched by a Sentinel: it follows a failover, and reports lost changes."""

import asyncio
import contextlib

import pytest
from tests.support.cluster.secured_services import MASTER, Sentinel, WatchedRedis

from sluice_agent.agent import Agent
from sluice_agent.settings import Settings
from sluice_aio.base.ports import free_port
from sluice_core.errors import PeerError
from sluice_core.store.records import Draft
from sluice_core.store.store import AsyncStore
from sluice_core.testing import assignment

pytestmark = pytest.mark.service

PASSWORD = "hunter2"
LIMIT = 120


@pytest.fixture
def trio(tmp_path):
    first = WatchedRedis(free_port(), tmp_path / "first", PASSWORD, tied=True)
    second = WatchedRedis(free_port(), tmp_path / "second", PASSWORD, first.port, tied=True)
    sentinel = Sentinel(free_port(), tmp_path / "sentinel", first, tied=True)
    try:
        for server in (first, second, sentinel):
            server.start()
            server.wait_ready()
        yield first, second, sentinel
    finally:
        for server in (sentinel, second, first):
            server.kill()


async def patiently(ask):
    """The result of ``ask`` as soon as Redis answers."""
    while True:
        try:
            return await ask()
        except PeerError:
            await asyncio.sleep(0.05)


async def until(store, state, epoch):
    while True:
        reports = await patiently(store.nodes)
        if [(one.state, one.epoch) for one in reports] == [(state, epoch)]:
            return reports[0]
        await asyncio.sleep(0.05)


@contextlib.asynccontextmanager
async def agent_of(url, folder):
    agent = Agent(Settings("n1", url, str(folder), report_interval=0.3, replace_wait=0.3))
    task = asyncio.create_task(agent.run())
    try:
        yield agent
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def synced(first, second, sentinel):
    """Wait until the second Redis follows the first and the Sentinel knows it."""
    stores = [AsyncStore(one.url) for one in (second, sentinel)]
    while (await stores[0].client.info("replication"))["master_link_status"] != "up":
        await asyncio.sleep(0.05)
    watcher = stores[1].client.connection_pool.sentinel_manager.sentinels[0]
    while not (await watcher.sentinel_masters())[MASTER]["num-slaves"]:
        await asyncio.sleep(0.05)
    for store in stores:
        await store.close()


async def cut(first, second):
    """Keep later writes from reaching the second Redis."""
    replica, master = AsyncStore(second.url), AsyncStore(first.url)
    await replica.client.config_set("masterauth", "wrong")
    await master.client.execute_command("CLIENT", "KILL", "TYPE", "replica")
    while (await replica.client.info("replication"))["master_link_status"] == "up":
        await asyncio.sleep(0.02)
    for store in (replica, master):
        await store.close()


def commit(store, name):
    return store.commit(Draft("test", puts=(assignment(f"{name}.0", f"AUTH_{name}"),)))


@pytest.mark.probe
def test_a_failover_that_lost_changes_is_reported_and_adopted_by_command(trio, tmp_path):
    first, second, sentinel = trio

    async def story():
        await synced(*trio)
        store = AsyncStore(sentinel.url)
        async with agent_of(sentinel.url, tmp_path / "snapshot") as agent:
            await commit(store, "kept")
            await store.client.execute_command("WAIT", 1, 3000)
            await until(store, "ok", 1)
            await cut(first, second)
            await commit(store, "lost")
            await until(store, "ok", 2)
            first.kill()
            report = await until(store, "stale_history", 2)
            assert "redis has history" in report.detail
            assert sorted(one.id for one in agent.writer.assignments()) == ["kept.0", "lost.0"], "the last good state"
            await store.adopt("operator")
            await until(store, "ok", 1)
            assert [one.id for one in agent.writer.assignments()] == ["kept.0"]
            await commit(store, "next")
            await until(store, "ok", 2)
            assert sorted(one.id for one in agent.writer.assignments()) == ["kept.0", "next.0"]
        await store.close()

    async def limited():
        async with asyncio.timeout(LIMIT):
            await story()

    asyncio.run(limited())


@pytest.mark.probe
def test_a_failover_that_lost_nothing_is_followed_silently(trio, tmp_path):
    first, _, sentinel = trio

    async def story():
        await synced(*trio)
        store = AsyncStore(sentinel.url)
        async with agent_of(sentinel.url, tmp_path / "snapshot") as agent:
            await commit(store, "a")
            await until(store, "ok", 1)
            await store.client.execute_command("WAIT", 1, 3000)
            first.kill()
            await patiently(lambda: commit(store, "b"))
            await until(store, "ok", 2)
            assert sorted(one.id for one in agent.writer.assignments()) == ["a.0", "b.0"]
        await store.close()

    async def limited():
        async with asyncio.timeout(LIMIT):
            await story()

    asyncio.run(limited())
