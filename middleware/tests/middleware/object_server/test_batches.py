"""A batch of HEADs and contractions has the effect and responses of single requests to Swift's object server."""

import json

import pytest
from tests.support.middleware.object_server import CODED, REPLICATED, StorageNode, swift_conf

from sluice_filters.testing.fake_filters import HeadedXor
from sluice_middleware.object_server.batches import BEGINS
from sluice_middleware.swift.diskfile_api import ObjectController, Request, Timestamp, read_metadata
from sluice_middleware.swift.object_batches import (
    LARGEST,
    METHOD,
    MOST,
    ObjectRequest,
    decode_answers,
    encode_requests,
)
from sluice_middleware.wsgi import sysmeta
from sluice_middleware.wsgi.stored_object import StoredObject

#: Swift leaves the file open when opening ends with an error.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

KEPT = {
    "X-Object-Meta-Color": "blue",
    "X-Object-Sysmeta-Sluice-Motif": "a record",
    "X-Object-Transient-Sysmeta-Sluice-Motif": "another",
    "Content-Disposition": "inline",
    "X-Delete-At": "4102444800",
}


@pytest.fixture(scope="module", autouse=True)
def policies(tmp_path_factory):
    with swift_conf(tmp_path_factory.mktemp("etc")):
        yield


@pytest.fixture
def node(tmp_path):
    return StorageNode(tmp_path / "node")


def look(name="a/c/o", device="sda", policy=REPLICATED):
    return ObjectRequest(device, 0, policy, *name.split("/", 2))


def contraction(node, name="a/c/o", seconds=1.0, device="sda", **headers):
    written = Timestamp(f"{node.clock + seconds:.5f}")  # rounded as a proxy's
    stored = {"x-timestamp": written.internal, "content-type": "text/plain", **headers}
    return look(name, device)._replace(stored=stored)


def send(node, *requests):
    answer = raw(node, encode_requests(requests))
    assert answer.status_int == 200, answer.body
    return decode_answers(answer.body, len(requests))


def raw(node, body):
    return Request.blank("/", method=METHOD, body=body).get_response(node.server)


def test_a_look_tells_what_a_head_tells(node):
    node.put(b"some bytes", headers=KEPT)
    head = node.request("HEAD")
    (answer,) = send(node, look())
    assert answer.status == 200
    found, expected = StoredObject(list(answer.headers)), StoredObject(list(head.headers.items()))
    assert found == expected
    assert found.version == expected.version
    assert found.motif_record == expected.motif_record
    told = {name.lower() for name, _ in answer.headers}
    assert {name.lower() for name in KEPT} <= told


def test_a_look_tells_metadata_that_were_posted(node):
    node.put(b"some bytes", headers=KEPT)
    node.request("POST", headers={"X-Object-Meta-Color": "red"})
    (answer,) = send(node, look())
    found = StoredObject(list(answer.headers))
    assert found == StoredObject(list(node.request("HEAD").headers.items()))
    assert found.own_headers()["x-object-meta-color"] == "red"
    assert found.timestamp != found.data_timestamp


def test_a_look_at_what_the_node_encodes_tells_of_the_plain_object(tmp_path):
    node = StorageNode(tmp_path / "encoding", filters=[HeadedXor])
    node.put(b"some bytes", "xor")
    assert node.files()[0].stat().st_size != 10
    (answer,) = send(node, look())
    found = StoredObject(list(answer.headers))
    assert found == StoredObject(list(node.request("HEAD").headers.items()))
    assert found.size == 10
    assert send(node, contraction(node))[0].status == 201
    assert node.files()[0].stat().st_size == 0


def test_an_object_server_without_batches_says_so(node):
    stock = ObjectController(node.conf, node.log)
    assert Request.blank("/", method=METHOD, body=b"[]").get_response(stock).status_int == 405


def test_no_contraction_is_begun_when_its_leases_may_have_ended(node):
    node.put(b"some bytes")
    times = iter([0.0, 1.0, 1.1, BEGINS])
    node.server._batches._clock = lambda: next(times)
    requests = [contraction(node), contraction(node, seconds=2.0)]
    assert [one.status for one in send(node, *requests)] == [201, 503]


def test_a_contraction_is_followed_by_a_pause_as_long_as_it_took_with_a_limit(node):
    for name in ("a/c/o", "a/c/slow"):
        node.put(b"some bytes", name=name)
    times, pauses = iter([0.0, 1.0, 1.002, 2.0, 3.0]), []
    node.server._batches._clock, node.server._batches._pause = lambda: next(times), pauses.append
    assert [one.status for one in send(node, contraction(node), contraction(node, "a/c/slow"))] == [201, 201]
    assert pauses == [pytest.approx(0.002), 0.005]


def test_answers_come_in_the_order_of_the_requests(node):
    for number in range(20):
        node.put(b"x" * number, name=f"a/c/{number}")
    answers = send(node, *(look(f"a/c/{number}") for number in range(30)))
    assert [one.status for one in answers] == [200] * 20 + [404] * 10
    sizes = [StoredObject(list(one.headers)).size for one in answers[:20]]
    assert sizes == list(range(20))


def test_contractions_of_several_devices_are_answered_in_the_order_of_the_requests(node):
    node.put(b"some bytes")
    node.put(b"some bytes", device="sdb")
    requests = [
        contraction(node, device="sdb"),
        look(),
        contraction(node, device="sdz"),
        contraction(node),
        look("a/c/none"),
        contraction(node, seconds=0.5, device="sdb"),
    ]
    assert [one.status for one in send(node, *requests)] == [201, 200, 507, 201, 404, 409]


@pytest.mark.parametrize("policy", [REPLICATED, CODED])
def test_what_is_not_there_cannot_be_looked_at(node, policy):
    node.put(b"some bytes", name="a/c/deleted")
    node.request("DELETE", name="a/c/deleted")
    answers = send(node, look("a/c/deleted"), look("a/c/none", policy=policy), look(device="sdz"))
    assert [one.status for one in answers] == [404, 404, 507]


def test_a_contraction_leaves_the_file_that_a_put_leaves(node, tmp_path):
    other = StorageNode(tmp_path / "other", clock=node.clock)
    headers = {**KEPT, sysmeta.CONTRACTED: sysmeta.encode_contracted(10)}
    for one in (node, other):
        one.put(b"some bytes", headers=KEPT)
    sent = {name.lower(): value for name, value in headers.items()}
    (answer,) = send(node, contraction(node, **sent, **{"x-trans-id": "tx", "x-backend-replication": "True"}))
    other.request("PUT", headers=headers)
    assert answer.status == 201
    (ours,), (theirs,) = node.files(), other.files()
    assert ours.name == theirs.name
    assert read_metadata(str(ours)) == read_metadata(str(theirs))
    assert ours.stat().st_size == 0
    assert node.get().headers[sysmeta.CONTRACTED] == headers[sysmeta.CONTRACTED]


@pytest.mark.parametrize("seconds", [0.0, -1.0])
@pytest.mark.parametrize("method", ["PUT", "DELETE"])
def test_what_was_written_since_stays(node, seconds, method):
    node.put(b"some bytes")
    if method == "DELETE":
        node.request("DELETE")
    before = node.files(".data"), node.files(".ts")
    (answer,) = send(node, contraction(node, seconds=seconds))
    assert answer.status == 409
    assert (node.files(".data"), node.files(".ts")) == before


def test_metadata_that_were_posted_since_hold_for_what_is_contracted(node):
    node.put(b"some bytes")
    written = node.clock
    node.request("POST", headers={"X-Object-Meta-Color": "red"})
    (answer,) = send(node, contraction(node, seconds=written + 0.5 - node.clock))
    assert answer.status == 201
    head = node.request("HEAD")
    assert (head.headers["X-Object-Meta-Color"], head.headers["Content-Length"]) == ("red", "0")


def test_a_server_that_had_no_object_takes_a_contraction(node):
    assert [one.status for one in send(node, contraction(node), contraction(node, device="sdz"))] == [201, 507]
    assert node.get().body == b""


def test_an_error_of_one_is_no_error_of_the_others(node):
    node.put(b"some bytes")
    bad = contraction(node)._replace(stored={"x-timestamp": "yesterday", "content-type": "text/plain"})
    assert [one.status for one in send(node, bad, look(), look(policy=7))] == [500, 200, 500]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "not JSON"),
        (b"{}", "no list"),
        (b"[]", "0 requests in a batch, expected 1 to 64"),
        (encode_requests([look()] * (MOST + 1)), "65 requests in a batch"),
        (json.dumps([["sda", 0, 0, "a", "c", None, None]]).encode(), "does not name an object"),
        (json.dumps([["../sda", 0, 0, "a", "c", "o", None]]).encode(), "does not name an object"),
        (json.dumps([["..", 0, 0, "a", "c", "o", None]]).encode(), "does not name an object"),
        (json.dumps([["sda", "../0", 0, "a", "c", "o", None]]).encode(), "does not name an object"),
        (json.dumps([["sda", 0, 0, "a", "c", "o", {"x-timestamp": "1"}]]).encode(), "does not name an object"),
        (json.dumps([["sda", 0, 0, "a", "c", "o", {"x-timestamp": "1", "content-type": 1}]]).encode(), "does not name"),
    ],
)
def test_what_is_no_batch_is_refused(node, body, reason):
    answer = raw(node, body)
    assert answer.status_int == 400
    assert reason in answer.body.decode()


def test_a_batch_is_no_way_to_send_much(node):
    assert raw(node, b" " * (LARGEST + 1)).status_int == 413
