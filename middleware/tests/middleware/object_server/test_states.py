"""States that homes store and delete: refused by ballot before the body and at the commit, and kept by Swift's PUT."""

import io

import pytest
from tests.support.middleware.object_server import StorageNode, swift_conf
from tests.support.middleware.voters import CREATED, STATE, Voter

from sluice_middleware.swift.object_votes import LOOK
from sluice_middleware.wsgi import sysmeta
from sluice_objects.protocol.acceptor import Promise
from sluice_objects.protocol.stamps import UNITS, Stamp

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


def test_a_state_is_an_object_of_swift_at_its_stamp(node, voter):
    stamp = voter.create()
    response = node.get()
    assert response.body == STATE.body
    assert response.headers["X-Backend-Timestamp"] == stamp.internal
    assert response.headers[sysmeta.CLASS] == "typed/counter"
    assert node.files()[0].name == f"{stamp.internal}.data"


def test_the_answer_names_voter_and_state(voter):
    voter.promise(FIRST)
    response = voter.store(FIRST.next_version())
    assert response.status.startswith("201")
    assert response.headers[sysmeta.INCARNATION] == voter.ask(LOOK).incarnation
    assert response.headers[sysmeta.STATE_STORED] == FIRST.next_version().internal


def test_a_state_of_an_older_ballot_is_refused_before_its_body(voter):
    voter.promise(SECOND, "h2:1")
    unread = io.BytesIO(STATE.body)
    response = voter.store(FIRST.next_version(), body=unread)
    assert response.status == sysmeta.REFUSED_STATUS
    assert (response.headers[sysmeta.PROMISED], response.headers[sysmeta.HOME]) == (SECOND.internal, "h2:1")
    assert response.headers[sysmeta.INCARNATION]
    assert sysmeta.STATE_STORED not in response.headers
    assert unread.tell() == 0
    assert voter.ask(LOOK).stored is None


def test_a_state_below_the_stored_one_is_refused(voter):
    stamp = voter.create()
    newer = stamp.next_version()
    assert voter.store(newer).headers[sysmeta.STATE_STORED] == newer.internal
    assert voter.store(stamp).headers[sysmeta.PROMISED] == FIRST.internal
    assert voter.ask(LOOK).stored == newer


class PromiseOnRead(io.BytesIO):
    """A body; when it is read another home gets a promise."""

    def __init__(self, body, voter, ballot):
        super().__init__(body)
        self.promise = lambda: voter.promise(ballot, "h2:1")
        self.answer = None

    def read(self, *size):
        self.answer = self.answer or self.promise()
        return super().read(*size)


def test_a_promise_while_the_body_arrives_refuses_the_state(node, voter):
    body = PromiseOnRead(STATE.body, voter, SECOND)
    voter.promise(FIRST)
    response = voter.store(FIRST.next_version(), body=body)
    assert body.answer == Promise(None, True)  # the lock was not held
    assert response.status == sysmeta.REFUSED_STATUS
    assert response.headers[sysmeta.PROMISED] == SECOND.internal
    assert not node.files()


def test_a_state_that_is_sent_again_is_acknowledged_until_a_promise(voter):
    stamp = voter.create()
    unread = io.BytesIO(STATE.body)
    again = voter.store(stamp, body=unread)
    assert again.headers[sysmeta.STATE_STORED] == stamp.internal
    assert unread.tell() == 0
    voter.promise(SECOND)
    assert voter.store(stamp).status == sysmeta.REFUSED_STATUS


def test_a_state_that_a_replicator_brought_first_is_acknowledged(voter):
    voter.promise(FIRST)
    stamp = FIRST.next_version()
    voter.replicate(stamp)
    assert voter.store(stamp).headers[sysmeta.STATE_STORED] == stamp.internal
    assert voter.record().accepted == stamp


def test_a_replicator_that_is_faster_than_the_body_does_not_hide_the_state(voter):
    voter.promise(FIRST)
    stamp = FIRST.next_version()
    body = PromiseOnRead(STATE.body, voter, FIRST)
    body.promise = lambda: voter.replicate(stamp)
    assert voter.store(stamp, body=body).headers[sysmeta.STATE_STORED] == stamp.internal


def test_a_home_deletes_at_its_stamp(node, voter):
    voter.create()
    deletion = Stamp(int(node.clock * UNITS), 1, 2)
    response = voter.delete(deletion)
    assert response.headers[sysmeta.STATE_STORED] == deletion.internal
    assert voter.ask(LOOK)[2:4] == (deletion, True)
    assert voter.delete(deletion).headers[sysmeta.STATE_STORED] == deletion.internal
    assert voter.store(deletion.next_version()).headers[sysmeta.STATE_STORED]
    assert node.get().body == STATE.body


def test_a_home_deletes_on_a_device_without_the_object(node, voter):
    deletion = Stamp(int(node.clock * UNITS), 1, 2)
    voter.promise(deletion.first_of_ballot)
    response = voter.delete(deletion)
    assert response.status.startswith("404")
    assert response.headers[sysmeta.STATE_STORED] == deletion.internal


def test_a_deletion_that_swift_does_not_store_is_not_acknowledged(node, voter):
    deletion = Stamp(int(node.clock * UNITS), 1, 2)
    voter.promise(deletion.first_of_ballot)
    response = voter.delete(deletion, **{"X-If-Delete-At": "1"})
    assert response.status.startswith("404")
    assert sysmeta.STATE_STORED not in response.headers
    assert voter.record().accepted is None


def test_a_deletion_at_the_time_of_an_old_object_is_refused(node, voter):
    """Swift would remove the tombstone at once."""
    response = voter.delete(voter.create().next_version())
    assert response.status.startswith("400")
    assert "forgotten" in response.body.decode()
    assert node.get().body == STATE.body


@pytest.mark.parametrize(
    ("headers", "reason"),
    [
        ({"X-Timestamp": "yesterday"}, "no timestamp"),
        ({"X-Timestamp": Stamp(CREATED, 0, 3).internal}, "no ballot"),
        ({sysmeta.HOME: "x" * 300}, "no address"),
        ({sysmeta.VOTERS: "[]"}, "names no voters"),
        ({sysmeta.VOTERS: "[[1]]"}, "no pair"),
        ({"X-Delete-At": "4102444800"}, "does not expire"),
    ],
)
def test_what_is_no_state_is_refused(node, voter, headers, reason):
    response = voter.store(FIRST.next_version(), headers=headers)
    assert response.status.startswith("400")
    assert reason in response.body.decode()
    assert not node.files()


def test_the_row_is_sent_when_the_home_names_a_container_server(node, voter, monkeypatch):
    sent = []
    monkeypatch.setattr(node.server, "async_update", lambda *args, **kwargs: sent.append(args))
    stamp = voter.create()
    assert not sent
    row = {"X-Container-Host": "127.0.0.1:1", "X-Container-Device": "sdc", "X-Container-Partition": "3"}
    voter.store(stamp.next_version(), headers=row)
    ((method, account, container, name, *_, headers, _, _),) = sent
    assert (method, account, container, name) == ("PUT", "a", "c", "o")
    assert headers["x-timestamp"] == stamp.next_version().internal
