"""What object servers answer to homes: looks, promises, confirmations; and voters that lost what they had."""

import json
from types import SimpleNamespace

import pytest
from tests.support.middleware.object_server import CODED, Log, StorageNode, swift_conf
from tests.support.middleware.voters import CREATED, STATE, Voter, damage

from sluice_core.errors import DecodeError
from sluice_middleware.object_server.controller import ObjectController
from sluice_middleware.swift import diskfile_api
from sluice_middleware.swift.diskfile_api import Request
from sluice_middleware.swift.object_votes import (
    CONFIRM,
    LARGEST,
    LOOK,
    METHOD,
    MOST,
    PROMISE,
    VoteRequest,
    decode_answers,
    encode_requests,
    encode_voters,
)
from sluice_middleware.wsgi import sysmeta
from sluice_objects.protocol.acceptor import Promise, Refusal
from sluice_objects.protocol.stamps import Stamp
from sluice_objects.protocol.voters import Voter as Elector

#: Swift leaves the file open when opening ends with an error.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

FIRST, SECOND = Stamp(CREATED, 1, 0), Stamp(CREATED, 2, 0)


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


def test_a_device_with_nothing_knows_nothing_and_has_an_incarnation(voter):
    seen = voter.ask(LOOK).sighting("d")
    assert seen.voter.incarnation
    assert seen == (seen.voter, None, (), None, "")
    assert voter.ask(LOOK, name="a/c/other").incarnation == seen.voter.incarnation


def test_a_look_names_the_daemon_of_the_node(tmp_path):
    node = StorageNode(tmp_path / "node", options={"sluice_objectd": "127.0.0.1:6300"})
    assert Voter(node).ask(LOOK).daemon == "127.0.0.1:6300"
    assert Voter(node).ask(PROMISE, FIRST).daemon == ""


def test_a_promise_is_seen_and_given_once(voter):
    assert voter.promise(FIRST, "h1") == Promise(None, True)
    assert voter.promise(FIRST, "h2") == Refusal(FIRST, "h1")
    assert voter.promise(SECOND, "h2") == Promise(None, True)
    assert voter.promise(FIRST, "h1") == Refusal(SECOND, "h2")
    assert voter.ask(LOOK).sighting("d")[3:] == (SECOND, "h2")


def test_objects_have_promises_of_their_own(voter):
    voter.promise(SECOND)
    assert voter.promise(FIRST, name="a/c/other") == Promise(None, True)


def test_a_promise_names_the_stored_state(voter):
    stamp = voter.create()
    assert voter.promise(SECOND) == Promise(stamp, True)
    assert voter.ask(LOOK).voters == STATE.voters


@pytest.mark.parametrize("method", ["PUT", "POST"])
def test_a_plain_object_is_seen_by_its_newest_file(node, voter, method):
    node.put(b"plain")
    if method == "POST":
        node.request("POST", headers={"X-Object-Meta-Color": "red"})
    newest = Stamp.read(f"{node.clock:.5f}")
    seen = voter.ask(LOOK)
    assert (seen.stored, seen.deleted, seen.voters) == (newest, False, ())
    assert voter.promise(newest) == Refusal(newest, "")


def test_a_file_of_another_kind_is_no_vote(node, voter):
    voter.create()
    node.files()[0].rename(node.files()[0].with_name("junk.data"))
    assert voter.ask(PROMISE, SECOND).status == 503


def test_a_plain_object_with_copied_metadata_names_no_voters(node, voter):
    node.put(b"plain", headers={sysmeta.VOTERS: encode_voters(STATE.voters)})
    assert voter.ask(LOOK).voters == ()
    assert node.request("DELETE").status.startswith("204")


def test_a_tombstone_is_seen_and_named_as_one(node, voter):
    node.put(b"plain")
    node.request("DELETE")
    deleted = Stamp.read(f"{node.clock:.5f}")
    assert voter.ask(LOOK)[2:4] == (deleted, True)
    answer = voter.ask(PROMISE, deleted.with_ballot(1))
    assert (answer.stored, answer.deleted, answer.agreed) == (deleted, True, True)


def test_a_home_is_confirmed_until_another_has_a_promise(voter):
    stamp = voter.create()
    assert voter.ask(CONFIRM, stamp).vote("d", CONFIRM).answer is True
    assert voter.ask(CONFIRM, stamp.next_version()).agreed
    voter.promise(SECOND, "h2")
    assert not voter.ask(CONFIRM, stamp).agreed
    assert voter.ask(CONFIRM, SECOND).agreed


def test_requests_of_one_batch_are_answered_in_order(node, voter):
    ballots = [Stamp(CREATED, number, 0) for number in range(1, 21)]
    requests = [voter.request(PROMISE, ballot, name=f"a/c/{ballot.ballot}") for ballot in ballots]
    requests[3] = requests[3]._replace(device="sdz")
    answers = voter.send(*requests)
    assert [one.status for one in answers] == [200] * 3 + [507] + [200] * 16
    seen = voter.send(*(voter.request(LOOK, name=f"a/c/{ballot.ballot}") for ballot in ballots))
    assert [one.promised for one in seen] == [*ballots[:3], None, *ballots[4:]]


def test_objects_of_an_erasure_coded_policy_have_no_votes(node, voter):
    (answer,) = voter.send(voter.request(PROMISE, FIRST)._replace(policy=CODED))
    assert (answer.status, answer.incarnation) == (400, "")
    assert "`coded`, which is not replicated" in answer.reason
    response = voter.store(FIRST.next_version(), policy=CODED)
    assert response.status.startswith("400")
    assert sysmeta.STATE_STORED not in response.headers
    assert not list(node.folder.glob("*/sluice-objects*"))
    assert not node.files()


def test_disk_files_of_swift_have_no_votes(tmp_path):
    with swift_conf(tmp_path / "etc", module="swift"):
        (tmp_path / "sda").mkdir()
        conf = {"devices": str(tmp_path), "mount_check": "false"}
        node = SimpleNamespace(server=ObjectController(conf, Log()))
        answer = Voter(node).ask(LOOK)
    assert answer.status == 400
    assert "not those of Sluice" in answer.reason


def test_a_server_of_swift_has_no_votes(node):
    stock = diskfile_api.ObjectController(node.conf, node.log)
    assert Request.blank("/", method=METHOD, body=b"[]").get_response(stock).status_int == 405


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"{}", 400),
        (b"[]", 400),
        (encode_requests([VoteRequest(LOOK, "sda", 0, 0, "a", "c", "o")] * (MOST + 1)), 400),
        (json.dumps([["look", "..", 0, 0, "a", "c", "o", None, ""]]).encode(), 400),
        (json.dumps([["look", "sda", 0, 0, "a", "c", "", None, ""]]).encode(), 400),
        (json.dumps([["look", "sda", 0, 0, "a", "c", "o", FIRST.internal, ""]]).encode(), 400),
        (json.dumps([["promise", "sda", 0, 0, "a", "c", "o", None, ""]]).encode(), 400),
        (json.dumps([["promise", "sda", 0, 0, "a", "c", "o", "now", ""]]).encode(), 400),
        (json.dumps([["promise", "sda", 0, 0, "a", "c", "o", FIRST.internal, "h\r\nX: 1"]]).encode(), 400),
        (json.dumps([["store", "sda", 0, 0, "a", "c", "o", FIRST.internal, ""]]).encode(), 400),
        (b" " * (LARGEST + 1), 413),
    ],
)
def test_what_no_home_asks_is_refused(node, body, status):
    assert Request.blank("/", method=METHOD, body=body).get_response(node.server).status_int == status


@pytest.mark.parametrize("body", [b"[]", b"[{}]", b"[1]", b'[{"status": 200, "stored": "x"}]', b'[{"voters": [[1]]}]'])
def test_what_no_voter_answers_is_refused(body):
    with pytest.raises(DecodeError):
        decode_answers(body, 1)


@pytest.mark.parametrize("lost", ["removed", "quarantined"])
def test_a_voter_that_lost_its_state_votes_when_one_as_new_arrives(node, voter, lost):
    older = voter.create()
    newest = older.next_version()
    voter.store(newest)
    (path,) = node.files()
    if lost == "removed":
        path.unlink()
    else:
        path.write_bytes(b"damaged")
        assert node.get().status.startswith("404")
        assert node.quarantined()
    assert voter.promise(SECOND) == Promise(None, False)
    voter.replicate(older)
    assert voter.promise(Stamp(CREATED, 3, 0)) == Promise(older, False)
    voter.replicate(newest)
    assert voter.promise(Stamp(CREATED, 4, 0)) == Promise(newest, True)


def test_an_emptied_device_is_another_voter(node, voter):
    voter.create()
    before = voter.ask(LOOK).incarnation
    voter.wipe()
    after = voter.ask(LOOK)
    assert after.incarnation not in ("", before)
    assert after.sighting("d")[1:] == (None, (), None, "")
    assert voter.promise(FIRST) == Promise(None, True)


@pytest.mark.parametrize("name", ["incarnation", "???/*"])
def test_a_damaged_file_of_the_voter_is_no_vote(node, voter, name):
    stamp = voter.create()
    damage(node, name)
    answers = [voter.ask(LOOK), voter.ask(PROMISE, SECOND), voter.ask(CONFIRM, stamp)]
    assert [one.status for one in answers] == [503] * 3
    assert all("damaged" in one.reason for one in answers)
    response = voter.store(stamp.next_version())
    assert response.status.startswith("503")
    assert sysmeta.STATE_STORED not in response.headers
    assert node.get().headers["X-Backend-Timestamp"] == stamp.internal


def test_a_look_names_electors_as_the_state_does(voter):
    voter.create()
    assert all(isinstance(one, Elector) for one in voter.ask(LOOK).voters)
