"""A record is removed when its object is gone, and never while a promise or a state needs it."""

import time

import pytest
from tests.support.middleware.object_server import StorageNode, swift_conf
from tests.support.middleware.voters import CREATED, Voter, damage

from sluice_middleware.object_server.voter.sweep import recorded_hashes, remove_when_gone
from sluice_middleware.swift.diskfile_api import POLICIES
from sluice_objects.protocol.acceptor import Promise, Record
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


def sweep(voter, later=WEEK):
    """Whether the record is removed so many seconds later."""
    removed = remove_when_gone(voter.file(), time.time() + later)
    assert removed == (voter.record() == Record())
    return removed


def recent(node):
    return Stamp(int(node.clock * UNITS), 1, 2)


def test_a_record_is_found_by_its_hash(node, voter):
    voter.create()
    device = str(node.folder / "sda")
    assert list(recorded_hashes(device, POLICIES[0])) == [voter.file()._datadir[-32:]]
    assert not list(recorded_hashes(device, POLICIES[1]))
    assert not list(recorded_hashes(str(node.folder / "sdz"), POLICIES[0]))


def test_a_promise_that_nobody_used_is_forgotten(voter):
    voter.promise(FIRST)
    assert not sweep(voter, 86400)
    assert sweep(voter)
    assert voter.promise(FIRST) == Promise(None, True)


def test_a_promise_of_a_time_to_come_is_kept(voter):
    voter.promise(Stamp(int((time.time() + 2 * WEEK) * UNITS), 1, 0))
    assert not sweep(voter)


def test_the_record_of_a_state_is_kept(voter):
    voter.create()
    assert not sweep(voter)


def test_the_record_of_a_lost_state_is_kept(node, voter):
    voter.create()
    node.files()[0].unlink()
    assert not sweep(voter)


def test_the_record_of_a_deleted_object_is_removed_while_its_tombstone_stays(node, voter):
    voter.create()
    assert voter.delete(recent(node)).status.startswith("204")
    assert not sweep(voter, 3 * 86400)
    assert sweep(voter, 4 * 86400)


def test_a_tombstone_below_the_lost_state_proves_nothing(node, voter):
    newest = Stamp(int((node.clock + 500) * UNITS), 1, 1)
    voter.promise(newest.first_of_ballot)
    voter.store(newest)
    node.files()[0].unlink()
    node.request("DELETE", headers={"X-Backend-Replication": "True"})
    assert node.files(".ts")
    assert not sweep(voter)


def test_what_cannot_be_read_is_kept(voter, node):
    voter.promise(FIRST)
    damage(node, "???/*")
    assert not remove_when_gone(voter.file(), time.time() + WEEK)
    assert not remove_when_gone(voter.file("a/c/none"), time.time() + WEEK)
    assert list(node.folder.glob("sda/sluice-objects/???/*"))
