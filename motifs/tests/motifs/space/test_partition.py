from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice_motifs.space.planner import Member, partition

small = st.builds(Member, demand=st.integers(0, 20), floor=st.integers(0, 20), weight=st.integers(1, 4))
huge = st.builds(Member, demand=st.integers(0, 10**18), floor=st.integers(0, 10**18), weight=st.integers(1, 10**6))
few = st.lists(small, min_size=1, max_size=5)
members = few | st.lists(huge, min_size=1, max_size=20)
targets = st.integers(0, 100) | st.integers(0, 10**19)


@pytest.mark.parametrize(
    ("target", "members", "expected"),
    [
        (0, [Member(5), Member(5)], [0, 0]),
        (10, [], []),
        (10, [Member(100), Member(100)], [5, 5]),
        (11, [Member(100), Member(100)], [6, 5]),
        (12, [Member(100), Member(100, weight=2)], [4, 8]),
        (10, [Member(2), Member(100)], [2, 8]),
        (10, [Member(100, floor=6), Member(100)], [8, 2]),
        (10, [Member(1, floor=6), Member(100)], [1, 9]),
        (10, [Member(100, floor=30), Member(100, floor=10)], [8, 2]),
        (10, [Member(1), Member(3)], [4, 6]),
        (10**18, [Member(0), Member(0)], [10**18 // 2, 10**18 // 2]),
    ],
)
def test_a_target_is_divided_by_floors_then_weights(target, members, expected):
    assert partition(target, members) == expected


@given(targets, members)
def test_shares_sum_up_to_the_target(target, members):
    shares = partition(target, members)
    assert sum(shares) == target
    assert all(share >= 0 for share in shares)


@given(targets, members)
def test_floors_are_met_when_possible(target, members):
    needed = [min(member.floor, member.demand) for member in members]
    if sum(needed) <= target:
        assert all(share >= floor for share, floor in zip(partition(target, members), needed, strict=True))


@given(targets, members, st.integers(1, 50))
def test_a_larger_target_gives_nobody_less(target, members, more):
    pairs = zip(partition(target, members), partition(target + more, members), strict=True)
    assert all(before <= after for before, after in pairs)


@given(targets, members, st.integers(1, 50), st.data())
def test_who_demands_more_gets_no_less(target, members, more, data):
    place = data.draw(st.integers(0, len(members) - 1))
    changed = [*members]
    changed[place] = replace(members[place], demand=members[place].demand + more)
    assert partition(target, changed)[place] >= partition(target, members)[place]


@given(targets, members)
def test_above_floors_nobody_has_more_by_weight_than_one_whose_demand_is_not_met(target, members):
    shares = partition(target, members)
    above = [share - min(one.floor, one.demand) for share, one in zip(shares, members, strict=True)]
    if min(above) < 0:
        return  # the target is below the floors
    for share, extra, member in zip(shares, above, members, strict=True):
        if share < member.demand:
            # with one byte more, its priority would be better than that of each other member's last byte
            assert all(
                other * member.weight <= (extra + 1) * rival.weight for other, rival in zip(above, members, strict=True)
            )


@given(st.integers(0, 60), few)
def test_floors_that_are_too_much_are_cut_in_proportion(target, members):
    shares = partition(target, members)
    if sum(min(member.floor, member.demand) for member in members) <= target:
        return
    for share, member in zip(shares, members, strict=True):
        assert share <= min(member.floor, member.demand)
        if share < min(member.floor, member.demand):
            assert all(
                other * member.floor <= (share + 1) * rival.floor for other, rival in zip(shares, members, strict=True)
            )


def test_nonsense_is_refused():
    with pytest.raises(ValueError, match="target size `-1` is negative, expected at least 0 bytes"):
        partition(-1, [Member(1)])
    for wrong in ({"demand": -1}, {"demand": 1, "floor": -1}, {"demand": 1, "weight": 0}):
        with pytest.raises(ValueError, match="expected no negative bytes and a weight of at least 1"):
            Member(**wrong)
