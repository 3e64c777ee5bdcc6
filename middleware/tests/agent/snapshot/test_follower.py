"""An agent against a real Redis: catching up, a lost connection, and a Redis that lost its data."""

import asyncio
from functools import partial

import pytest
from tests.support.failover import fail_over
from tests.support.middleware.agents import at_epoch, commit, ids, play, reported, running

from sluice_core.errors import PeerError
from sluice_core.store.records import Draft
from sluice_core.testing import assignment


@pytest.fixture
def node(redis_server, tmp_path):
    """A function that starts an agent of one node, any number of times."""
    return partial(running, redis_server.url, tmp_path)


def test_a_fresh_agent_takes_what_is_there_and_follows(store, node, redis_server):
    async def story():
        commit(store, "a", "b")
        async with node() as agent:
            await reported(redis_server.url, at_epoch(1))
            assert ids(agent) == ["a.0", "b.0"]
            done = commit(store, "c", drops=("a.0",))
            report = await reported(redis_server.url, at_epoch(2))
            assert ids(agent) == ["b.0", "c.0"]
            assert (report.history, report.assignments, report.node) == (done.history, 2, "n1")

    play(story())


def test_an_agent_without_any_history_applies_the_first_change(store, node, redis_server):
    async def story():
        async with node() as agent:
            await reported(redis_server.url, lambda report: report.history == "")
            commit(store, "a")
            await reported(redis_server.url, at_epoch(1))
            assert ids(agent) == ["a.0"]

    play(story())


def test_after_an_absence_only_the_missing_changes_are_taken(store, node, redis_server):
    async def story():
        commit(store, "a")
        async with node() as agent:
            await reported(redis_server.url, at_epoch(1))
            before = agent.writer.snapshot_id
        commit(store, "b")
        # gone from the hash only: a full load would lose it, the change stream does not
        store.client.hdel(store.keys.assignments, "a.0")
        async with node() as agent:
            await reported(redis_server.url, at_epoch(2))
            assert ids(agent) == ["a.0", "b.0"]
            assert agent.writer.snapshot_id == before

    play(story())


def test_after_the_stream_was_trimmed_everything_is_loaded(store, node, redis_server, monkeypatch):
    async def story():
        commit(store, "a")
        async with node():
            await reported(redis_server.url, at_epoch(1))
        monkeypatch.setattr("sluice_core.store.commit.STREAM_LENGTH", 1)
        for _ in range(250):
            commit(store, "b")
        store.commit(Draft("test", drops=("a.0",)))
        assert store.client.xlen(store.keys.changes) < 250
        async with node() as agent:
            await reported(redis_server.url, at_epoch(252))
            assert ids(agent) == ["b.0"]

    play(story())


def test_many_changes_at_once_are_acknowledged_together(store, node, redis_server):
    async def story():
        for _ in range(120):
            commit(store, "a")
        async with node(batch=50) as agent:
            await reported(redis_server.url, at_epoch(120))
            for n in range(120):
                commit(store, f"x{n}")
            await reported(redis_server.url, at_epoch(240))
            assert agent.writer.count == 121

    play(story())


@pytest.mark.probe
def test_redis_killed_and_back_loses_nothing(store, node, redis_server):
    async def story():
        commit(store, "a")
        async with node() as agent:
            await reported(redis_server.url, at_epoch(1))
            redis_server.kill()
            assert ids(agent) == ["a.0"]
            redis_server.start()  # tied to this thread, so not in another
            await asyncio.to_thread(redis_server.wait_ready)
            commit(store, "b")
            await reported(redis_server.url, at_epoch(2))
            assert ids(agent) == ["a.0", "b.0"]

    play(story())


def test_a_wiped_redis_changes_nothing_until_it_is_adopted(store, node, redis_server):
    async def story():
        old = commit(store, "a").history
        async with node() as agent:
            await reported(redis_server.url, at_epoch(1))
            store.client.flushall()
            report = await reported(redis_server.url, at_epoch(1, "stale_history"))
            assert "no history" in report.detail
            new = commit(store, "b").history
            commit(store, "c")  # past the epoch of the old history
            report = await reported(redis_server.url, lambda report: new in report.detail)
            assert (report.history, report.epoch, report.state) == (old, 1, "stale_history")
            assert ids(agent) == ["a.0"]
            store.adopt("test")
            await reported(redis_server.url, at_epoch(2))
            assert ids(agent) == ["b.0", "c.0"]

    play(story())


def test_an_agent_that_was_stopped_during_an_adoption_adopts_too(store, node, redis_server):
    async def story():
        commit(store, "a")
        async with node():
            await reported(redis_server.url, at_epoch(1))
        store.client.flushall()
        commit(store, "b")
        store.adopt("test")
        commit(store, "c")
        async with node() as agent:
            await reported(redis_server.url, at_epoch(2))
            assert ids(agent) == ["b.0", "c.0"]

    play(story())


def test_a_history_that_went_back_is_stale_though_it_was_once_adopted(store, node, redis_server):
    async def story():
        commit(store, "a")
        store.adopt("test")
        commit(store, "b")
        async with node() as agent:
            await reported(redis_server.url, at_epoch(2))
            commit(store, "c")
            commit(store, "d")
            await reported(redis_server.url, at_epoch(4))
        fail_over(store, 3, assignments=("d.0",), cut=False)
        async with node() as agent:
            report = await reported(redis_server.url, at_epoch(4, "stale_history"))
            assert "epoch 3" in report.detail
            assert ids(agent) == ["a.0", "b.0", "c.0", "d.0"]
            store.adopt("test")
            await reported(redis_server.url, at_epoch(3))
            assert ids(agent) == ["a.0", "b.0", "c.0"]

    play(story())


def test_an_adoption_counts_also_when_changes_follow_it_at_once(store, node, redis_server):
    async def story():
        for name in "abcde":
            commit(store, name)
        async with node():
            await reported(redis_server.url, at_epoch(5))
        fail_over(store, 4, assignments=("e.0",), cut=False)
        fail_over(store, 3, assignments=("d.0",), cut=False)
        async with node() as agent:
            await reported(redis_server.url, at_epoch(5, "stale_history"))
            with store.client.pipeline() as both:
                both.set(store.keys.adopted, f"{store.head().history}:3")
                both.set(store.keys.epoch, 4)  # a change right behind the adoption
                both.execute()
            await reported(redis_server.url, at_epoch(4))
            assert ids(agent) == ["a.0", "b.0", "c.0"]

    play(story())


def test_refusals_are_reported_with_their_reason_and_the_rest_is_applied(store, node, redis_server):
    async def story():
        good, other = assignment("a.0"), assignment("b.0", kind="namespace")
        odd = assignment("c.0", when=["phase of the moon", "full"])
        store.commit(Draft("test", puts=(good, other, odd)))
        store.client.hset(store.keys.assignments, "d.0", b"torn")
        async with node() as agent:
            report = await reported(redis_server.url, at_epoch(1))
            assert report.refused["b.0"] == "`namespace` is not available on this node"
            assert "phase of the moon" in report.refused["c.0"]
            assert "not a Assignment" in report.refused["d.0"]
            assert agent.writer.count == 1

    play(story())


def test_a_full_disk_is_reported_and_the_rest_goes_on(store, node, redis_server, tmp_path, monkeypatch):
    async def story():
        commit(store, "a")
        async with node() as agent:
            await reported(redis_server.url, at_epoch(1))
            broken = _breaks(monkeypatch, agent.writer)
            commit(store, "b")
            report = await reported(redis_server.url, at_epoch(1, "failed"))
            assert "no space" in report.detail
            broken.undo()
            await reported(redis_server.url, at_epoch(2))
            assert ids(agent) == ["a.0", "b.0"]

    play(story())


def _breaks(monkeypatch, writer):
    from sluice_core.snapshot.reader import SnapshotError

    def apply(changes, judge):
        raise SnapshotError("no space left")

    monkeypatch.setattr(writer, "apply", apply)
    return monkeypatch


def test_two_agents_on_one_folder_are_refused(store, node, redis_server):
    async def story():
        async with node():
            await reported(redis_server.url, lambda report: report.node == "n1")
            with pytest.raises(ExceptionGroup) as caught:
                async with node() as second:
                    await second.run()
            assert caught.group_contains(PeerError, match="another running agent")

    play(story())
