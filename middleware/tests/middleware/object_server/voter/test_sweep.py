"""A record is removed when its object is gone, and never while a promise or a state needs it."""

import time

import pytest
from tests.support.middleware.object_server import StorageNode, swift_conf
from tests.support.middleware.voters import CREATED, Voter, damage

from sluice_middleware.object_server.voter import sweep as sweep_module
from sluice_middleware.object_server.voter.sweep import recorded_hashes, remove_when_gone, sweep_device
from sluice_middleware.swift.diskfile_api import POLICIES
from sluice_objects.protocol.acceptor import Promise
from sluice_objects.protocol.stamps import UNITS, Stamp

FIRST = Stamp(CREATED, 1, 0)
WEEK = 7 * 86400


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


@pytest.fixture
def later(monkeypatch):
    """Moves the clock on by so many seconds."""

    def move(seconds):
        now = time.time() + seconds
        monkeypatch.setattr(sweep_module.time, "time", lambda: now)

    return move


def sweep(voter):
    """Whether the record is removed."""
    return remove_when_gone(voter.file())


def recent(node):
    return Stamp(int(node.clock * UNITS), 1, 2)


def test_a_record_is_found_by_its_hash(node, voter):
    voter.create()
    device = str(node.folder / "sda")
    assert list(recorded_hashes(device, POLICIES[0])) == [voter.file()._datadir[-32:]]
    assert not list(recorded_hashes(device, POLICIES[1]))
    assert not list(recorded_hashes(str(node.folder / "sdz"), POLICIES[0]))


def test_a_promise_that_nobody_used_is_forgotten(voter, later):
    voter.promise(FIRST)
    assert not sweep(voter)
    later(WEEK + 60)
    assert sweep(voter)
    assert voter.promise(FIRST) == Promise(None, True)


def test_a_promise_of_a_time_to_come_is_kept(voter, later):
    voter.promise(Stamp(int((time.time() + 2 * WEEK) * UNITS), 1, 0))
    later(WEEK + 60)
    assert not sweep(voter)


@pytest.mark.parametrize("lost", [False, True])
def test_the_record_of_a_state_is_kept(node, voter, later, lost):
    voter.create()
    if lost:
        node.files()[0].unlink()
    later(WEEK + 60)
    assert not sweep(voter)


def test_the_record_of_a_copied_state_is_kept(voter, later):
    voter.promise(FIRST)
    voter.replicate(FIRST.next_version())
    later(WEEK + 60)
    assert not sweep(voter)


def test_an_object_that_was_created_again_is_not_forgotten(node, voter, later):
    voter.create()
    deletion = recent(node)
    voter.delete(deletion)
    voter.store(deletion.next_version())
    node.files()[0].unlink()
    later(WEEK + 2000)
    assert not voter.promise(deletion.with_ballot(2).first_of_ballot).can_vote
    assert not sweep(voter)


@pytest.mark.parametrize("of_home", [True, False])
def test_the_record_of_a_deleted_object_is_forgotten_as_its_tombstone(node, voter, later, of_home):
    """A new object of this name needs votes, whenever the record is removed."""
    voter.create()
    if of_home:
        assert voter.delete(recent(node)).status.startswith("204")
    else:
        node.request("DELETE", headers={"X-Backend-Replication": "True"})
        voter.promise(Stamp(int((node.clock + 1) * UNITS), 1, 0))
    node.files(".ts")[0].unlink()
    lost = Stamp(int((node.clock + 2) * UNITS), 1, 0)
    assert voter.promise(lost) == Promise(None, False)
    later(WEEK - 60)
    assert not sweep(voter)
    later(WEEK + 2000)
    assert voter.promise(lost.with_ballot(2)) == Promise(None, True)
    later(WEEK + 4000)
    assert sweep(voter)


def test_a_tombstone_below_the_lost_state_proves_nothing(node, voter, later):
    newest = Stamp(int((node.clock + 500) * UNITS), 1, 1)
    voter.promise(newest.first_of_ballot)
    voter.store(newest)
    node.files()[0].unlink()
    node.request("DELETE", headers={"X-Backend-Replication": "True"})
    assert node.files(".ts")
    voter.promise(newest.with_ballot(2).first_of_ballot)
    later(2 * WEEK)
    assert not sweep(voter)
    assert not voter.promise(newest.with_ballot(3).first_of_ballot).can_vote


def test_a_sweep_finds_the_files_of_each_record(node, voter, later):
    voter.create()
    voter.promise(FIRST, name="a/c/unused")
    assert voter.delete(recent(node)).status.startswith("204")
    voter.create("a/c/other")
    later(WEEK + 2000)
    assert sweep_device(node.manager(), "sda", POLICIES[0], 0) == 2
    assert voter.record("a/c/other").accepted == Stamp(CREATED, 1, 1)
    assert sweep_device(node.manager(), "sda", POLICIES[0], 0) == 0
    assert sweep_device(node.manager(), "sdz", POLICIES[0], 0) == 0


def test_what_cannot_be_read_is_kept(voter, node, later):
    voter.promise(FIRST)
    damage(node, "???/*")
    later(WEEK + 60)
    assert not remove_when_gone(voter.file())
    assert not remove_when_gone(voter.file("a/c/none"))
    assert list(node.folder.glob("sda/sluice-objects/???/*"))
