"""Attacks of clients on the way in: Sluice's header names, false lengths and checksums, exchanged code."""

import hashlib
import json
import random
import socket

import pytest
from tests.support.cluster.object_files import file_metadata, object_files

from sluice_aio.base import layout as conf_code
from sluice_aio.base.setup import EC21, GOLD
from sluice_aio.base.swift_http import SwiftHttp
from sluice_client import ApiError
from sluice_core.errors import PeerError
from sluice_middleware.object_server.diskfile.stored_metadata import ENTRY
from sluice_middleware.wsgi.sysmeta import CHAIN, ETAG, NODE, READ, REFUSED

BODY = random.Random(5).randbytes(150_000).hex().encode()
OTHER = b"another object, which was here before " * 2000
STEP = [{"f": "xor", "v": 1, "p": {}, "r": {"size": 1}}]
#: All headers that only Sluice and Swift may send, in every spelling.
FORGED = {
    CHAIN: json.dumps(STEP),
    CHAIN.lower().replace("-", "_"): json.dumps(STEP),
    ETAG: "0" * 32,
    NODE: json.dumps(STEP),
    "X-Object-Sysmeta-Other": "theirs",
    "X-Object-Transient-Sysmeta-Sluice-Chain": json.dumps(STEP),
    "X-Object-Sysmeta-Container-Update-Override-Size": "7",
    "X-Object-Sysmeta-Container-Update-Override-Etag": "f" * 32,
    "X-Backend-Container-Update-Override-Size": "7",
    "X-Backend-Container-Update-Override-Etag": "f" * 32,
    "X-Backend-Etag-Is-At": "X-Object-Meta-Colour",
    "X-Backend-Ignore-Range-If-Metadata-Present": "X-Object-Meta-Colour",
    "X-Backend-Storage-Policy-Index": "1",
    REFUSED: "not for you",
    READ: json.dumps({"steps": [{"f": "bitrev", "v": 1, "p": {}}], "a": {}, "range": None}),
    "X-Sluice-Chain": json.dumps(STEP),
    "X-Sluice-Node": json.dumps(STEP),
    "X-Sluice-Read": json.dumps(STEP),
    ENTRY: json.dumps({"v": 1, "size": 1, "crc": 0, "chain": STEP}),
}
SENTENCES = {
    "plain": "",
    "proxy": "FOR TENANT AUTH_test DO SET compression, SET encryption ON PROXY",
    "storage": "FOR TENANT AUTH_test DO SET compression ON STORAGE_NODE, SET encryption ON STORAGE_NODE",
}


@pytest.fixture(params=SENTENCES)
def place(request, policies):
    """Where policies work: nowhere, on the proxy, on storage nodes."""
    if SENTENCES[request.param]:
        policies(SENTENCES[request.param])
    return request.param


def silent(answer):
    """Whether a response contains no internal information."""
    odd = ("sluice", "sysmeta", "x-backend")
    return not [name for name in answer.headers if any(word in name.lower() for word in odd)]


def view(cluster, swift, path):
    """All data of an object: what a client sees, the listing, the files on the disks."""
    got, head = swift.request("GET", path), swift.request("HEAD", path)
    part = swift.request("GET", path, range="bytes=1000-1999")
    assert silent(got)
    assert silent(head)
    assert silent(part)
    container, _, name = path.partition("/")
    (row,) = [row for row in swift.listing(container) if row["name"] == name]
    stored = [file_metadata(file) for file in object_files(cluster.device_folders, f"AUTH_test/{path}")]
    return {
        "bytes": (got.body, part.status, part.body),
        "headers": sorted((name, value) for name, value in got.headers.items() if name.startswith("x-object")),
        "etags": (got.headers["etag"], head.headers["etag"], head.headers["content-length"]),
        "row": (row["bytes"], row["hash"], row["content_type"]),
        "stored": [(sorted(known), filters_of(known)) for known in stored],
    }


def filters_of(known):
    chain, node = json.loads(known.get(CHAIN, "[]")), json.loads(known.get(NODE, "[]"))
    stored = json.loads(known[ENTRY])["chain"] if ENTRY in known else []
    return [[one["f"] for one in steps] for steps in (chain, node, stored)]


def test_what_only_we_may_say_has_no_effect_and_never_comes_back(cluster, swift, place):
    """Every request is sent twice, with and without the header; the result is the same."""
    views = []
    for number, said in enumerate(({}, FORGED)):
        container = f"said-{place}-{number}"
        assert swift.request("PUT", container).status in (201, 202)
        meta = {"X-Object-Meta-Colour": "blue", "Content-Type": "text/plain"}
        answers = [
            swift.request("PUT", f"{container}/o", BODY, **meta, **said),
            swift.request("POST", f"{container}/o", **{"X-Object-Meta-Colour": "red"}, **said),
            swift.request("COPY", f"{container}/o", destination=f"{container}/copied", **said),
            swift.request("PUT", f"{container}/fetched", x_copy_from=f"{container}/o", **said),
            swift.request("GET", f"{container}/o", **said),
            swift.request("HEAD", f"{container}/o", **said),
            swift.request("GET", f"{container}/o", if_match=hashlib.md5(BODY).hexdigest(), **said),
        ]
        assert [answer.status for answer in answers] == [201, 202, 201, 201, 200, 200, 200]
        assert all(silent(answer) for answer in answers)
        assert answers[4].body == answers[6].body == BODY
        views.append([view(cluster, swift, f"{container}/{name}") for name in ("o", "copied", "fetched")])
        assert swift.request("DELETE", f"{container}/copied", **said).status == 204
        assert swift.request("GET", f"{container}/copied").status == 404
    honest, forged = views
    assert honest == forged
    assert all(one["bytes"][0] == BODY for one in honest)
    assert [len(one["stored"]) for one in honest] == [3, 3, 3]
    wanted = {"plain": [[], [], []], "proxy": [["compression", "encryption"], [], []]}
    both = ["compression", "encryption"]
    assert honest[0]["stored"][0][1] == wanted.get(place, [[], both, both])


def test_marks_do_not_travel_with_a_copy_to_where_no_policy_is(cluster, swift, policies):
    swift.request("PUT", "marked")
    swift.request("PUT", "bare")
    policies("FOR CONTAINER AUTH_test/marked DO SET compression, SET encryption ON STORAGE_NODE")
    assert swift.request("PUT", "marked/o", BODY).status == 201
    assert swift.request("COPY", "marked/o", destination="bare/o", **FORGED).status == 201
    files = object_files(cluster.device_folders, "AUTH_test/bare/o")
    assert len(files) == 3
    for file in files:
        assert file.read_bytes() == BODY
        assert filters_of(file_metadata(file)) == [[], [], []]


def lies():
    """Name → the error of a request: headers, body, whether the client then disconnects, expected statuses."""
    md5 = hashlib.md5(BODY).hexdigest()
    size = str(len(BODY))
    chunk = b"%x\r\n%s\r\n" % (len(BODY), BODY)
    return {
        "another etag": ({"ETag": "0" * 32, "Content-Length": size}, BODY, False, {422}),
        "no etag at all": ({"ETag": "good morning", "Content-Length": size}, BODY, False, {422}),
        "another etag, chunked": (
            {"ETag": "0" * 32, "Transfer-Encoding": "chunked"},
            chunk + b"0\r\n\r\n",
            False,
            {422},
        ),
        "shorter than its etag": ({"ETag": md5, "Content-Length": "4000"}, BODY[:4000], False, {422}),
        "longer than it is": ({"Content-Length": str(len(BODY) + 9)}, BODY, True, {499, 400}),
        "longer, with the right etag": ({"ETag": md5, "Content-Length": str(len(BODY) + 9)}, BODY, True, {499, 400}),
        "chunked without an end": ({"Transfer-Encoding": "chunked"}, chunk, True, {499, 400}),
        "chunked, cut in a chunk": ({"Transfer-Encoding": "chunked"}, chunk[:-5000], True, {499, 400}),
        "a chunk of no size": ({"Transfer-Encoding": "chunked"}, chunk + b"zz\r\n" + chunk, True, {499, 400}),
        "less than nothing": ({"Content-Length": "-5"}, b"", False, {400}),
        "a length that is no number": ({"Content-Length": "many"}, b"", False, {400}),
        "larger than any object": ({"Content-Length": str(6 << 30)}, b"", False, {413}),
        "no length": ({}, b"", False, {411}),
        "a coding that nobody knows": ({"Transfer-Encoding": "rot13", "Content-Length": size}, BODY, False, {400}),
        "two codings": ({"Transfer-Encoding": "gzip, chunked"}, chunk + b"0\r\n\r\n", False, {501}),
    }


def tell(client, path, headers, sent, hang_up):
    """Status of a PUT sent byte by byte unchanged."""
    host, _, port = client.address.partition(":")
    lines = [f"PUT {client.account}/{path} HTTP/1.1", f"Host: {client.address}", f"X-Auth-Token: {client.token}"]
    lines += [f"{name}: {value}" for name, value in headers.items()] + ["Connection: close", "", ""]
    with socket.create_connection((host, int(port)), timeout=60) as connection:
        connection.sendall("\r\n".join(lines).encode() + sent)
        if hang_up:
            connection.shutdown(socket.SHUT_WR)
        return int(connection.makefile("rb").readline().split()[1])


@pytest.fixture(scope="module")
def told_plain(cluster):
    """Error → plain Swift's status."""
    client = SwiftHttp(cluster.plain_url).login("test2:tester2", "testing2")
    client.request("PUT", "lies")
    return {name: tell(client, "lies/o", *lie[:3]) for name, lie in lies().items()}


@pytest.mark.parametrize("policy", [GOLD, EC21])
def test_lies_about_lengths_and_sums_store_nothing(cluster, swift, place, policy, told_plain):
    container = f"lies-{place}-{policy}"
    assert swift.request("PUT", container, x_storage_policy=policy).status in (201, 202)
    assert swift.request("PUT", f"{container}/kept", OTHER).status == 201
    for name, (headers, sent, hang_up, expected) in lies().items():
        for target in ("fresh", "kept"):
            status = tell(swift, f"{container}/{target}", headers, sent, hang_up)
            assert status in expected, name
            assert status == told_plain[name], name
    assert swift.request("GET", f"{container}/fresh").status == 404
    assert swift.request("GET", f"{container}/kept").body == OTHER
    assert [(row["name"], row["bytes"]) for row in swift.listing(container)] == [("kept", len(OTHER))]
    assert object_files(cluster.device_folders, f"AUTH_test/{container}/fresh") == []


SCRAMBLE = {
    "keyword": "scramble",
    "environment": "wasm",
    "language": "wasm",
    "reverse": True,
    "capabilities": {"changes_length": False, "stage": 450},
    "parameters": [],
    "help": "not a cipher",
}


@pytest.fixture
def scramble(api):
    api.register_filter(SCRAMBLE)
    yield
    api.unregister_filter("scramble", force=True)


@pytest.fixture
def code_place(cluster):
    """The account that stores uploaded code."""
    return SwiftHttp(cluster.proxy_url).login(conf_code.CODE_USER, conf_code.ensure_code_key(cluster.layout))


def send_code(api, code, digest):
    headers = {"X-Content-Sha256": digest, "Content-Type": "application/octet-stream"}
    api._transport.call("PUT", "/filters/scramble/data", data=code, headers=headers)


def names(client, container):
    try:
        return [row["name"] for row in client.listing(container)]
    except PeerError:  # it is created with the first object
        return []


def test_code_of_another_digest_is_refused_by_the_api_and_by_nodes(cluster, api, code_place, scramble, eventually):
    code = b"\0asm" + random.Random(9).randbytes(25_000)
    right = hashlib.sha256(code).hexdigest()
    before = names(code_place, "sluice-code")
    for digest, status in (("0" * 64, 422), ("short", 400)):
        with pytest.raises(ApiError) as refused:
            send_code(api, code, digest)
        assert refused.value.status == status, refused.value
    assert not api.filter("scramble").get("sha256")
    assert names(code_place, "sluice-code") == before
    send_code(api, code, right)
    assert api.filter("scramble")["sha256"] == right
    on_node = cluster.layout.code / right
    eventually(on_node.exists)
    # a client with the account's key changes it in Swift: no node accepts it
    assert code_place.request("PUT", f"sluice-code/{right}", code[:-1] + b"!").status == 201
    on_node.unlink()
    other = hashlib.sha256(code[:-1] + b"!").hexdigest()
    eventually(lambda: f"code has SHA-256 `{other}`, expected `{right}`" in cluster.log("agent"), 20)
    assert not on_node.exists()
    assert code_place.request("PUT", f"sluice-code/{right}", code).status == 201
    eventually(on_node.exists, 30)
    assert on_node.read_bytes() == code
