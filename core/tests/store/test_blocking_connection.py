"""The blocking connection to Redis: passwords, other databases, Unix sockets, and a disconnection during a read."""

import asyncio

import pytest

from sluice_aio.base.backing_servers import RedisServer
from sluice_aio.base.ports import free_port
from sluice_core.errors import PeerError
from sluice_core.store.records import Draft
from sluice_core.store.store import AsyncStore, Store
from sluice_core.testing import assignment

pytestmark = pytest.mark.service


class LockedRedis(RedisServer):
    """A Redis with a password, which also listens on a Unix socket."""

    def argv(self):
        return [*super().argv(), "--requirepass", "secret", "--unixsocket", str(self.folder / "redis.sock")]

    def answers(self):
        return (self.folder / "redis.sock").exists()


@pytest.fixture(scope="module")
def locked(tmp_path_factory):
    with LockedRedis(free_port(), tmp_path_factory.mktemp("locked"), tied=True) as server:
        yield server


@pytest.mark.parametrize("form", ["redis://:secret@127.0.0.1:{port}/3", "unix://:secret@{folder}/redis.sock?db=4"])
def test_a_url_means_the_same_to_the_line_as_to_the_client(locked, form):
    url = form.format(port=locked.port, folder=locked.folder)
    plain = Store(url)
    plain.commit(Draft("me", puts=(assignment(),)))
    plain.close()

    async def story():
        store = AsyncStore(url)
        found = await store.changes_after(0)
        await store.close()
        return found

    assert [change.epoch for change in asyncio.run(story())] == [1]


def test_a_wrong_password_is_a_peer_error_that_does_not_tell_it(locked):
    async def story():
        store = AsyncStore(f"redis://:wrong-guess@127.0.0.1:{locked.port}/0")
        with pytest.raises(PeerError, match=r"(?i)password") as caught:
            await store.changes_after(0)
        assert "wrong-guess" not in str(caught.value)
        await store.close()

    asyncio.run(story())


@pytest.mark.probe
def test_a_redis_killed_during_a_blocking_read_is_a_peer_error_and_the_next_read_works(redis_server, store):
    async def story():
        mine = AsyncStore(redis_server.url)
        waiting = asyncio.create_task(mine.changes_after(0, block_ms=2000))
        while not store.client.info("clients")["blocked_clients"]:
            await asyncio.sleep(0)
        redis_server.kill()
        with pytest.raises(PeerError):
            await waiting
        with pytest.raises(PeerError):
            await mine.changes_after(0)
        redis_server.start()
        await asyncio.to_thread(redis_server.wait_ready)
        assert await mine.changes_after(0) == []
        await mine.close()

    asyncio.run(story())


def test_a_silent_peer_is_given_up_in_time():
    async def story():
        done = asyncio.Event()

        async def say_nothing(reader, writer):
            await done.wait()
            writer.close()

        server = await asyncio.start_server(say_nothing, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        store = AsyncStore(f"redis://127.0.0.1:{port}/0", timeout=0.2)
        with pytest.raises(PeerError, match="no answer within"):
            await store.changes_after(0)
        await store.close()
        done.set()
        server.close()

    asyncio.run(story())


def test_readers_at_the_same_time_do_not_disturb_each_other(redis_server, store):
    async def story():
        mine = AsyncStore(redis_server.url)
        waiting = [asyncio.create_task(mine.changes_after(0, block_ms=2000)) for _ in range(5)]
        while store.client.info("clients")["blocked_clients"] < 5:
            await asyncio.sleep(0)
        await mine.commit(Draft("me", puts=(assignment(),)))
        found = await asyncio.gather(*waiting)
        await mine.close()
        return found

    assert [[change.epoch for change in changes] for changes in asyncio.run(story())] == [[1]] * 5


def test_a_cancelled_read_does_not_leave_its_answer_to_the_next(redis_server, store):
    async def story():
        mine = AsyncStore(redis_server.url)
        waiting = asyncio.create_task(mine.changes_after(0, block_ms=2000))
        while not store.client.info("clients")["blocked_clients"]:
            await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        await mine.commit(Draft("me", puts=(assignment(),)))
        await mine.commit(Draft("me", puts=(assignment(),)))
        found = await mine.changes_after(1)
        await mine.close()
        return found

    assert [change.epoch for change in asyncio.run(story())] == [2]
