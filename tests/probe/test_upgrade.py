"""Storage nodes become Sluice's one after the other, and stock ones again, under load and without a failed request.

Here every object server is a node of its own, with an agent; the proxies have Sluice all the time.
"""

import contextlib
import json
import re
import shutil
import tempfile
from pathlib import Path

import pytest
from tests.support.cluster.background_loop import BackgroundLoop
from tests.support.cluster.daemons import run_daemon
from tests.support.cluster.object_files import file_metadata, object_files
from tests.support.cluster.proxy_options import set_proxy_option

from sluice_aio.base.layout import OBJECT_DEVICES, Layout
from sluice_aio.base.setup import EC21, GOLD, KEYS, PROXY, READS, Setup
from sluice_aio.base.swift_http import SwiftHttp
from sluice_aio.cluster.cluster import Cluster
from sluice_aio.cluster.components import Program, script
from sluice_aio.conf.swift import write_swift
from sluice_client import Client
from sluice_core.errors import PeerError
from sluice_middleware.object_server.diskfile.cli import main
from sluice_middleware.object_server.diskfile.stored_metadata import ENTRY

#: Stock storage nodes behind proxies with Sluice.
STOCK = Setup(parts=frozenset({PROXY, READS, KEYS}), proxy_workers=1)
TEXT = b"".join(b"%d: a line that compresses\n" % number for number in range(20_000))
ON_NODES = "FOR CONTAINER AUTH_test/load DO SET compression ON STORAGE_NODE, SET encryption ON STORAGE_NODE"
NODES = tuple(OBJECT_DEVICES)


class Nodes:
    """A cluster in which each object server has an agent."""

    def __init__(self, cluster, stack):
        self.cluster = cluster
        self.client = SwiftHttp(cluster.proxy_url).login("test:tester", "testing")
        self.api = stack.enter_context(Client(cluster.api_url, cluster.token))
        self._sockets = {NODES[0]: cluster.layout.agent_socket}
        for name in NODES[1:]:
            stack.enter_context(self._agent(name))

    def _agent(self, name):
        """The agent of one more node, and its address."""
        layout = self.cluster.layout
        socket = self._sockets[name] = layout.run / f"{name}.sock"
        text = (layout.configs / "agent.conf").read_text()
        places = {
            layout.agent_socket: socket,
            layout.snapshots: layout.root / f"snapshot-{name}",
            "= node1": f"= {name}",
        }
        for old, new in places.items():
            text = text.replace(str(old), str(new))
        conf = layout.configs / f"agent-{name}.conf"
        conf.write_text(text)
        command = [script("sluice-agent"), "--config", str(conf)]
        return Program(f"agent-{name}", 0, layout.logs, command, socket.exists)

    def patient(self):
        """The proxy retries a storage node a second after a failure; Swift's default is a minute."""
        set_proxy_option(self.cluster.layout.swift_dir / "proxy.conf", "error_suppression_interval", "1")
        self.cluster.restart("proxy")
        self.client.close()

    def configure(self, setup):
        write_swift(self.cluster.layout, setup)
        for name, socket in self._sockets.items():
            conf = self.cluster.layout.swift_dir / f"{name}.conf"
            conf.write_text(conf.read_text().replace(str(self.cluster.layout.agent_socket), str(socket)))

    def switch(self, name, load, eventually):
        """Restart a node; continue when the proxy uses it again, and no request uses an object that it lacks."""
        self.cluster.restart(name)
        device = [self.cluster.layout.device(name)]

        def used():
            assert self.client.request("PUT", "load/witness", name.encode()).status == 201
            return [file_metadata(path).get("ETag") for path in object_files(device, "AUTH_test/load/witness")] == [
                self.client.request("HEAD", "load/witness").headers["etag"]
            ]

        eventually(used, 60)
        load.wait_for_steps(1, eventually)

    def transformed(self, path):
        return [ENTRY in file_metadata(file) for file in object_files(self.cluster.device_folders, f"AUTH_test/{path}")]

    def refused(self, policy):
        return self.api.policy(policy)["enforced"]["refused"]

    def named(self, policy):
        """The nodes that the first one waits for, by its report about the policy."""
        return set(re.findall(r"node `(\w+)` is waiting for object-server", json.dumps(self.refused(policy))))


class Load(BackgroundLoop):
    """Continuous requests of all kinds; records failures.

    Each object is another one: a node that was down still has the old state of objects written meanwhile, and
    returns it until it is replicated, as in any Swift.
    """

    def __init__(self, cluster):
        super().__init__(0.05)
        self._client = SwiftHttp(cluster.proxy_url).login("test:tester", "testing")

    def step(self):
        try:
            self._turn(f"load/{self.count}", TEXT[self.count % 5000 :])
        except PeerError as error:
            self.failures.append(str(error))

    def _turn(self, path, body):
        ask = self._client.request
        part = {"range": "bytes=1000-1999"}
        for method, given, expected, content in (
            ("PUT", {"body": body, "content_type": "text/plain"}, 201, None),
            ("GET", {}, 200, body),
            ("GET", part, 206, body[1000:2000]),
            ("POST", {"x_object_meta_turn": str(self.count)}, 202, None),
            ("HEAD", {}, 200, b""),
        ):
            self._check(method, path, ask(method, path, **given), expected, content)
        self._check("GET", "coded", ask("GET", "coded/o"), 200, TEXT)
        if self.count % 7 == 0:
            self._check("DELETE", path, ask("DELETE", path), 204, None)

    def _check(self, method, path, answer, expected, content):
        if answer.status != expected or content not in (None, answer.body):
            self.failures.append((method, path, answer.status, len(answer.body)))

    def __exit__(self, *_):
        try:
            super().__exit__(*_)
        finally:
            self._client.close()


@pytest.fixture
def nodes():
    folder = Path(tempfile.mkdtemp(prefix="sluice-"))
    try:
        with contextlib.ExitStack() as stack:
            cluster = stack.enter_context(Cluster(Layout.free(folder), setup=STOCK))
            found = Nodes(cluster, stack)
            found.patient()
            for container, policy in (("load", GOLD), ("coded", EC21), ("packed", GOLD)):
                assert found.client.request("PUT", container, x_storage_policy=policy).status == 201
            for path in ("coded/o", "load/before"):
                assert found.client.request("PUT", path, TEXT).status == 201
            yield found
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def test_a_rolling_upgrade_and_the_way_back_fail_no_request(nodes, eventually):
    policy = nodes.api.create_policy(ON_NODES)["id"]
    with Load(nodes.cluster) as load:
        eventually(lambda: len(nodes.refused(policy)) == len(NODES), 30)
        nodes.configure(Setup())
        for number, name in enumerate(NODES):
            assert nodes.refused(policy)
            assert nodes.client.request("PUT", "load/now", TEXT).status == 201
            assert not any(nodes.transformed("load/now")), f"transformed before node {number}"
            nodes.switch(name, load, eventually)
            eventually(lambda left=NODES[number + 1 :]: nodes.named(policy) == set(left), 30)
        eventually(lambda: not nodes.refused(policy), 30)

        def all_transformed():
            assert nodes.client.request("PUT", "load/now", TEXT).status == 201
            return nodes.transformed("load/now") == [True] * 3

        eventually(all_transformed, 30)
        assert nodes.transformed("load/before") == [False] * 3
        before = load.count + 1
        load.wait_for_steps(2, eventually)
    kept = before + 1 if before % 7 == 0 else before
    assert nodes.transformed(f"load/{kept}") == [True] * 3
    with Load(nodes.cluster) as load:
        nodes.api.delete_policy(policy, wait=20)
        for _ in range(2):  # as the documentation says
            for name, device in OBJECT_DEVICES.items():
                assert main(["--config", str(nodes.cluster.layout.swift_dir / f"{name}.conf"), "unwind", device]) == 0
        assert nodes.transformed("load/now") == [False] * 3
        nodes.configure(STOCK)
        for name in NODES:
            nodes.switch(name, load, eventually)
    for path in ("load/before", "load/now", "coded/o"):
        assert nodes.client.request("GET", path).body == TEXT
    for daemon in ("object-auditor", "object-replicator", "object-reconstructor"):
        run_daemon(nodes.cluster, daemon)
    assert [one for device in nodes.cluster.device_folders for one in device.glob("quarantined/*/*")] == []
