"""Storage daemons register; until all have, a node transforms no object."""

import asyncio
import logging
import os
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
from tests.support.middleware.object_server import Log, StorageNode, swift_conf

from sluice_agent.agent import Agent
from sluice_agent.metrics.worker_server import WorkerServer
from sluice_agent.settings import Settings
from sluice_agent.snapshot.capabilities import Capabilities
from sluice_agent.snapshot.storage_daemons import READY, STATE_FILE, StorageDaemons
from sluice_aio.base.backing_servers import RedisServer
from sluice_aio.base.ports import free_port
from sluice_core.errors import PeerError
from sluice_core.messages.nodes import STORAGE_STATE_SUFFIX, Hello, StorageState
from sluice_core.metrics.totals import Totals
from sluice_core.store.records import Draft
from sluice_core.store.store import AsyncStore
from sluice_core.testing import assignment
from sluice_middleware.object_server.diskfile import disk_filters
from sluice_middleware.object_server.diskfile.disk_filters import DiskFilters
from sluice_middleware.object_server.diskfile.registration import AgentRegistration
from sluice_middleware.object_server.diskfile.stored_metadata import VERSION

ROLES = ("object-server", "object-auditor")
ON_DISKS = assignment(keyword="xor", place="storage_node")


def daemon(role, actions=("xor", "csv"), stored=("xor",), disk_file=VERSION):
    return Hello(f"w-{role}", role, 7, dict.fromkeys(actions, 1), disk_file=disk_file, stored=stored)


def proxy(*actions):
    return Hello("p", "proxy", 8, dict.fromkeys(actions, 1))


@pytest.fixture
def paths(tmp_path):
    return {"folder": str(tmp_path / "snapshot"), "socket": str(tmp_path / "agent.sock")}


def verdict(paths):
    with open(paths["socket"] + STORAGE_STATE_SUFFIX, "rb") as file:
        return StorageState.decode(file.read())


# -- the agent --------------------------------------------------------------------------------------


def test_a_node_is_ready_when_every_required_daemon_has_come(paths):
    daemons = StorageDaemons(ROLES, **paths)
    daemons.open()
    assert verdict(paths).waiting == ROLES
    assert daemons.report() == "waiting for object-server, object-auditor"
    assert daemons.add(daemon("object-server"))
    assert not daemons.add(daemon("object-server"))
    assert not daemons.add(daemon("object-auditor", disk_file=0))
    assert "object-auditor (restart them" in daemons.refuse("xor")
    assert daemons.add(daemon("object-auditor"))
    assert daemons.refuse("xor") == ""
    assert daemons.report() == READY
    assert verdict(paths).waiting == ()


def test_registered_daemons_are_remembered_across_a_restart(paths):
    before = StorageDaemons(ROLES, **paths)
    before.open()
    for role in ROLES:
        before.add(daemon(role))
    after = StorageDaemons((*ROLES, "object-replicator"), **paths)
    after.open()
    assert after.waiting() == ("object-replicator",)
    assert verdict(paths).waiting == ("object-replicator",)


@pytest.mark.parametrize("raw", [b"", b"{", b'{"v":1,"daemons":[]}', b'{"v":1,"daemons":{"x":{}}}', b'{"v":9}'])
def test_an_unreadable_state_file_is_replaced(paths, raw, caplog):
    os.mkdir(paths["folder"])
    with open(os.path.join(paths["folder"], STATE_FILE), "wb") as file:
        file.write(raw)
    daemons = StorageDaemons(ROLES, **paths)
    daemons.open()
    assert daemons.waiting() == ROLES
    assert "must say hello again" in caplog.text


def test_an_unwritable_state_file_is_logged(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(PeerError, match="cannot write"):
        StorageDaemons(ROLES, str(tmp_path / "file" / "snapshot")).open()


@pytest.mark.parametrize(
    ("required", "known", "keyword", "reason"),
    [
        ((), [], "xor", ""),
        (ROLES, [], "xor", "these do not run disk files of Sluice here: object-server, object-auditor"),
        (ROLES, [daemon("object-server")], "csv", ""),
        (ROLES, [daemon("object-auditor")], "csv", "these do not run disk files of Sluice here: object-server"),
        (ROLES, [daemon(role) for role in ROLES], "rot13", "filter `rot13` is not installed in object-server, object-"),
        (ROLES, [daemon(ROLES[0]), daemon(ROLES[1], ())], "xor", "filter `xor` is not installed in object-auditor"),
    ],
)
def test_a_node_names_the_daemon_it_waits_for(required, known, keyword, reason):
    daemons = StorageDaemons(required)
    for hello in known:
        daemons.add(hello)
    assert daemons.refuse(keyword).startswith(reason)
    assert bool(daemons.refuse(keyword)) == bool(reason)


def test_a_policy_is_held_back_until_all_nodes_are_ready():
    capabilities = Capabilities(StorageDaemons())
    capabilities.add(proxy("xor"))
    assert capabilities.refuse(assignment(keyword="xor")) == ""
    assert not capabilities.needs_storage_state
    assert capabilities.refuse(ON_DISKS) == ""
    assert capabilities.needs_storage_state
    capabilities.unready_nodes = None
    assert capabilities.refuse(ON_DISKS) == "the reports of the other nodes were not read yet"
    capabilities.unready_nodes = {"n2": "waiting for object-auditor"}
    assert capabilities.refuse(ON_DISKS) == "node `n2` is waiting for object-auditor"
    assert capabilities.refuse(assignment(keyword="xor")) == ""


def test_a_new_daemon_updates_the_nodes_readiness():
    capabilities = Capabilities(StorageDaemons(("object-server",)))
    capabilities.add(proxy("xor"))
    assert "object-server" in capabilities.refuse(ON_DISKS)
    assert capabilities.add(daemon("object-server"))
    assert capabilities.refuse(ON_DISKS) == ""
    assert not capabilities.remove("w-object-server")  # its hello is kept


# -- the daemons ------------------------------------------------------------------------------------


@contextmanager
def listening(path):
    """An agent's server on a loop of its own; ``turn(n)`` lets it receive ``n`` messages."""
    heard = []
    loop = asyncio.new_event_loop()
    totals = Totals()

    async def make():
        news = asyncio.Event()

        def arrived(hello):
            heard.append(hello)
            news.set()

        workers = WorkerServer(path, totals, arrived, heard.append)
        workers.open()
        return workers, news

    workers, news = loop.run_until_complete(make())

    async def turn(count):
        while len(heard) < count:
            news.clear()
            await asyncio.wait_for(news.wait(), 30)

    async def close():
        workers.close()

    try:
        yield SimpleNamespace(messages=heard, workers=workers, turn=lambda count: loop.run_until_complete(turn(count)))
    finally:
        loop.run_until_complete(close())
        loop.close()


def registration(path, role="object-auditor"):
    log = Log(role)
    return AgentRegistration(path, role, DiskFilters({"sluice_agent_socket": path}, log), log)


def test_a_daemon_says_hello_and_is_no_reader_of_the_snapshot(paths):
    with listening(paths["socket"]) as agent:
        one = registration(paths["socket"])
        one.tick()
        one.tick()
        agent.turn(1)
        (hello,) = agent.messages
        assert (hello.role, hello.pid, hello.disk_file) == ("object-auditor", os.getpid(), VERSION)
        assert hello.actions["compression"] == 1
        assert "compression" in hello.stored
        assert "noop" not in hello.stored
        assert agent.workers.count == 1
        assert agent.workers.not_reading("another snapshot") == []
        one.disconnect()


def test_a_daemon_says_without_which_plugins_it_runs(paths, monkeypatch):
    def load(failures, surroundings):
        failures["stranger"] = "no module"
        return {}

    monkeypatch.setattr(disk_filters, "load_filters", load)
    with listening(paths["socket"]) as agent:
        one = registration(paths["socket"])
        one.tick()
        agent.turn(1)
        assert agent.messages[0].plugins == {"stranger": "no module"}
        one.disconnect()


def test_a_daemon_without_an_agent_retries(paths, caplog):
    caplog.set_level(logging.INFO)
    one = registration(paths["socket"])
    one.tick()
    one.tick()
    assert len([line for line in caplog.messages if "no agent at" in line]) == 1
    for _ in range(2):
        with listening(paths["socket"]) as agent:
            one.tick()
            agent.turn(1)
    assert "is back" in caplog.text
    one.disconnect()


@pytest.fixture
def node(tmp_path, paths):
    with swift_conf(tmp_path / "etc"):
        yield StorageNode(tmp_path / "node", {"sluice_agent_socket": paths["socket"]})


def test_an_object_server_transforms_once_its_agent_reports_readiness(node, paths):
    answer = node.put(b"text " * 5000, "compression")
    assert answer.status == "409 Refused by Sluice"
    assert answer.body.startswith(b"the agent has not said which storage daemons run disk files of Sluice")
    daemons = StorageDaemons(ROLES, **paths)
    daemons.open()
    answer = node.put(b"text " * 5000, "compression")
    assert answer.body == b"storage daemons of this node that do not run disk files of Sluice: " + ", ".join(
        ROLES
    ).encode("ascii")
    assert node.put(b"plain as ever").status == "201 Created"
    for role in ROLES:
        daemons.add(daemon(role))
    assert node.put(b"text " * 5000, "compression").status == "201 Created"
    assert node.get().body == b"text " * 5000


# -- several nodes -----------------------------------------------------------------------------


@pytest.fixture
def redis_server(tmp_path):
    with RedisServer(free_port(), tmp_path / "redis", tied=True) as server:
        yield server


async def reported(store, holds):
    """The first state of all reports, by node, for which ``holds`` is true; each report is announced."""
    async with store.client.pubsub(ignore_subscribe_messages=True) as news:
        await news.subscribe(store.keys.acks)
        while True:
            reports = {one.node: one for one in await store.nodes()}
            if holds(reports):
                return reports
            await news.get_message(timeout=5)


def test_a_node_without_disks_holds_a_policy_back_until_the_nodes_with_disks_can(redis_server, tmp_path):
    """A proxy that requested it sooner would have files replicated to nodes that consider them damaged."""

    async def story():
        store = AsyncStore(redis_server.url)
        await store.commit(Draft("test", puts=(ON_DISKS,)))
        named = {"report_interval": 0.2, "replace_wait": 0.2}
        proxy_node = Agent(Settings("n1", redis_server.url, str(tmp_path / "s1"), **named))
        disk_node = Agent(
            Settings("n2", redis_server.url, str(tmp_path / "s2"), storage_daemons=("object-server",), **named)
        )
        tasks = [asyncio.create_task(disk_node.run())]
        try:
            await reported(store, lambda found: "n2" in found and found["n2"].refused)
            tasks.append(asyncio.create_task(proxy_node.run()))
            held = await reported(store, lambda found: "n1" in found and found["n1"].refused)
            assert held["n2"].storage == "waiting for object-server"
            assert held["n1"].storage == ""
            held = await reported(store, lambda found: "n2" in str(found["n1"].refused))
            assert list(held["n1"].refused.values()) == ["node `n2` is waiting for object-server"]
            disk_node._add_worker(daemon("object-server"))
            done = await reported(store, lambda found: not found["n1"].refused and not found["n2"].refused)
            assert done["n2"].storage == READY
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await store.close()

    asyncio.run(asyncio.wait_for(story(), 60))
