"""An agent and the Swift workers of its node, which read the snapshot that it took from a real Redis."""

import asyncio
import threading
from functools import partial

import pytest
from tests.support.middleware.agents import at_epoch, commit, play, reads_on, reported, running, until, worker

from sluice_agent import agent as agent_module
from sluice_agent.settings import Settings
from sluice_agent.snapshot import follower
from sluice_core.messages.nodes import Counters


@pytest.fixture
def node(redis_server, tmp_path):
    """A function that starts an agent of one node, any number of times."""
    return partial(running, redis_server.url, tmp_path)


def test_a_filter_that_a_worker_lacks_is_refused_until_the_worker_has_gone(store, node, redis_server, tmp_path):
    async def story():
        commit(store, "a")
        path = tmp_path / "agent.sock"
        async with node(socket=str(path)) as agent:
            await reported(redis_server.url, at_epoch(1))
            assert agent.writer.count == 1  # without workers no filter is missing
            able = await worker(path, "noop", name="able", pid=1)
            poor = await worker(path, "compression", name="poor", pid=2)
            report = await reported(redis_server.url, lambda report: report.refused)
            assert report.refused == {"a.0": "filter `noop` is not installed in proxy worker 2"}
            assert (report.workers, report.assignments) == (2, 0)
            poor.close()
            report = await reported(redis_server.url, lambda report: not report.refused)
            assert (report.workers, report.assignments) == (1, 1)
            able.close()

    play(story())


def test_after_a_replacement_the_ack_waits_for_workers_that_read_the_old_one(store, node, redis_server, tmp_path):
    async def story():
        commit(store, "a")
        path = tmp_path / "agent.sock"
        async with node():
            await reported(redis_server.url, at_epoch(1))
        (tmp_path / "snapshot" / "current").unlink()
        store.forget_node("n1")
        redis_server.kill()
        async with node(socket=str(path), replace_wait=20.0) as agent:
            await until(path.exists)
            connection = await worker(path, "noop")
            await until(lambda: agent.workers.count == 1)
            redis_server.start()  # tied to this thread, so not in another
            await asyncio.to_thread(redis_server.wait_ready)
            await until(lambda: agent.writer.position.epoch == 1)
            assert store.nodes() == []
            await reads_on(connection, agent.writer.snapshot_id)
            report = await reported(redis_server.url, at_epoch(1))
            assert report.detail == ""
            connection.close()

    play(story())


def test_an_agent_that_begins_with_a_replacement_waits_for_workers_to_come(
    store, node, redis_server, tmp_path, monkeypatch
):
    monkeypatch.setattr(follower, "_CONNECT_SECONDS", 0.3)

    async def story():
        commit(store, "a")
        path = tmp_path / "agent.sock"
        async with node():
            await reported(redis_server.url, at_epoch(1))
        (tmp_path / "snapshot" / "current").unlink()
        store.forget_node("n1")
        async with node(socket=str(path), replace_wait=20.0) as agent:
            await until(lambda: agent.writer.position.epoch == 1)
            assert agent.workers.count == 0  # the worker with the old snapshot has not reconnected yet
            connection = await worker(path, "noop")
            await reads_on(connection, "the old one")
            await asyncio.sleep(0.6)  # longer than workers take to reconnect
            assert store.nodes() == []
            await reads_on(connection, agent.writer.snapshot_id)
            report = await reported(redis_server.url, at_epoch(1))
            assert report.detail == ""
            connection.close()

    play(story())


def test_a_worker_that_never_reads_the_replacement_is_named(store, node, redis_server, tmp_path):
    async def story():
        path = tmp_path / "agent.sock"
        async with node(socket=str(path)):
            await until(path.exists)
            connection = await worker(path, "noop", pid=4711)
            await reported(redis_server.url, lambda report: report.workers == 1)
            commit(store, "a")
            report = await reported(redis_server.url, at_epoch(1))
            assert "4711" in report.detail
            connection.close()

    play(story())


def test_a_stale_socket_file_is_replaced(store, node, redis_server, tmp_path):
    async def story():
        path = tmp_path / "agent.sock"
        path.write_text("left by a killed agent")
        async with node(socket=str(path), worker_mode=0o600):
            await reported(redis_server.url, lambda report: report.node == "n1")
            connection = await worker(path, "noop")
            assert path.stat().st_mode & 0o777 == 0o600
            await reported(redis_server.url, lambda report: report.workers == 1)
            connection.close()
            await reported(redis_server.url, lambda report: report.workers == 0)
        assert not path.exists()

    play(story())


def test_a_worker_that_sends_no_message_is_disconnected(store, node, redis_server, tmp_path):
    async def story():
        path = tmp_path / "agent.sock"
        async with node(socket=str(path)):
            await until(path.exists)
            loop = asyncio.get_running_loop()
            for nonsense in (b"\xc1", Counters("other", 0.0).encode()):
                connection = await worker(path, "noop")
                await loop.sock_sendall(connection, nonsense)
                assert await loop.sock_recv(connection, 10) == b""
                connection.close()

    play(story())


def test_a_thread_is_waited_for_however_often_its_task_is_cancelled():
    async def story():
        begun, may_end, ended = threading.Event(), threading.Event(), threading.Event()

        def work():
            begun.set()
            may_end.wait()
            ended.set()

        task = asyncio.create_task(follower._finish(asyncio.to_thread(work)))
        await asyncio.to_thread(begun.wait)
        try:
            for _ in range(3):
                task.cancel()
                await asyncio.sleep(0.01)
            assert not task.done()
        finally:  # closing a loop waits for its threads
            may_end.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert ended.is_set()

    play(story())


def test_an_agent_ends_although_its_follower_loses_a_cancellation(redis_server, tmp_path, monkeypatch):
    monkeypatch.setattr(agent_module, "_CANCEL_AGAIN", 0.05)
    begun, lost = [], []

    async def loses(self):
        begun.append("to follow")
        while True:
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                if lost:
                    raise
                lost.append("a cancellation")

    monkeypatch.setattr(follower.SnapshotFollower, "run", loses)

    async def story():
        agent = agent_module.Agent(Settings("n1", redis_server.url, str(tmp_path / "snapshot")))
        task = asyncio.create_task(agent.run())
        await until(lambda: begun)
        task.cancel()
        await asyncio.wait({task}, timeout=10)
        assert task.cancelled()
        assert lost == ["a cancellation"]

    play(story())
