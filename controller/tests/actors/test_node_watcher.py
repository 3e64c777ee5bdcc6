"""The node watcher, on a real store: its events, their time, and no repeats by the next host."""

import asyncio

import pytest
from tests.support.actors.host import HostScenario, run_scenario

from sluice_actors.node_watcher import NAME, NodeWatcher
from sluice_core.messages.events import (
    CODE_UNUSABLE,
    ENVIRONMENT_FAILED,
    NODE_AWAY,
    NODE_FAILED,
    NODE_WELL,
    PLUGIN_LEFT_OUT,
    REFUSED,
    VOLUME_FAILED,
)
from sluice_core.messages.nodes import NodeReport
from sluice_core.store.events import FIRST

TIMEOUT = 15.0


class Owner:
    """Owns every name, or none."""

    owning = True

    def owns(self, name):
        assert name == NAME
        return self.owning


class Watch:
    """A watcher, a clock and a store; ``look`` returns the kinds of the new events."""

    def __init__(self, store):
        self.store = store
        self.now = 1000.0
        self.last = FIRST
        self.watcher = self.another()

    def another(self):
        return NodeWatcher(self.store, Owner(), TIMEOUT, lambda: self.now)

    async def report(self, node="n1", at=None, **more):
        await self.store.report(NodeReport(node, "h", 1, at=self.now if at is None else at, **more))

    async def look(self, watcher=None):
        await (watcher or self.watcher).poll()
        found = await self.store.events_after(self.last, 100)
        self.last = found.last
        return [(one.kind, one.node, one.policy or one.subject) for one in found.events]


@pytest.fixture
def story(redis_server):
    """A function that runs a scenario with a watch."""

    def run(scenario):
        async def with_watch():
            store = HostScenario(redis_server.url).store
            try:
                await scenario(Watch(store))
            finally:
                await store.close()

        run_scenario(with_watch())

    return run


def test_a_node_that_falls_silent_and_comes_back_is_logged_each_time(story):
    async def scenario(watch):
        await watch.report()
        assert await watch.look() == []
        for _ in range(2):
            watch.now += TIMEOUT + 1
            assert await watch.look() == [(NODE_AWAY, "n1", "")]
            assert await watch.look() == []
            await watch.report()
            assert await watch.look() == [(NODE_WELL, "n1", "")]

    story(scenario)


def test_each_problem_is_logged_once_as_what_it_is(story):
    problems = {
        "refused": {"p1.0": "no filter", "p1.1": "no filter", "upload/f": "revision 2: no"},
        "sandbox": {"process": "no supervisor", "wasm": "ok"},
        "plugins": {"stranger": "proxy: no module"},
        "volume_faults": {"v1": "its filter failed"},
        "state": "failed",
        "detail": "disk full",
    }

    async def scenario(watch):
        await watch.report(**problems)
        assert await watch.look() == [], "it may pass"
        expected = {
            (REFUSED, "n1", "p1"),
            (CODE_UNUSABLE, "n1", "f"),
            (ENVIRONMENT_FAILED, "n1", "process"),
            (PLUGIN_LEFT_OUT, "n1", "stranger"),
            (VOLUME_FAILED, "n1", "v1"),
            (NODE_FAILED, "n1", "failed"),
        }
        found = await watch.look()
        assert (set(found), len(found)) == (expected, len(expected))
        assert await watch.look() == []
        await watch.report()
        assert await watch.look() == [(NODE_WELL, "n1", "")]

    story(scenario)


def test_what_a_node_refuses_for_a_moment_is_not_logged(story):
    async def scenario(watch):
        for number in range(4):
            await watch.report(refused={f"p{number}.0": "not yet"})
            assert await watch.look() == []

    story(scenario)


def test_the_next_host_goes_on_where_the_last_one_ended(story):
    async def scenario(watch):
        await watch.report("n1", refused={"p1.0": "no"})
        await watch.report("n2")
        await watch.look()
        watch.now += TIMEOUT + 1
        await watch.report("n1", refused={"p1.0": "no"})
        assert sorted(await watch.look()) == [(NODE_AWAY, "n2", ""), (REFUSED, "n1", "p1")]
        after = watch.another()
        for _ in range(3):
            assert await watch.look(after) == []
        await watch.report("n2")
        assert await watch.look(after) == [(NODE_WELL, "n2", "")]

    story(scenario)


def test_a_forgotten_node_leaves_nothing_behind(story):
    async def scenario(watch):
        await watch.report("n1", at=1.0)
        assert await watch.look() == [(NODE_AWAY, "n1", "")]
        await watch.store.forget_node("n1")
        assert await watch.look() == []
        assert await watch.store.client.hlen(watch.store.keys.node_problems) == 0

    story(scenario)


def test_without_redis_the_same_is_found_later(story, monkeypatch):
    async def scenario(watch):
        await watch.report(at=1.0)
        await watch.store.client.set(watch.store.keys.node_problems, "in the way")
        with pytest.raises(Exception, match="WRONGTYPE"):
            await watch.watcher.poll()
        await watch.store.client.delete(watch.store.keys.node_problems)
        assert await watch.look() == [(NODE_AWAY, "n1", "")]

    story(scenario)


def test_a_host_logs_what_nodes_refuse(redis_server):
    async def scenario():
        story = HostScenario(redis_server.url)
        await story.store.report(NodeReport("n1", "h", 1, at=1.0))
        async with story.host() as host:
            await host.synced.wait()
            found = await story.store.events_after(FIRST, 1, 3000)
            while not found.events:
                found = await story.store.events_after(FIRST, 1, 3000)
            assert found.events[0].kind == NODE_AWAY
        await story.store.close()
        await asyncio.sleep(0)

    run_scenario(scenario())
