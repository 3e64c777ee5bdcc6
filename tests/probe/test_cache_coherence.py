"""Two nodes that cache: whichever client writes in whatever way, no client reads data from a second before."""

import contextlib
import json
import shutil
import signal
import tempfile
import time
from pathlib import Path

import pytest

from sluice_aio.base.layout import Layout
from sluice_aio.base.setup import CACHE, EC21, KEYS, PROXY, Setup
from sluice_aio.base.swift_http import SwiftHttp
from sluice_aio.cluster.cluster import Cluster
from sluice_aio.cluster.components import DEFAULT, SECOND_NODE
from sluice_client import Client
from sluice_core.cache.write_marks import object_digest, open_write_marks
from sluice_middleware.cache.index import open_table

#: Seconds after a write, in default mode, until no client may see the earlier data.
BOUND = 1.02
#: As the configuration says, since the index has a size that goes with it.
CACHE_SIZE = 256 << 20
#: Headers that differ between any two responses.
OWN = {"date", "x-trans-id", "x-openstack-request-id"}


class Nodes:
    """The cluster, and a client of each of its proxies."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.first, self.second, self.plain = (
            SwiftHttp(cluster.layout.url(name)).login("test:tester", "testing") for name in ("proxy", "proxy2", "plain")
        )
        self.folders = [cluster.layout.cache, cluster.layout.second_node().cache]

    def counts(self, node=0):
        with contextlib.closing(open_table(self.folders[node] / "table", CACHE_SIZE // 8192, "lru")) as table:
            return table.counts()

    def trusts(self, node=0):
        with contextlib.closing(open_write_marks(self.folders[node])) as marks:
            return marks.is_trusted()


@pytest.fixture(scope="module")
def nodes():
    folder = Path(tempfile.mkdtemp(prefix="sluice-"))
    setup = Setup(parts=frozenset({PROXY, CACHE, KEYS}))
    try:
        with Cluster(Layout.free(folder), DEFAULT | SECOND_NODE, plain=True, setup=setup) as running:
            found = Nodes(running)
            with Client(running.api_url, running.token) as api:
                for container, sentence in (
                    ("cached", "FOR CONTAINER AUTH_test/cached DO SET caching"),
                    ("strict", "FOR CONTAINER AUTH_test/strict DO SET caching WITH mode=strict"),
                    ("erasure", "FOR CONTAINER AUTH_test/erasure DO SET caching"),
                    ("packed", "FOR CONTAINER AUTH_test/packed DO SET caching, SET compression WITH min_size=0"),
                    ("sealed", "FOR CONTAINER AUTH_test/sealed DO SET caching, SET encryption"),
                ):
                    policy = {"x_storage_policy": EC21} if container == "erasure" else {}
                    assert found.first.request("PUT", container, **policy).status == 201
                    created = api.create_policy(sentence, wait=20)
                    assert created["enforced"]["nodes"] == created["enforced"]["total"] == 2
            yield found
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def trusting(nodes, eventually):
    eventually(lambda: nodes.trusts(0) and nodes.trusts(1), 60)


def hits(nodes, client, path, node=0):
    """Read until the response comes from the cache; return it."""
    for _ in range(10):
        before = nodes.counts(node)["hits"]
        answer = client.request("GET", path)
        if nodes.counts(node)["hits"] > before:
            return answer
    raise AssertionError(f"`{path}` does not get into the cache: {nodes.counts(node)}")


def test_reads_come_out_of_the_cache_of_each_node(nodes, trusting):
    assert nodes.first.request("PUT", "cached/o", b"one").status == 201
    assert hits(nodes, nodes.first, "cached/o").body == b"one"
    assert hits(nodes, nodes.second, "cached/o", 1).body == b"one"


@pytest.mark.parametrize("turn", range(3))
def test_after_a_write_through_the_other_node_nothing_old_is_read(nodes, trusting, turn):
    path = f"cached/other-{turn}"
    nodes.first.request("PUT", path, b"old")
    assert hits(nodes, nodes.first, path).body == b"old"
    nodes.second.request("PUT", path, b"new")
    time.sleep(BOUND)
    assert nodes.first.request("GET", path).body == b"new"
    hits(nodes, nodes.first, path)
    nodes.second.request("POST", path, x_object_meta_colour="blue")
    time.sleep(BOUND)
    assert nodes.first.request("GET", path).headers["x-object-meta-colour"] == "blue"
    nodes.second.request("DELETE", path)
    time.sleep(BOUND)
    assert nodes.first.request("GET", path).status == 404


def test_what_a_client_wrote_it_reads_through_the_same_node_at_once(nodes, trusting):
    for number in range(30):
        body = b"%d" % number
        nodes.first.request("PUT", "cached/own", body)
        assert nodes.first.request("GET", "cached/own").body == body


def test_strict_is_never_stale_even_when_nobody_tells(nodes, trusting):
    for number in range(20):
        body = b"%d" % number
        nodes.plain.request("PUT", "strict/o", body)  # this proxy has no cache
        assert nodes.first.request("GET", "strict/o").body == body
        assert nodes.second.request("GET", "strict/o").body == body
    assert nodes.counts()["validations"] > 0


def test_newest_goes_past_the_cache(nodes, trusting):
    nodes.first.request("PUT", "cached/newest", b"old")
    hits(nodes, nodes.first, "cached/newest")
    nodes.plain.request("PUT", "cached/newest", b"new")
    assert nodes.first.request("GET", "cached/newest", x_newest="true").body == b"new"


def test_who_may_not_read_gets_nothing_out_of_the_cache(nodes, trusting):
    nodes.first.request("PUT", "cached/secret", b"secret")
    hits(nodes, nodes.first, "cached/secret")
    stranger = SwiftHttp(nodes.cluster.proxy_url).login("test2:tester2", "testing2")
    target = f"{nodes.first.account}/cached/secret"
    assert stranger.raw("GET", target, {"X-Auth-Token": stranger.token}).status == 403
    assert stranger.raw("GET", target, {}).status == 401
    nodes.first.request("POST", "cached", x_container_read="test2:tester2")
    assert stranger.raw("GET", target, {"X-Auth-Token": stranger.token}).body == b"secret"
    nodes.first.request("POST", "cached", x_container_read="")
    assert stranger.raw("GET", target, {"X-Auth-Token": stranger.token}).status == 403


REQUESTS = [
    ("GET", {}),
    ("HEAD", {}),
    ("GET", {"range": "bytes=5-9"}),
    ("GET", {"range": "bytes=-7"}),
    ("GET", {"range": "bytes=0-1,9-11"}),
    ("GET", {"range": "bytes=99999999-"}),
    ("HEAD", {"range": "bytes=5-9"}),
    ("GET", {"if_none_match": "*"}),
    ("GET", {"if_match": "nothing"}),
    ("GET", {"if_match": "*", "range": "bytes=1-2"}),
    ("GET", {"if_modified_since": "Fri, 01 Jan 2038 00:00:00 GMT"}),
    ("GET", {"if_unmodified_since": "Fri, 01 Jan 1999 00:00:00 GMT"}),
    ("GET", {"origin": "http://example.com"}),
]


def seen(answer):
    """A response without values that must differ."""
    headers = {name: value for name, value in answer.headers.items() if name not in OWN}
    kind = headers.get("content-type", "")
    body = answer.body
    if "boundary=" in kind:
        boundary = kind.rpartition("boundary=")[2]
        headers["content-type"] = "multipart"
        body = body.replace(boundary.encode(), b"boundary")
    return answer.status, headers, body


@pytest.mark.parametrize(("method", "headers"), REQUESTS)
@pytest.mark.parametrize("name", ["plain", "large-slo", "large-dlo", "link", "empty"])
def test_an_answer_is_the_same_as_plain_swifts(nodes, trusting, method, headers, name):
    path = f"cached/{name}"
    if name not in [row["name"] for row in nodes.first.listing("cached")]:
        make(nodes.first, name)
    hits(nodes, nodes.first, path)
    assert seen(nodes.first.request(method, path, **headers)) == seen(nodes.plain.request(method, path, **headers))


@pytest.mark.parametrize(("method", "headers"), REQUESTS)
def test_an_answer_of_an_erasure_coded_object_is_the_same_as_plain_swifts(nodes, trusting, method, headers):
    if not nodes.first.listing("erasure"):
        nodes.first.request("PUT", "erasure/o", bytes(range(256)) * 2000, x_object_meta_a="b")
    hits(nodes, nodes.first, "erasure/o")
    ours = nodes.first.request(method, "erasure/o", **headers)
    assert seen(ours) == seen(nodes.plain.request(method, "erasure/o", **headers))


def test_what_is_compressed_below_is_kept_plain(nodes, trusting):
    body = b"a line that compresses\n" * 5000
    nodes.first.request("PUT", "packed/o", body)
    first = hits(nodes, nodes.first, "packed/o")
    assert first.body == body
    nodes.second.request("POST", "packed/o", x_object_meta_a="b")
    time.sleep(BOUND)
    after = hits(nodes, nodes.first, "packed/o")
    assert after.body == body
    assert after.headers["x-object-meta-a"] == "b"
    assert after.headers["etag"] == first.headers["etag"]
    assert nodes.first.request("GET", "packed/o", range="bytes=5-9").body == body[5:10]


def test_what_is_encrypted_below_never_lies_about_in_plain(nodes, trusting):
    secret = b"a secret that nobody is to find " * 100
    for client in (nodes.first, nodes.second):
        client.request("PUT", "sealed/o", secret)
        assert [client.request("GET", "sealed/o").body for _ in range(3)] == [secret] * 3
    for folder in nodes.folders:
        for path in folder.rglob("*"):
            assert not path.is_file() or secret[:32] not in path.read_bytes(), path


def make(client, name):
    """An object of each kind: most of them are cached in parts."""
    more = {"x_object_meta_colour": "gr\u00fcn".encode().decode("latin-1"), "content_type": "text/plain; charset=utf-8"}
    for part in range(2):
        client.request("PUT", f"cached/parts/{part}", b"%d" % part * 200_000)
    if name == "large-slo":
        parts = [{"path": f"cached/parts/{part}"} for part in range(2)]
        target = f"{client.account}/cached/{name}?multipart-manifest=put"
        answer = client.raw("PUT", target, {"X-Auth-Token": client.token}, json.dumps(parts).encode())
        assert answer.status == 201
    elif name == "large-dlo":
        client.request("PUT", f"cached/{name}", x_object_manifest="cached/parts/")
    elif name == "link":
        client.request("PUT", f"cached/{name}", x_symlink_target="cached/parts/1")
    else:
        client.request("PUT", f"cached/{name}", b"" if name == "empty" else bytes(range(256)) * 2000, **more)


def test_a_restarted_proxy_finds_its_objects_again(nodes, trusting, eventually):
    nodes.first.request("PUT", "cached/lasting", b"lasting")
    hits(nodes, nodes.first, "cached/lasting")
    nodes.cluster.restart("proxy")
    before = nodes.counts()
    fresh = SwiftHttp(nodes.cluster.proxy_url).login("test:tester", "testing")
    nodes.first = fresh
    assert fresh.request("GET", "cached/lasting").body == b"lasting"
    after = nodes.counts()
    assert (after["hits"], after["fills"]) == (before["hits"] + 1, before["fills"])


@pytest.mark.parametrize("victim", ["rabbit", "agent", "agent2"])
def test_while_nobody_tells_the_disks_are_asked(nodes, trusting, eventually, victim):
    path = f"cached/without-{victim}"
    nodes.first.request("PUT", path, b"0")
    hits(nodes, nodes.first, path)
    nodes.cluster.kill(victim, signal.SIGKILL)
    for number in range(1, 4):
        assert nodes.second.request("PUT", path, b"%d" % number).status == 201
        time.sleep(BOUND)
        assert nodes.first.request("GET", path).body == b"%d" % number
    nodes.cluster.restart(victim)
    eventually(lambda: nodes.trusts(0) and nodes.trusts(1), 60)
    assert nodes.first.request("GET", path).body == b"3"
    assert hits(nodes, nodes.first, path).body == b"3"
    nodes.second.request("PUT", path, b"last")
    time.sleep(BOUND)
    assert nodes.first.request("GET", path).body == b"last"


def test_a_worker_that_dies_within_a_write_leaves_the_object_in_doubt(nodes, trusting):
    nodes.first.request("PUT", "cached/doubt", b"old")
    hits(nodes, nodes.second, "cached/doubt", 1)
    with contextlib.closing(open_write_marks(nodes.folders[1])) as marks:
        key = object_digest(b"AUTH_test/cached/doubt")
        marks.begin(key)  # the other node's report before its worker was killed
        nodes.plain.request("PUT", "cached/doubt", b"new")  # the write of that worker, without a further report
        time.sleep(BOUND)
        assert nodes.second.request("GET", "cached/doubt").body == b"new"
