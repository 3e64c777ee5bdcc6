"""Calls of one object: committed together, and answered whatever happens to the one that serves them."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.support.objects.disks import Disks
from tests.support.objects.simulation import Disk

from sluice_objects.protocol.home import Home, NoMajority, Unknown
from sluice_objects.protocol.stamps import Stamp
from sluice_objects.protocol.voters import Voter
from sluice_objects.serving import ServedObject


def append(state, operation):
    if operation == "fault":
        raise ZeroDivisionError
    appended = (*(state or ()), operation) if operation else state
    return appended, appended or ()


@pytest.fixture
def disks():
    return Disks()


@pytest.fixture
def served(disks):
    return ServedObject(lambda: Home(disks, "here", lambda: 170_000_000_000_000), append)


def test_calls_that_wait_share_a_commit(disks, served):
    served.call("first")
    waiting, done = threading.Barrier(9), threading.Event()

    def hold():
        disks.at_store = lambda: None
        waiting.wait(30)
        done.wait(30)

    def call(name):
        if name != "holder":
            waiting.wait(30)
        return served.call(name)

    disks.at_store = hold
    before = disks.commits
    with ThreadPoolExecutor(9) as pool:
        answers = [pool.submit(call, name) for name in ("holder", *"12345678")]
        while len(served._waiting) < 8:
            threading.Event().wait(0.001)
        done.set()
        found = [answer.result(30) for answer in answers]
    assert disks.commits - before == 2
    assert found[0] == ("first", "holder")
    assert sorted(map(len, found[1:])) == list(range(3, 11))


def test_a_read_of_nothing_is_confirmed_and_stores_nothing(disks, served):
    assert served.call("") == ()
    assert disks.commits == 0
    disks.down = {"a", "b"}
    with pytest.raises(NoMajority):
        served.call("")


def test_a_commit_without_a_majority_is_unknown_and_goes_on_later(disks, served):
    served.call("first")
    disks.down = {"a", "b"}
    with pytest.raises(Unknown):
        served.call("second")
    assert not served.is_home
    disks.down = set()
    # it reached one disk, which a majority of the next home may or may not hold: here it does
    assert served.call("third") in (("first", "second", "third"), ("first", "third"))


def test_a_fault_of_the_code_leaves_no_caller_without_an_answer(disks, served):
    served.call("first")
    with pytest.raises(ZeroDivisionError):
        served.call("fault")
    assert served.call("second") == ("first", "second")


def test_the_voters_follow_the_ring_by_one_device_at_a_time(disks, served):
    served.call("first")
    disks.disks["d"] = Disk("d", "of d")
    wanted = [Voter(name, f"of {name}") for name in "bcd"]
    assert served.follow_ring(wanted)
    assert [voter.device for voter in disks.disks["d"].voters] == ["a", "b", "c", "d"]
    assert served.follow_ring(wanted)
    assert [voter.device for voter in disks.disks["d"].voters] == ["b", "c", "d"]
    assert not served.follow_ring(wanted)


def test_a_state_that_needs_a_later_creation_time_gets_it(disks, served):
    served.call("first")
    later = 170_000_000_900_000
    disks.least_stamp = lambda state: Stamp(later, 0, 40)
    served.call("second")
    stored = disks.disks["a"].stamp
    assert (stored.created, stored.version) == (later, 40)
    assert disks.disks["a"].state == ("first", "second")
