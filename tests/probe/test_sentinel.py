"""A control plane as a cloud runs it: Redis behind TLS, or with a replica and a Sentinel; RabbitMQ with TLS, one down.

Given a node with `adopt = ask` and one with `adopt = failover`, the master is killed with changes
that its replica never saw, while policies are written: all services continue, the first node with its snapshot until an
operator adopts the history, the second by itself, and the reader of the API sees both states.

Tests docs/admin/operate.md.
"""

import asyncio
import contextlib
import itertools
import shutil
import signal
import tempfile
import time
from pathlib import Path

import pytest
from tests.support.actors.team import HostProcess, ScheduledNodes
from tests.support.cluster.certificates import Authority
from tests.support.cluster.secured_services import MASTER, SecureRabbit, SecureRedis, Sentinel, WatchedRedis

from sluice_aio.base.ports import HOST, free_port, probe
from sluice_aio.cluster.components import Program, script
from sluice_client import Client, ClientError, Retries
from sluice_core.store.store import AsyncStore

PASSWORD = "hunter2"
TOKEN = "an-admin-token-for-tests"
LIMIT = 240
BUSY = "FOR TENANT AUTH_busy WHEN PUTS_SEC > 3 DO SET compression TRANSIENT"
KEPT = "FOR TENANT AUTH_kept DO SET compression"


def schedule(window):
    return {"AUTH_busy": 9.0 if window % 8 < 2 else 1.0}


class Plane:
    """All processes of the control plane, two actor hosts and two agents, on a Redis and a RabbitMQ of their own."""

    def __init__(self, folder):
        self.folder = folder
        self.authority = Authority(folder / "authority")
        self.redis = self._redis()
        ports = (free_port(), free_port(), free_port())
        self.rabbit = SecureRabbit(ports, free_port(), folder / "rabbit", self.authority, tied=True)
        self.links = {
            "redis_url": self.redis[-1].url,
            "amqp_url": self.rabbit.secure_url.replace("@", f"@{HOST}:{free_port()},", 1),  # the first one is down
        }
        self.store = AsyncStore(self.links["redis_url"])
        self.hosts = [HostProcess(name, folder, self.store, **self.links) for name in ("h1", "h2")]
        self.agents = [self._agent("n1", "ask"), self._agent("n2", "failover")]
        self.api = self._api()
        self.nodes = ScheduledNodes(self.links["amqp_url"], schedule)

    def _redis(self):
        return [SecureRedis(free_port(), self.folder / "redis", self.authority, PASSWORD, tied=True)]

    async def replicated(self):
        """Do nothing: there is one Redis."""

    def _conf(self, name, section, **options):
        path = self.folder / f"{name}.conf"
        path.touch(mode=0o600)
        path.write_text("\n".join([f"[{section}]", *(f"{key} = {value}" for key, value in options.items()), ""]))
        return str(path)

    def _agent(self, name, adopt):
        own = {
            "node": name,
            "adopt": adopt,
            "socket": self.folder / f"{name}.sock",
            "snapshot_dir": self.folder / name,
            "code_dir": self.folder / f"{name}-code",
            "storage_daemons": "",
            "report_interval": 0.5,
        }
        conf = self._conf(name, "agent", **self.links, **own)
        command = [script("sluice-agent"), "--config", conf]
        return Program(name, 0, self.folder, command, (self.folder / f"{name}.sock").exists)

    def _api(self):
        token = self.folder / "token"
        token.touch(mode=0o600)
        token.write_text(TOKEN)
        port = free_port()
        options = {"bind": f"{HOST}:{port}", "auth": "token", "token_file": token, "redis_url": self.links["redis_url"]}
        command = [script("sluice-api"), "--config", self._conf("api", "api", **options)]
        question = b"GET /health HTTP/1.0\r\n\r\n"
        return Program("api", port, self.folder, command, lambda: probe(port, question).startswith(b"HTTP/1."))

    @property
    def url(self):
        return f"http://{HOST}:{self.api.port}"

    async def start(self):
        servers = [*self.redis, self.rabbit]
        for server in servers:
            server.start()
        for server in servers:
            await asyncio.to_thread(server.wait_ready, 180)
        await self.replicated()
        for program in (*self.agents, self.api):
            program.start()
        for host in self.hosts:
            await host.start()
        await self.nodes.start()
        for program in (*self.agents, self.api):
            await asyncio.to_thread(program.wait_ready, 90)

    async def close(self):
        await self.nodes.close()
        for host in self.hosts:
            await host.end(signal.SIGTERM)
        for program in (self.api, *self.agents):
            await asyncio.to_thread(program.stop)
        await self.store.close()
        for server in (self.rabbit, *self.redis):
            server.kill()
        self.rabbit.stop()

    def logs(self):
        return {path.name: path.read_text(errors="replace") for path in self.folder.glob("*.log")}


class Watched(Plane):
    """The same with two Redis and a Sentinel."""

    def _redis(self):
        self.first = WatchedRedis(free_port(), self.folder / "first", PASSWORD, tied=True)
        self.second = WatchedRedis(free_port(), self.folder / "second", PASSWORD, self.first.port, tied=True)
        self.sentinel = Sentinel(free_port(), self.folder / "sentinel", self.first, "watchword", tied=True)
        return [self.first, self.second, self.sentinel]

    async def replicated(self):
        """Wait until the second Redis follows the first and the Sentinel knows it."""
        replica = AsyncStore(self.second.url)
        while (await replica.client.info("replication"))["master_link_status"] != "up":
            await asyncio.sleep(0.05)
        await replica.close()
        watcher = self.store.client.connection_pool.sentinel_manager.sentinels[0]
        while not (await watcher.sentinel_masters())[MASTER]["num-slaves"]:
            await asyncio.sleep(0.05)

    async def part(self):
        """Keep later writes from reaching the second Redis."""
        replica, master = AsyncStore(self.second.url), AsyncStore(self.first.url)
        await replica.client.config_set("masterauth", "wrong")
        await master.client.execute_command("CLIENT", "KILL", "TYPE", "replica")
        while (await replica.client.info("replication"))["master_link_status"] == "up":
            await asyncio.sleep(0.02)
        for store in (replica, master):
            await store.close()


@contextlib.asynccontextmanager
async def running(plane):
    try:
        await plane.start()
        yield plane
    finally:
        await plane.close()


class Asked:
    """The API as an operator's script uses it; writes policies continuously while entered."""

    def __init__(self, url):
        self.client = Client(url, TOKEN, timeout=20, retries=Retries(tries=2))
        self._writer = Client(url, TOKEN, timeout=20, retries=Retries(tries=2))
        self._task = None
        self.written = {}

    async def __aenter__(self):
        self._over = False
        self._task = asyncio.create_task(asyncio.to_thread(self._write))
        return self

    async def __aexit__(self, *_):
        self._over = True
        await self._task
        self._writer.close()

    def _write(self):
        for count in itertools.count():
            if self._over:
                return
            began = time.monotonic()
            try:
                made = self._writer.create_policy(f"FOR CONTAINER AUTH_load/c{count} DO SET noop")
            except ClientError:
                time.sleep(0.1)
                continue
            self.written[made["id"]] = began


async def until(question, limit=60):
    """The result of ``question`` in a thread, as soon as it is true; errors of the API do not count."""
    end = time.monotonic() + limit
    while True:
        with contextlib.suppress(ClientError):
            answer = await asyncio.to_thread(question)
            if answer:
                return answer
        assert time.monotonic() < end, f"not within {limit} s: {question}"
        await asyncio.sleep(0.1)


def whole(policy):
    enforced = policy["enforced"]
    return enforced["nodes"] == enforced["total"] == 2


@pytest.fixture
def folder():
    """A short path, for its sockets."""
    made = Path(tempfile.mkdtemp(prefix="sl-"))
    yield made
    shutil.rmtree(made, ignore_errors=True)


def play(story):
    async def limited():
        async with asyncio.timeout(LIMIT):
            await story

    asyncio.run(limited())


def state(api, node):
    shown = api.node(node)
    return shown["state"], shown["detail"]


async def members(host):
    return (await host.report()).get("team", {}).get("members")


async def both_nodes(api):
    await until(lambda: len([one for one in api.nodes() if one["state"] == "ok"]) == 2)


async def all_well(plane, api):
    """Every process runs, logs only expected errors, and no passwords."""
    assert all(one.running for one in (*plane.hosts, *plane.agents, plane.api))
    await asyncio.to_thread(api.close)
    for name, text in plane.logs().items():
        for word in ("Traceback", PASSWORD, "watchword"):
            assert word not in text, (name, word)


def test_redis_behind_tls_and_a_password_serves_the_whole_control_plane(folder):
    async def story():
        async with running(Plane(folder)) as plane:
            api = Client(plane.url, TOKEN, timeout=20)
            await both_nodes(api)
            kept, busy = [await asyncio.to_thread(api.create_policy, text, 20) for text in (KEPT, BUSY)]
            assert whole(kept)
            await until(lambda: api.policy(busy["id"])["state"] == "active")
            while [await members(host) for host in plane.hosts] != [["h1", "h2"]] * 2:
                await asyncio.sleep(0.1)
            await all_well(plane, api)

    play(story())


def test_a_failover_that_loses_changes_under_load(folder):
    async def story():
        async with running(Watched(folder)) as plane:
            asked = Asked(plane.url)
            api = asked.client
            await both_nodes(api)
            kept, busy = [await asyncio.to_thread(api.create_policy, text, 20) for text in (KEPT, BUSY)]
            assert whole(kept)
            await until(lambda: api.policy(busy["id"])["state"] == "active")
            await plane.store.client.execute_command("WAIT", 1, 5000)
            await plane.part()
            lost = await asyncio.to_thread(api.create_policy, "FOR TENANT AUTH_lost DO SET compression", 20)
            assert whole(lost)
            async with asked:
                await until(lambda: len(asked.written) >= 5)
                plane.first.kill()
                killed = time.monotonic()
                await until(lambda: any(at > killed for at in list(asked.written.values())))
            await until(lambda: state(api, "n2")[0] == "ok" and "went along" in state(api, "n2")[1])
            assert (await until(lambda: state(api, "n1")[0] == "stale_history" and state(api, "n1")))[1]
            there = {one["id"] for one in await asyncio.to_thread(lambda: list(api.policies()))}
            assert {kept["id"], busy["id"]} <= there
            assert lost["id"] not in there
            after = {name for name, at in asked.written.items() if at > killed}
            assert after <= there, "what was written after the failover stays"
            await asyncio.to_thread(api.adopt)
            await until(lambda: state(api, "n1")[0] == "ok")
            fresh = await asyncio.to_thread(api.create_policy, "FOR TENANT AUTH_next DO SET compression", 20)
            assert whole(fresh)
            now = int(time.time())
            await until(lambda: any(one["window"] > now for one in api.policy(busy["id"])["firings"]))
            await all_well(plane, api)

    play(story())
