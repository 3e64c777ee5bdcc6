from itertools import islice

import pytest

from sluice_motifs.replacement.lru import Lru
from sluice_motifs.space.planner import Candidate, ContractionPlan, SkipReason, plan_refill

OLD = 1000.0


def space(*candidates):
    """A policy that has the slots 0, 1, 2, … in the order of their opens, and their candidates."""
    policy = Lru()
    for slot in range(len(candidates)):
        policy.insert(slot)
    return policy, candidates.__getitem__


def items(*sizes):
    return space(*(Candidate(size, OLD) for size in sizes))


def test_victims_are_planned_until_the_space_fits():
    plan = ContractionPlan(100, 55, *items(30, 10, 20, 40))
    assert list(plan) == [0, 1, 2]
    assert (plan.freed, plan.excess, plan.held_up, plan.skipped) == (60, 0, False, {})


@pytest.mark.parametrize(("used", "target"), [(100, 100), (100, 10**18), (0, 0)])
def test_a_space_that_fits_loses_nothing(used, target):
    assert list(ContractionPlan(used, target, *items(100))) == []


def test_what_must_stay_is_skipped_with_its_reason():
    plan = ContractionPlan(
        60,
        0,
        *space(
            Candidate(10, age=59.9),
            Candidate(10, OLD, open=True),
            Candidate(10, OLD, under_way=True, open=True),
            Candidate(0, OLD),
            Candidate(10, age=60.0),
            Candidate(10, OLD, open=True),
        ),
        min_age=60.0,
    )
    assert list(plan) == [4]
    assert (plan.freed, plan.excess) == (10, 50)
    assert plan.skipped == {
        SkipReason.YOUNG: 1,
        SkipReason.OPEN: 2,
        SkipReason.UNDER_WAY: 1,
        SkipReason.EMPTY: 1,
    }


@pytest.mark.parametrize(("allowed", "victims"), [(0, []), (1, [0]), (30, [0]), (31, [0, 1]), (None, [0, 1, 2])])
def test_a_plan_stops_at_what_the_guard_allows_and_says_so(allowed, victims):
    plan = ContractionPlan(100, 40, *items(30, 10, 20, 40), allowed=allowed)
    assert list(plan) == victims
    assert plan.held_up == (allowed is not None)
    assert plan.excess == 60 - plan.freed


def test_a_plan_is_taken_in_batches_while_its_victims_are_evicted():
    policy, view = items(10, 10, 10, 10)
    plan = ContractionPlan(40, 10, policy, view)
    for slot in islice(plan, 2):
        policy.evict(slot)
    assert (plan.freed, plan.excess) == (20, 10)
    assert list(ContractionPlan(40 - plan.freed, 10, policy, view)) == [2]


def test_a_refill_takes_the_most_recent_contractions_that_fit():
    view = (
        Candidate(30, OLD),
        Candidate(50, OLD),
        Candidate(20, OLD, under_way=True),
        Candidate(10, OLD),
        Candidate(1, OLD),
    ).__getitem__
    assert list(plan_refill(60, 100, [0, 1, 2, 3, 4], view)) == [0, 3]
    assert list(plan_refill(100, 100, [4], view)) == []
    assert list(plan_refill(101, 100, [4], view)) == []


def test_a_negative_target_is_refused():
    with pytest.raises(ValueError, match="target size `-1` is negative, expected at least 0 bytes"):
        ContractionPlan(0, -1, *items())
    with pytest.raises(ValueError, match="target size `-1` is negative"):
        list(plan_refill(0, -1, [], items()[1]))
