"""Rewrite jobs in a real Redis: created, shared by rewriters, continued after one was killed."""

import time
from dataclasses import replace

import pytest

from sluice_rewrites import accounts, operations
from sluice_rewrites.accounts import open_request, open_requests
from sluice_rewrites.messages import (
    CANCELLED,
    COLLECTING,
    DONE,
    FAILED,
    PAUSED,
    PLAIN,
    RUNNING,
    RewriteCounts,
    RewriteJob,
    UnitSize,
)

JOB = RewriteJob("j1", "AUTH_a", "", "", PLAIN, RUNNING, 1000, "admin")
CLUSTER_JOB = replace(JOB, account="", state=COLLECTING, request="r1")


@pytest.fixture
def run(store):
    return lambda operation, *given, **named: store.run(operation(store.keys, *given, **named))


@pytest.fixture
def listed(run):
    """A job whose listing is done: two containers are left."""
    assert run(operations.create_job, JOB)
    unit = run(operations.claim_unit, "j1")
    more = {"containers": 2, "listings": -1}
    units = {"AUTH_a/c1": None, "AUTH_a/c2": None}
    assert run(operations.report_unit, unit, "", units=units, more=more, lease=0) == RUNNING


def progress(run):
    return run(operations.read_progress, "j1")


def test_a_job_is_ordered_once(run):
    assert run(operations.create_job, JOB)
    assert not run(operations.create_job, replace(JOB, goal="policies"))
    assert run(operations.JOBS.read_all) == {"j1": JOB}
    assert progress(run).started > 0


def test_the_first_unit_is_the_listing_and_each_is_claimed_once(run, listed):
    units = [run(operations.claim_unit, "j1") for _ in range(3)]
    assert [(one.path, one.marker) for one in units[:2]] == [("AUTH_a/c1", ""), ("AUTH_a/c2", "")]
    assert units[2] is None
    assert (progress(run).containers, progress(run).listings, progress(run).claimed) == (2, 0, 2)


def test_counts_add_up_and_a_job_ends_with_its_last_unit(run, listed):
    first, second = (run(operations.claim_unit, "j1") for _ in range(2))
    counts = RewriteCounts(3, 1, 10, 30, 1, {"symlink": 1}, {"503 Service Unavailable": 1})
    run(operations.report_unit, first, "m", counts)
    run(operations.report_unit, first, "z", counts, more={"containers_done": 1}, lease=0)
    assert progress(run).ended == 0
    run(operations.report_unit, second, "z", more={"containers_done": 1}, lease=0)
    found = progress(run)
    assert found.counts == RewriteCounts(6, 2, 20, 60, 2, {"symlink": 2}, {"503 Service Unavailable": 2})
    assert found.ended >= found.started
    assert run(operations.JOBS.read_all)["j1"].state == DONE
    assert run(operations.change_state, "j1", PAUSED) is None
    assert found.containers_done == 2


def test_a_unit_whose_lease_ended_is_continued_and_its_old_claim_counts_no_more(run, listed):
    lost = run(operations.claim_unit, "j1", lease=0.0)
    run(operations.report_unit, lost, "k", lease=0.001)
    again = None  # the other unit may be claimed first
    while again is None or again.path != "AUTH_a/c1":
        again = run(operations.claim_unit, "j1")
    assert (again.path, again.marker) == ("AUTH_a/c1", "k")
    assert again.token > lost.token
    assert run(operations.report_unit, lost, "z", RewriteCounts(seen=5)) is None
    assert progress(run).counts.seen == 0
    assert run(operations.report_unit, again, "z", RewriteCounts(seen=5)) == RUNNING


def test_a_unit_that_is_given_back_is_free_at_once(run, listed):
    unit = run(operations.claim_unit, "j1")
    assert run(operations.report_unit, unit, "k", lease=-1) == RUNNING
    again = run(operations.claim_unit, "j1")
    assert (again.path, again.marker) == ("AUTH_a/c1", "k")
    assert run(operations.report_unit, unit, "z") is None


def test_nothing_of_a_paused_job_is_claimed(run, listed):
    unit = run(operations.claim_unit, "j1")
    assert run(operations.change_state, "j1", PAUSED) == replace(JOB, state=PAUSED)
    assert run(operations.claim_unit, "j1") is None
    assert run(operations.report_unit, unit, "k", lease=-1) == PAUSED
    assert run(operations.change_state, "j1", RUNNING) == JOB
    assert run(operations.claim_unit, "j1").marker == "k"


def test_the_time_in_pauses_adds_up(run, listed):
    for total in (0.02, 0.04):
        run(operations.change_state, "j1", PAUSED)
        time.sleep(0.02)
        run(operations.change_state, "j1", PAUSED)
        run(operations.change_state, "j1", RUNNING)
        run(operations.change_state, "j1", RUNNING)
        assert total <= progress(run).paused < 10


def test_a_cancelled_job_has_ended_and_cannot_go_on(run, listed):
    unit = run(operations.claim_unit, "j1")
    assert run(operations.change_state, "j1", CANCELLED).state == CANCELLED
    assert run(operations.report_unit, unit, "k") is None
    assert run(operations.change_state, "j1", RUNNING) is None
    assert progress(run).ended > 0


def test_a_deleted_job_leaves_nothing_behind(run, store, listed):
    unit = run(operations.claim_unit, "j1")
    run(operations.reserve, "j1", 0.1)
    run(operations.report_unit, unit, "", failures=[("AUTH_a/c1/o", "no")])
    assert run(operations.delete_job, "j1")
    assert not run(operations.delete_job, "j1")
    assert run(operations.report_unit, unit, "k") is None
    assert store.client.keys("*rewrite*") == []


def test_a_rate_holds_over_all_who_reserve(run):
    waits = [run(operations.reserve, "j1", 0.5, burst=0.0) for _ in range(4)]
    assert waits == sorted(waits)
    assert waits[0] == 0
    assert waits[3] == pytest.approx(1.5, abs=0.2)


def test_a_place_that_is_given_back_delays_nobody(run):
    for _ in range(3):
        run(operations.reserve, "j1", 100.0, burst=0.0)
    run(operations.reserve, "j1", -100.0)
    run(operations.reserve, "j1", -100.0)
    assert run(operations.reserve, "j1", 1.0, burst=0.0) == pytest.approx(100.0, abs=5)


def test_the_last_failures_are_kept_as_examples_and_none_of_an_older_claim(run, listed):
    unit = run(operations.claim_unit, "j1")
    run(operations.report_unit, unit, "m", failures=[(f"o{number}", "503") for number in range(30)])
    run(operations.report_unit, unit, "n", failures=[("last", "422")], lease=-1)
    run(operations.report_unit, unit, "n", failures=[("late", "422")])
    examples = progress(run).examples
    assert len(examples) == 20
    assert examples[:2] == (("last", "422"), ("o29", "503"))


def test_claims_that_have_ended_are_not_counted(run, listed):
    first, second = (run(operations.claim_unit, "j1") for _ in range(2))
    assert progress(run).claimed == 2
    run(operations.report_unit, first, "k", lease=-1)
    assert progress(run).claimed == 1
    assert run(operations.read_progress, "j1", time.time() + operations.LEASE + 5).claimed == 0
    assert second.path


def test_names_that_are_no_text_come_back_as_they_were(run):
    name = b"\xff\xfe".decode("utf-8", "surrogateescape")
    run(operations.create_job, JOB)
    unit = run(operations.claim_unit, "j1")
    run(operations.report_unit, unit, name, units={name: None}, lease=0)
    unit = run(operations.claim_unit, "j1")
    assert unit.path == name
    run(operations.report_unit, unit, f"{name}\0 ü", lease=-1)
    assert run(operations.claim_unit, "j1").marker == f"{name}\0 ü"


def test_accounts_are_listed_in_pages_whatever_their_names(run):
    names = ["AUTH_a", "AUTH_ü", b"AUTH_\xff".decode("utf-8", "surrogateescape")]
    run(accounts.add_accounts, names[:2])
    run(accounts.add_accounts, names)
    first = run(accounts.accounts_after, "", 2)
    assert first == names[:2]
    assert run(accounts.accounts_after, first[-1], 2) == names[2:]
    run(accounts.add_accounts, [])


@pytest.fixture
def held(run):
    """A claim of a container whose headers give 5 objects of 50 bytes."""
    assert run(operations.create_job, JOB)
    unit = run(operations.claim_unit, "j1")
    more = {"containers": 1, "objects": 5, "bytes": 50, "listings": -1}
    run(operations.report_unit, unit, "c", units={"AUTH_a/c": UnitSize(5, 50)}, more=more, lease=0)
    return run(operations.claim_unit, "j1")


@pytest.mark.parametrize("there", [2, 5, 9])
def test_what_was_found_is_what_was_looked_at_in_the_end_and_never_less(run, held, there):
    """Objects are uploaded and deleted while a job runs, and the counts of containers are late."""
    for number in range(there):
        run(operations.report_unit, held, f"o{number}", RewriteCounts(seen=1, seen_bytes=10))
        run(operations.report_unit, held, "", lease=-1)
        held = run(operations.claim_unit, "j1")
        found = progress(run)
        assert (found.objects, found.bytes) == (max(5, number + 1), 10 * max(5, number + 1))
    run(operations.report_unit, held, "", lease=0)
    found = progress(run)
    assert (found.objects, found.bytes) == (there, 10 * there) == (found.counts.seen, found.counts.seen_bytes)
    assert found.ended


def test_sizes_of_many_terabytes_stay_exact(run):
    assert run(operations.create_job, JOB)
    unit, size = run(operations.claim_unit, "j1"), 3 * 2**50 + 1
    run(operations.report_unit, unit, "c", units={"AUTH_a/c": UnitSize(1, size)}, more={"bytes": size}, lease=0)
    unit = run(operations.claim_unit, "j1")
    run(operations.report_unit, unit, "o", RewriteCounts(seen=1, seen_bytes=size - 1))
    run(operations.report_unit, unit, "", lease=0)
    assert progress(run).bytes == size - 1


def test_a_report_without_names_leaves_the_last_one_as_it_was_reported(run, listed):
    """A renewal is applied after a report that was sent later."""
    unit = run(operations.claim_unit, "j1")
    run(operations.report_unit, unit, "k", RewriteCounts(seen=3))
    run(operations.report_unit, unit, "")
    run(operations.report_unit, unit, "", lease=-1)
    assert run(operations.claim_unit, "j1").marker == "k"


def test_nothing_of_a_job_for_the_cluster_is_claimed_before_all_accounts_are_known(run):
    assert run(operations.create_job, CLUSTER_JOB)
    assert run(operations.claim_unit, "j1") is None
    assert run(operations.begin_collected, CLUSTER_JOB, 3)
    assert run(operations.JOBS.read_all)["j1"].state == RUNNING
    assert run(operations.claim_unit, "j1").path == ""
    assert progress(run).accounts == 3
    assert not run(operations.begin_collected, CLUSTER_JOB, 4)
    assert progress(run).accounts == 3


def test_a_job_that_was_paused_while_it_collected_collects_again_and_one_that_ran_runs(run):
    assert run(operations.create_job, CLUSTER_JOB)
    assert run(operations.change_state, "j1", PAUSED).state == PAUSED
    assert not run(operations.begin_collected, CLUSTER_JOB, 3)
    assert run(operations.change_state, "j1", RUNNING).state == COLLECTING
    assert run(operations.begin_collected, CLUSTER_JOB, 3)
    assert run(operations.change_state, "j1", PAUSED).state == PAUSED
    assert run(operations.change_state, "j1", RUNNING).state == RUNNING


def test_a_job_whose_accounts_will_not_be_known_has_failed_and_says_why(run):
    assert run(operations.create_job, CLUSTER_JOB)
    assert run(operations.fail_collecting, CLUSTER_JOB, "nobody has read `sdb`")
    assert run(operations.JOBS.read_all)["j1"].state == FAILED
    assert (progress(run).reason, progress(run).ended > 0) == ("nobody has read `sdb`", True)
    assert run(operations.claim_unit, "j1") is None
    assert run(operations.change_state, "j1", RUNNING) is None
    assert not run(operations.begin_collected, CLUSTER_JOB, 3)


@pytest.mark.parametrize(
    "end",
    [
        lambda run: run(operations.begin_collected, CLUSTER_JOB, 1),
        lambda run: run(operations.fail_collecting, CLUSTER_JOB, "no"),
        lambda run: run(operations.change_state, "j1", CANCELLED),
    ],
)
def test_the_request_of_a_job_is_closed_when_it_collects_no_more(run, end):
    run(open_request, "r1")
    assert run(operations.create_job, CLUSTER_JOB)
    assert run(open_requests) == {"r1"}
    assert end(run)
    assert run(open_requests) == frozenset()
