"""Objects with homes on a live Swift: conditional writes, methods, and the loss of homes and storage nodes.

No policy gives a container homes yet, so that the fixture writes the mark into the container's databases.
"""

import json
import signal
import socket
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import quote

import pytest
from swift.common import utils
from swift.common.bufferedhttp import http_connect
from swift.common.ring import Ring

from sluice_aio.base.layout import OBJECT_HOMES, Layout
from sluice_aio.base.setup import DISKFILE, HOMES, OBJECT, Setup
from sluice_aio.base.swift_http import SwiftHttp
from sluice_aio.cluster.cluster import Cluster
from sluice_aio.cluster.components import PLAIN_SWIFT

SERVICES = PLAIN_SWIFT - {"plain"} | {"proxy", *OBJECT_HOMES}
CONTAINER = "tables"
#: Clients at the same time.
CLIENTS = 8


@pytest.fixture(scope="module")
def cluster():
    setup = Setup(parts=frozenset({OBJECT, DISKFILE, HOMES}))
    with (
        tempfile.TemporaryDirectory(prefix="sluice-") as folder,
        Cluster(Layout.free(Path(folder)), SERVICES, setup=setup) as running,
        pytest.MonkeyPatch.context() as patch,
    ):
        # the rings are read here, too: with the hash suffix of this cluster
        patch.setattr(utils, "SWIFT_CONF_FILE", str(running.layout.swift_dir / "swift.conf"))
        for part in ("HASH_PATH_PREFIX", "HASH_PATH_SUFFIX"):
            patch.setattr(utils, part, b"")
        login(running).request("PUT", CONTAINER)
        mark(running.layout, "AUTH_test", CONTAINER)
        yield running


def login(cluster):
    return SwiftHttp(cluster.proxy_url).login("test:tester", "testing")


def mark(layout, account, container):
    """Give the container homes."""
    partition, nodes = Ring(str(layout.swift_dir), ring_name="container").get_nodes(account, container)
    headers = {"X-Timestamp": utils.Timestamp.now().internal, "X-Container-Sysmeta-Sluice-Objects": "counter,map"}
    for node in nodes:
        place = (node["ip"], node["port"], node["device"], partition)
        answer = http_connect(*place, "POST", f"/{account}/{container}", headers=headers).getresponse()
        assert answer.status == 204


@pytest.fixture
def swift(cluster):
    return login(cluster)


def call(swift, name, method, argument=None):
    """Status, and the answer or the error."""
    target = f"{swift.account}/{CONTAINER}/{quote(name)}?call={method}"
    headers = {"X-Auth-Token": swift.token, "Content-Type": "application/json"}
    answer = swift.raw("POST", target, headers, json.dumps(argument).encode())
    return answer.status, json.loads(answer.body) if answer.body[:1] == b"{" else answer.body


def at_once(function, items):
    with ThreadPoolExecutor(CLIENTS) as pool:
        return list(pool.map(function, items))


def won(statuses):
    """Whether one client succeeded; never two.  A busy machine may leave others without an answer."""
    assert set(statuses) <= {201, 412, 503}, statuses
    assert statuses.count(201) <= 1, statuses
    return 201 in statuses


def test_one_of_many_clients_creates_an_object(cluster, swift):
    rounds = []
    for number in range(4):
        name = f"{CONTAINER}/once-{number}"

        def create(client, name=name):
            return login(cluster).request("PUT", name, f"by {client}".encode(), if_none_match="*").status

        statuses = at_once(create, range(CLIENTS))
        rounds.append(won(statuses))
        if rounds[-1]:
            assert swift.request("GET", name).body == f"by {statuses.index(201)}".encode()
    assert any(rounds)


def test_one_of_many_clients_replaces_a_version(cluster, swift):
    name = f"{CONTAINER}/versions"
    assert swift.request("PUT", name, b"0", if_match='"nothing"').status == 404
    swift.request("PUT", name, b"0")
    rounds = []
    for _ in range(4):
        etag = swift.request("HEAD", name).headers["etag"]

        def replace(client, etag=etag):
            return login(cluster).request("PUT", name, f"{etag} {client}".encode(), if_match=etag).status

        rounds.append(won(at_once(replace, range(CLIENTS))))
    assert any(rounds)
    assert swift.request("DELETE", name, if_match='"nothing"').status == 412
    assert swift.request("DELETE", name, if_match="*").status == 204
    assert swift.request("GET", name).status == 404


def test_appends_are_all_there_in_one_order(cluster, swift):
    name = f"{CONTAINER}/appended"
    swift.request("PUT", name, b"")

    def append(client):
        own = login(cluster)
        for _ in range(20 * CLIENTS):
            size = own.request("HEAD", name).headers["content-length"]
            answer = own.request("PUT", name, b"%d;" % client, x_object_append_at=size)
            if answer.status != 409:
                break
        return answer.status

    statuses = at_once(append, range(CLIENTS))
    appended = swift.request("GET", name).body.split(b";")[:-1]
    assert len(appended) == len(set(appended))
    assert {client for client, status in enumerate(statuses) if status == 201} <= set(map(int, appended))
    assert 201 in statuses


def test_a_counter_counts_each_call_once_while_its_home_is_killed(cluster, swift, eventually):
    assert swift.request("PUT", f"{CONTAINER}/count", x_object_sluice_type="counter").status == 201
    homes = list(OBJECT_HOMES)

    def add(client):
        own, outcomes = login(cluster), []
        for number in range(15):
            if (client, number) == (0, 5):
                for home in homes[:2]:  # one of them may be the home
                    cluster.kill(home)
            outcomes.append(call(own, "count", "counter.add", {"amount": 1})[0])
        return outcomes

    statuses = [status for outcomes in at_once(add, range(CLIENTS)) for status in outcomes]
    for home in homes[:2]:
        cluster.restart(home)
    assert set(statuses) <= {200, 503}
    acknowledged = statuses.count(200)
    assert acknowledged >= len(statuses) // 2
    total = eventually(lambda: call(swift, "count", "counter.read")[1].get("total"), 30)
    assert acknowledged <= total <= len(statuses)


def test_a_minority_of_storage_nodes_may_be_away_and_a_majority_may_not(cluster, swift, eventually):
    name = f"{CONTAINER}/quorum"
    swift.request("PUT", name, b"first")
    cluster.kill("object1", signal.SIGSTOP)
    try:
        assert eventually(lambda: swift.request("PUT", name, b"second").status == 201, 30)
        assert swift.request("GET", name).body == b"second"
        cluster.kill("object2", signal.SIGSTOP)
        try:
            assert swift.request("PUT", name, b"third").status == 503
        finally:
            cluster.kill("object2", signal.SIGCONT)
    finally:
        cluster.kill("object1", signal.SIGCONT)
    assert eventually(lambda: swift.request("GET", name).body in (b"second", b"third"), 30)
    assert eventually(lambda: swift.request("PUT", name, b"fourth").status == 201, 30)
    assert swift.request("GET", name).body == b"fourth"


def test_a_write_past_the_home_is_refused(cluster, swift):
    name = f"{CONTAINER}/guarded"
    swift.request("PUT", name, b"state")
    ring = Ring(str(cluster.layout.swift_dir), ring_name="object")
    partition, nodes = ring.get_nodes("AUTH_test", CONTAINER, "guarded")
    headers = {"X-Timestamp": utils.Timestamp.now().internal, "Content-Type": "text/plain", "Content-Length": "0"}
    for method in ("PUT", "POST", "DELETE"):
        for node in nodes:
            place = (node["ip"], node["port"], node["device"], partition)
            answer = http_connect(*place, method, f"/AUTH_test/{name}", headers=headers).getresponse()
            assert answer.status == 409, (method, answer.read())
    assert swift.request("GET", name).body == b"state"


def test_the_listing_has_size_and_etag_of_the_byte_stream(swift, eventually):
    answer = swift.request("PUT", f"{CONTAINER}/listed", b"0123456789")
    row = eventually(lambda: next((one for one in swift.listing(CONTAINER) if one["name"] == "listed"), None), 30)
    assert (row["bytes"], f'"{row["hash"]}"') == (10, answer.headers["etag"])
    swift.request("DELETE", f"{CONTAINER}/listed")
    assert eventually(lambda: all(one["name"] != "listed" for one in swift.listing(CONTAINER)), 30)


def test_a_body_that_is_not_what_the_client_announced_is_not_stored(cluster, swift):
    name = f"{CONTAINER}/whole"
    swift.request("PUT", name, b"whole")
    assert swift.request("PUT", name, b"damaged", etag="0" * 32).status == 422
    host, _, port = swift.address.partition(":")
    lines = (f"PUT {swift.account}/{name} HTTP/1.1", "Host: x", f"X-Auth-Token: {swift.token}", "Content-Length: 100")
    head = "\r\n".join(lines) + "\r\n\r\npart"
    with socket.create_connection((host, int(port))) as client:
        client.sendall(head.encode())
        client.shutdown(socket.SHUT_WR)
        assert b" 499 " in client.recv(1000).partition(b"\r\n")[0]
    assert swift.request("GET", name).body == b"whole"


def test_clients_without_the_right_to_write_do_not_reach_the_home(cluster, swift):
    swift.request("PUT", f"{CONTAINER}/mine", b"state")
    other = SwiftHttp(cluster.proxy_url).login("test2:tester2", "testing2")
    other.account = swift.account
    assert other.request("PUT", f"{CONTAINER}/mine", b"x").status == 403
    assert other.request("GET", f"{CONTAINER}/mine").status == 403
    assert swift.request("GET", f"{CONTAINER}/mine").body == b"state"
