"""An agent against a real Redis: catching up, being cut off, and a Redis that forgot."""

import asyncio
import contextlib

import pytest

from sluice_agent.agent import Agent
from sluice_agent.settings import Settings
from sluice_aio.services import RedisServer, free_port
from sluice_core.errors import PeerError
from sluice_core.messages import Counters, Hello
from sluice_core.store import AsyncStore, Draft, Store
from sluice_core.testing import assignment

LIMIT = 30


@pytest.fixture(scope="module")
def redis_server(tmp_path_factory):
    with RedisServer(free_port(), tmp_path_factory.mktemp("redis"), tied=True) as server:
        yield server


@pytest.fixture
def store(redis_server):
    store = Store(redis_server.url)
    store.client.flushall()
    yield store
    store.close()


@pytest.fixture
def node(redis_server, tmp_path):
    """How to start an agent of one node, again and again."""

    @contextlib.asynccontextmanager
    async def start(**options):
        given = {"report_interval": 0.5, "replace_wait": 0.3, **options}
        agent = Agent(Settings("n1", redis_server.url, str(tmp_path / "snapshot"), **given))
        task = asyncio.create_task(agent.run())
        try:
            yield agent
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    return start


def play(story):
    async def limited():
        async with asyncio.timeout(LIMIT):
            await story

    asyncio.run(limited())


async def reported(url, holds):
    """The report of the node that ``holds``; every report is announced, so nothing is polled."""
    store = AsyncStore(url)
    async with store.client.pubsub(ignore_subscribe_messages=True) as news:
        await news.subscribe(store.keys.acks)
        await news.get_message(timeout=5)
        while True:
            for report in await store.nodes():
                if holds(report):
                    await store.close()
                    return report
            await news.get_message(timeout=5)


def at_epoch(epoch, state="ok"):
    return lambda report: (report.epoch, report.state) == (epoch, state)


def ids(agent):
    return sorted(one.id for one in agent.writer.assignments())


def commit(store, *names, **more):
    return store.commit(Draft("test", puts=tuple(assignment(f"{name}.0", f"AUTH_{name}") for name in names), **more))


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


def test_an_agent_that_was_there_first_takes_the_first_change(store, node, redis_server):
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


def test_after_the_stream_was_trimmed_everything_is_loaded(store, node, redis_server):
    async def story():
        commit(store, "a")
        async with node():
            await reported(redis_server.url, at_epoch(1))
        short = Store(redis_server.url, stream_length=1)
        for _ in range(250):
            commit(short, "b")
        short.commit(Draft("test", drops=("a.0",)))
        short.close()
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


def test_an_agent_that_was_off_during_the_adoption_adopts_too(store, node, redis_server):
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
        _fail_over(store, 3, "d.0")
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
        _fail_over(store, 4, "e.0")
        _fail_over(store, 3, "d.0")
        async with node() as agent:
            await reported(redis_server.url, at_epoch(5, "stale_history"))
            with store.client.pipeline() as both:
                both.set(store.keys.adopted, f"{store.head().history}:3")
                both.set(store.keys.epoch, 4)  # a change right behind the adoption
                both.execute()
            await reported(redis_server.url, at_epoch(4))
            assert ids(agent) == ["a.0", "b.0", "c.0"]

    play(story())


def _fail_over(store, epoch, lost):
    """What a replica looks like that never saw the last change."""
    store.client.set(store.keys.epoch, epoch)
    store.client.hdel(store.keys.assignments, lost)
    store.client.xdel(store.keys.changes, f"{epoch + 1}-0")


def test_refusals_are_reported_with_their_reason_and_the_rest_is_applied(store, node, redis_server):
    async def story():
        good, other = assignment("a.0"), assignment("b.0", kind="motif")
        odd = assignment("c.0", when=["phase of the moon", "full"])
        store.commit(Draft("test", puts=(good, other, odd)))
        store.client.hset(store.keys.assignments, "d.0", b"torn")
        async with node() as agent:
            report = await reported(redis_server.url, at_epoch(1))
            assert report.refused["b.0"] == "`motif` is not available on this node"
            assert "phase of the moon" in report.refused["c.0"]
            assert "not a Assignment" in report.refused["d.0"]
            assert agent.writer.count == 1

    play(story())


async def a_worker(path, *keywords, name="w1", pid=11, role="proxy"):
    """A Swift worker's end of the socket, after its hello."""
    loop = asyncio.get_running_loop()
    import socket

    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    connection.setblocking(False)
    await loop.sock_connect(connection, str(path))
    hello = Hello(name, role, pid, dict.fromkeys(keywords, 1), ("PUTS_SEC",))
    await loop.sock_sendall(connection, hello.encode())
    return connection


def test_a_filter_that_a_worker_lacks_is_refused_until_the_worker_has_gone(store, node, redis_server, tmp_path):
    async def story():
        commit(store, "a")
        path = tmp_path / "agent.sock"
        async with node(socket=str(path)) as agent:
            await reported(redis_server.url, at_epoch(1))
            assert agent.writer.count == 1  # nobody there who could lack it
            able = await a_worker(path, "noop", name="able", pid=1)
            poor = await a_worker(path, "compression", name="poor", pid=2)
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
            await _exists(path)
            worker = await a_worker(path, "noop")
            await _until(lambda: agent.workers.count == 1)
            redis_server.start()  # tied to this thread, so not in another
            await asyncio.to_thread(redis_server.wait_ready)
            await _until(lambda: agent.writer.position.epoch == 1)
            assert store.nodes() == []
            await _reads_on(worker, agent.writer.snapshot_id)
            report = await reported(redis_server.url, at_epoch(1))
            assert report.detail == ""
            worker.close()

    play(story())


def test_an_agent_that_begins_with_a_replacement_waits_for_workers_to_come(store, node, redis_server, tmp_path):
    async def story():
        commit(store, "a")
        path = tmp_path / "agent.sock"
        async with node():
            await reported(redis_server.url, at_epoch(1))
        (tmp_path / "snapshot" / "current").unlink()
        store.forget_node("n1")
        async with node(socket=str(path), replace_wait=20.0) as agent:
            await _until(lambda: agent.writer.position.epoch == 1)
            assert agent.workers.count == 0  # one that reads the old snapshot has not come again yet
            worker = await a_worker(path, "noop")
            await _reads_on(worker, "the old one")
            await asyncio.sleep(2.0)  # longer than workers take to come
            assert store.nodes() == []
            await _reads_on(worker, agent.writer.snapshot_id)
            report = await reported(redis_server.url, at_epoch(1))
            assert report.detail == ""
            worker.close()

    play(story())


async def _reads_on(worker, snapshot):
    """The worker says which snapshot it reads."""
    await asyncio.get_running_loop().sock_sendall(worker, Counters("w1", 0.0, (), snapshot).encode())


async def _exists(path):
    await _until(path.exists)


async def _until(holds):
    while not holds():
        await asyncio.sleep(0.01)


def test_a_worker_that_never_reads_the_replacement_is_named(store, node, redis_server, tmp_path):
    async def story():
        path = tmp_path / "agent.sock"
        async with node(socket=str(path)):
            await _exists(path)
            worker = await a_worker(path, "noop", pid=4711)
            await reported(redis_server.url, lambda report: report.workers == 1)
            commit(store, "a")
            report = await reported(redis_server.url, at_epoch(1))
            assert "4711" in report.detail
            worker.close()

    play(story())


def test_a_stale_socket_file_is_replaced(store, node, redis_server, tmp_path):
    async def story():
        path = tmp_path / "agent.sock"
        path.write_text("left by a killed agent")
        async with node(socket=str(path), worker_mode=0o600):
            await reported(redis_server.url, lambda report: report.node == "n1")
            worker = await a_worker(path, "noop")
            assert path.stat().st_mode & 0o777 == 0o600
            await reported(redis_server.url, lambda report: report.workers == 1)
            worker.close()
            await reported(redis_server.url, lambda report: report.workers == 0)
        assert not path.exists()

    play(story())


def test_a_worker_that_talks_nonsense_is_hung_up_on(store, node, redis_server, tmp_path):
    async def story():
        path = tmp_path / "agent.sock"
        async with node(socket=str(path)):
            await _exists(path)
            loop = asyncio.get_running_loop()
            for nonsense in (b"\xc1", Counters("other", 0.0).encode()):
                worker = await a_worker(path, "noop")
                await loop.sock_sendall(worker, nonsense)
                assert await loop.sock_recv(worker, 10) == b""
                worker.close()

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
    from sluice_core.snapshot import SnapshotError

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
