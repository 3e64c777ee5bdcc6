"""Two proxies become Sluice's one after the other, and stock ones again, behind clients that see no error.

The clients behave like a load balancer: a request that one proxy does not answer is sent to the other.
"""

import contextlib
import itertools
import shutil
import tempfile
from pathlib import Path

import pytest
from tests.support.cluster.background_loop import BackgroundLoop
from tests.support.cluster.object_files import object_files

from sluice_aio.base.layout import Layout
from sluice_aio.base.setup import KEYS, PROXY, READS, Setup
from sluice_aio.base.swift_http import SwiftHttp
from sluice_aio.cluster.cluster import Cluster
from sluice_aio.cluster.components import DEFAULT, SECOND_NODE
from sluice_aio.conf.swift import write_swift
from sluice_client import Client
from sluice_core.errors import PeerError

STOCK = Setup(parts=frozenset())
SLUICE = Setup(parts=frozenset({PROXY, READS, KEYS}))
TEXT = b"".join(b"%d: a line that compresses\n" % number for number in range(20_000))
POLICY = "FOR CONTAINER AUTH_test/load DO SET compression ON PROXY, SET encryption ON PROXY"


class Load(BackgroundLoop):
    """Continuous requests through both proxies in turn; records failures."""

    def __init__(self, clients):
        super().__init__(0.02)
        self._clients = itertools.cycle(clients)

    def step(self):
        body = TEXT[self.count % 5000 :]
        path = f"load/{self.count}"
        for method, given, expected, content in (
            ("PUT", {"body": body, "content_type": "text/plain"}, 201, None),
            ("GET", {}, 200, body),
            ("GET", {"range": "bytes=1000-1999"}, 206, body[1000:2000]),
            ("POST", {"x_object_meta_turn": "1"}, 202, None),
            ("HEAD", {}, 200, b""),
        ):
            answer = self._ask(method, path, given)
            if answer is None or answer.status != expected or content not in (None, answer.body):
                self.failures.append((method, path, answer and (answer.status, len(answer.body))))

    def _ask(self, method, path, given):
        for client in itertools.islice(self._clients, 2):
            with contextlib.suppress(PeerError):
                return client.request(method, path, **given)
        return None


@pytest.fixture
def cluster():
    folder = Path(tempfile.mkdtemp(prefix="sluice-"))
    try:
        with Cluster(Layout.free(folder), DEFAULT | SECOND_NODE, setup=STOCK) as running:
            yield running
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def test_proxies_change_one_by_one_and_back_and_no_client_notices(cluster, eventually):
    names = ("proxy", "proxy2")
    clients = [SwiftHttp(cluster.layout.url(name)).login("test:tester", "testing") for name in names]
    direct = SwiftHttp(cluster.layout.url("proxy")).login("test:tester", "testing")
    assert direct.request("PUT", "load").status == 201

    def is_stored_plain(path):
        return all(
            file.stat().st_size >= len(TEXT) for file in object_files(cluster.device_folders, f"AUTH_test/{path}")
        )

    def roll(setup, load):
        write_swift(cluster.layout, setup)
        for name in names:
            cluster.restart(name)
            load.wait_for_steps(2, eventually)

    with contextlib.closing(Client(cluster.api_url, cluster.token)) as api, Load(clients) as load:
        load.wait_for_steps(2, eventually)
        roll(SLUICE, load)
        eventually(lambda: all(one["workers"] for one in api.nodes()), 20)  # as the documentation says
        assert api.create_policy(POLICY, wait=10)["enforced"]["nodes"] == 2
        for client in clients:
            client.close()  # this thread's connection, from before
            assert client.request("PUT", "load/under", TEXT, content_type="text/plain").status == 201
            assert not is_stored_plain("load/under")
        load.wait_for_steps(2, eventually)
        for policy in api.policies():
            api.delete_policy(policy["id"], wait=10)
    direct.close()
    # new objects are not encoded; encoded ones are rewritten through a proxy that still can, and then Sluice may go
    for row in direct.listing("load"):
        path = f"load/{row['name']}"
        assert direct.request("COPY", path, destination=path).status == 201
        assert is_stored_plain(path) or row["bytes"] < len(TEXT)
    before = {row["name"]: row["hash"] for row in direct.listing("load")}
    with Load(clients) as load:
        load.wait_for_steps(2, eventually)
        roll(STOCK, load)
    direct.close()
    for name, etag in before.items():
        answer = direct.request("GET", f"load/{name}")
        assert (answer.status, answer.headers["etag"]) == (200, etag), name
    assert direct.request("GET", "load/under").body == TEXT
    for client in (direct, *clients):
        client.close()
