"""Real servers behind TLS, and a Sentinel that makes the other Redis the master."""

import asyncio
import shutil

import pytest
from tests.support.cluster.certificates import Authority
from tests.support.cluster.secured_services import MASTER, SecureRedis, Sentinel, WatchedRedis

from sluice_aio.base.ports import HOST, free_port
from sluice_core.errors import PeerError
from sluice_core.store.records import Draft, Gap
from sluice_core.store.store import AsyncStore, Store
from sluice_core.testing import assignment

pytestmark = pytest.mark.service

PASSWORD = "hunter2"
DRAFT = Draft("me", puts=(assignment(),))
LIMIT = 120


@pytest.fixture(scope="module")
def secure(tmp_path_factory, authority):
    with SecureRedis(free_port(), tmp_path_factory.mktemp("secure"), authority, PASSWORD, tied=True) as server:
        yield server


async def both(url):
    """The replies of the client and of the blocking connection of one store."""
    store = AsyncStore(url)
    try:
        return (await store.head()).epoch, len(await store.changes_after(0))
    finally:
        await store.close()


def test_client_and_line_speak_tls_with_a_certificate_and_a_password(secure):
    store = Store(secure.url)
    done = store.commit(DRAFT)
    store.close()
    assert asyncio.run(both(secure.url)) == (done.epoch, done.epoch)


def test_a_server_whose_certificate_nobody_vouches_for_is_not_talked_to(secure, authority, tmp_path):
    stranger = Authority(tmp_path / "stranger")
    url = secure.url.replace(str(authority.ca), str(stranger.ca))
    store = Store(url)
    with pytest.raises(PeerError, match=r"(?i)certificate verify failed"):
        store.head()
    store.close()
    for ask in ("head", "line"):
        with pytest.raises(PeerError, match=r"(?i)certificate verify failed"):
            asyncio.run(one(url, ask))


def test_a_certificate_of_another_host_is_refused_unless_told_otherwise(secure):
    url = secure.url.replace(f"@{HOST}:", "@localhost:")
    for ask in ("head", "line"):
        with pytest.raises(PeerError, match=r"(?i)mismatch|not valid for"):
            asyncio.run(one(url, ask))
        asyncio.run(one(f"{url}&ssl_check_hostname=false", ask))


@pytest.mark.parametrize("ask", ["head", "line"])
def test_without_a_certificate_of_our_own_or_with_its_file_gone_it_is_a_peer_error(secure, authority, ask, tmp_path):
    with pytest.raises(PeerError):
        asyncio.run(one(f"rediss://:{PASSWORD}@{HOST}:{secure.port}/0?ssl_ca_certs={authority.ca}", ask))
    ca = tmp_path / "ca.pem"
    shutil.copy(authority.ca, ca)
    url = secure.url.replace(str(authority.ca), str(ca))
    asyncio.run(one(url, ask))
    ca.unlink()
    with pytest.raises(PeerError) as refused:
        asyncio.run(one(url, ask))
    assert PASSWORD not in str(refused.value)


async def one(url, ask):
    store = AsyncStore(url)
    try:
        await (store.head() if ask == "head" else store.changes_after(0))
    finally:
        await store.close()


class Pair:
    """Two Redis and a Sentinel that watches them."""

    def __init__(self, folder):
        self.first = WatchedRedis(free_port(), folder / "first", PASSWORD, tied=True)
        self.second = WatchedRedis(free_port(), folder / "second", PASSWORD, self.first.port, tied=True)
        self.sentinel = Sentinel(free_port(), folder / "sentinel", self.first, "watchword", tied=True)

    async def begin(self):
        for server in (self.first, self.second, self.sentinel):
            server.start()
            await asyncio.to_thread(server.wait_ready)
        second = AsyncStore(self.second.url)
        while (await second.client.info("replication"))["master_link_status"] != "up":
            await asyncio.sleep(0.05)
        await second.close()
        watcher = AsyncStore(self.sentinel.url)
        sentinel = watcher.client.connection_pool.sentinel_manager.sentinels[0]
        # how often it checks, in milliseconds; by default it takes ten seconds to notice a role
        await sentinel.execute_command("SENTINEL", "DEBUG", "INFO-PERIOD", 300, "PUBLISH-PERIOD", 200)
        while not (await sentinel.sentinel_masters())[MASTER]["num-slaves"]:
            await asyncio.sleep(0.05)
        await watcher.close()

    def end(self):
        for server in (self.sentinel, self.second, self.first):
            server.kill()


@pytest.fixture
def pair(tmp_path):
    pair = Pair(tmp_path)
    yield pair
    pair.end()


def play(story):
    async def limited():
        async with asyncio.timeout(LIMIT):
            await story

    asyncio.run(limited())


@pytest.mark.probe
def test_the_master_is_found_anew_after_a_failover(pair):
    async def story():
        await pair.begin()
        away = free_port()
        url = pair.sentinel.url.replace(f"@{HOST}:", f"@{HOST}:{away},{HOST}:")  # one Sentinel of two is unreachable
        store, plain = AsyncStore(url), Store(url)
        assert (await store.commit(DRAFT)).epoch == 1
        assert plain.head().epoch == 1
        waiting = asyncio.create_task(store.changes_after(1, block_ms=60_000))
        await store.client.execute_command("WAIT", 1, 2000)
        pair.first.kill()
        with pytest.raises(PeerError):
            await waiting
        said = []  # until the Sentinel has decided, every call fails in bounded time
        while True:
            try:
                async with asyncio.timeout(30):
                    again = await store.commit(DRAFT)
                break
            except PeerError as error:
                said.append(str(error))
                await asyncio.sleep(0.05)
        assert again.epoch == 2
        assert said
        assert not any(PASSWORD in text or "watchword" in text for text in said)
        assert store.client.connection_pool.master_address == (HOST, pair.second.port)
        assert [change.epoch for change in await store.changes_after(0)] == [1, 2]
        assert plain.head().epoch == 2
        # the old master restarts and becomes a replica; no client writes there
        pair.first.start()
        await asyncio.to_thread(pair.first.wait_ready)
        old = AsyncStore(pair.first.url)
        while (await old.client.info("replication"))["role"] != "slave":
            await asyncio.sleep(0.05)
        assert (await store.commit(DRAFT)).epoch == 3
        assert not isinstance(await store.changes_after(2), Gap)
        for one_of_them in (store, old):
            await one_of_them.close()
        plain.close()

    play(story())


def test_sentinels_that_are_away_or_refuse_us_are_a_peer_error_in_bounded_time(pair):
    async def story():
        await pair.begin()
        for url in (
            f"redis+sentinel://:{PASSWORD}@{HOST}:{free_port()},{HOST}:{free_port()}/{MASTER}/0",
            pair.sentinel.url.replace("watchword", "wrong-guess"),
            pair.sentinel.url.replace(f"/{MASTER}/", "/another/"),
        ):
            store = AsyncStore(url)
            for ask in (store.head, lambda store=store: store.changes_after(0)):
                with pytest.raises(PeerError, match="no sentinel answers that knows a living master") as caught:
                    async with asyncio.timeout(30):
                        await ask()
                shown = f"{caught.value!r} {caught.value}"
                assert not any(secret in shown for secret in (PASSWORD, "watchword", "wrong-guess"))
            await store.close()

    play(story())
