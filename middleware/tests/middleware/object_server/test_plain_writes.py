"""Writes that are not of a home: refused where the device has a promise or a state, and as ever elsewhere."""

import io

import pytest
from swift.common.middleware.gatekeeper import GatekeeperMiddleware
from tests.support.middleware.object_server import CODED, REPLICATED, StorageNode, swift_conf
from tests.support.middleware.voters import CREATED, STATE, Voter, damage

from sluice_middleware.swift.diskfile_api import Request, Timestamp
from sluice_middleware.swift.object_batches import METHOD, ObjectRequest, decode_answers, encode_requests
from sluice_middleware.swift.object_votes import LOOK
from sluice_middleware.swift.proxy_api import header_to_environ_key
from sluice_middleware.wsgi import sysmeta
from sluice_objects.protocol.acceptor import Promise
from sluice_objects.protocol.stamps import Stamp
from sluice_rewrites.offsets import next_offset

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

FIRST = Stamp(CREATED, 1, 0)
METHODS = ["PUT", "POST", "DELETE"]


@pytest.fixture(scope="module", autouse=True)
def policies(tmp_path_factory):
    with swift_conf(tmp_path_factory.mktemp("etc")):
        yield


@pytest.fixture
def node(tmp_path):
    return StorageNode(tmp_path / "node")


@pytest.fixture
def voter(node):
    return Voter(node)


def refused(response):
    return response.status == sysmeta.REFUSED_STATUS and "has a home" in response.headers[sysmeta.REFUSED]


@pytest.mark.parametrize("method", METHODS)
def test_a_plain_write_does_not_change_a_state(node, voter, method):
    stamp = voter.create()
    assert refused(node.request(method, body=b"plain" if method == "PUT" else b""))
    response = node.get()
    assert (response.body, response.headers["X-Backend-Timestamp"]) == (STATE.body, stamp.internal)
    assert len([*node.files(), *node.files(".ts"), *node.files(".meta")]) == 1


@pytest.mark.parametrize("method", METHODS)
def test_a_plain_write_does_not_change_a_state_that_a_replicator_brought(node, voter, method):
    voter.replicate(FIRST.next_version())
    assert refused(node.request(method))


@pytest.mark.parametrize("method", ["PUT", "DELETE"])
def test_a_plain_write_does_not_slip_in_behind_a_promise(node, voter, method):
    voter.promise(FIRST)
    assert refused(node.request(method))
    assert voter.ask(LOOK).stored is None


@pytest.mark.parametrize("method", METHODS)
def test_a_promise_for_a_plain_object_refuses_plain_writes(node, voter, method):
    node.put(b"plain")
    voter.promise(Stamp.read(f"{node.clock:.5f}").with_ballot(1))
    assert refused(node.request(method))
    assert node.get().body == b"plain"


def test_the_expirer_does_not_delete_a_state(node, voter):
    node.put(b"plain", headers={"X-Delete-At": str(int(node.clock) + 20)})
    expires = int(node.clock) + 19
    voter.promise(Stamp.read(f"{node.clock:.5f}").with_ballot(1))
    node.clock += 30
    assert refused(node.request("DELETE", headers={"X-If-Delete-At": str(expires)}))


def test_the_reconciler_does_not_write_over_a_state(node, voter):
    stamp = voter.create()
    assert refused(node.request("PUT", headers={"X-Timestamp": stamp._replace(created=CREATED + 1, ballot=0).internal}))


@pytest.mark.parametrize("copied", [False, True])
def test_a_contraction_does_not_change_a_state(node, voter, copied):
    if copied:
        voter.replicate(FIRST.next_version())
    else:
        voter.create()
    later = Timestamp(f"{node.clock + 1:.5f}").internal
    stored = {"x-timestamp": later, "content-type": "text/plain"}
    body = encode_requests([ObjectRequest("sda", 0, REPLICATED, "a", "c", "o", stored)])
    response = Request.blank("/", method=METHOD, body=body).get_response(node.server)
    assert [one.status for one in decode_answers(response.body, 1)] == [409]
    assert node.get().body == STATE.body


def test_a_damaged_record_refuses_plain_writes(node, voter):
    voter.promise(FIRST)
    damage(node, "???/*")
    assert refused(node.put(b"plain"))


class PromiseOnRead(io.BytesIO):
    """A body; when it is read a home gets a promise."""

    def __init__(self, body, voter):
        super().__init__(body)
        self.voter = voter
        self.answer = None

    def read(self, *size):
        self.answer = self.answer or self.voter.promise(FIRST)
        return super().read(*size)


def test_a_promise_while_a_plain_body_arrives_refuses_the_plain_object(node, voter):
    body = PromiseOnRead(b"plain", voter)
    response = voter.send_put(body, 5, {"X-Timestamp": f"{node.clock:.5f}"})
    assert body.answer == Promise(None, True)
    assert refused(response)
    assert not node.files()


def test_a_device_with_nothing_takes_plain_writes(node, voter):
    voter.create("a/c/typed")
    assert node.put(b"plain").status.startswith("201")
    assert node.request("POST", headers={"X-Object-Meta-A": "1"}).status.startswith("202")
    assert node.request("DELETE").status.startswith("204")
    assert node.put(b"plain", policy=CODED, headers={"X-Object-Sysmeta-Ec-Frag-Index": "0"}).status.startswith("201")


def test_plain_objects_with_large_offsets_are_no_states(node):
    node.put(b"plain")
    offset = next_offset(0, multiples=300)
    assert offset > 1 << 40
    rewritten = Timestamp(f"{node.clock:.5f}", offset=offset)
    assert node.put(b"again", headers={"X-Timestamp": rewritten.internal}).status.startswith("201")
    assert node.put(b"plain").status.startswith("201")
    assert node.request("DELETE").status.startswith("204")


@pytest.mark.parametrize("name", [sysmeta.HOME, sysmeta.VOTERS, sysmeta.CLASS, "X-Backend-Replication"])
def test_a_client_cannot_write_as_a_home_or_a_replicator(name):
    passed = []

    def app(env, start_response):
        passed.append(header_to_environ_key(name) in env)
        start_response("200 OK", [(name, "x")])
        return []

    request = Request.blank("/v1/a/c/o", method="PUT", headers={name: "x"})
    response = request.get_response(GatekeeperMiddleware(app, {}))
    assert passed == [False]
    assert name not in response.headers


# -- copies between nodes ----------------------------------------------------------------------------


def test_a_copy_of_a_newer_state_is_stored_under_any_promise(node, voter):
    voter.create()
    newer = Stamp(CREATED, 2, 5)
    voter.promise(Stamp(CREATED, 3, 0))
    voter.replicate(newer, body=b"newer")
    assert node.get().body == b"newer"
    assert voter.ask(LOOK).stored == newer


@pytest.mark.parametrize("method", ["DELETE", "POST"])
def test_copies_of_deletions_and_metadata_are_stored(node, voter, method):
    voter.create()
    response = node.request(method, headers={"X-Backend-Replication": "True"})
    assert response.status[:3] in ("202", "204")


def test_ssync_brings_states_past_promises(tmp_path, ssync):
    left, right = StorageNode(tmp_path / "left"), StorageNode(tmp_path / "right")
    stamp = Voter(left).create()
    Voter(right).promise(Stamp(CREATED, 7, 0))
    success, _ = ssync(left, right)
    assert success
    assert right.get().headers["X-Backend-Timestamp"] == stamp.internal
    assert Voter(right).ask(LOOK).voters == STATE.voters
