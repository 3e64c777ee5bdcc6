"""A storage that is one space: its target may be changed at any time."""

import pytest

from sluice_core.errors import CallerError
from sluice_motifs.space.one_space import UNLIMITED, OneSpace


def test_all_items_belong_to_it_and_a_change_is_seen():
    rules = OneSpace(100, "lru")
    before = rules.refresh()
    assert rules.refresh() == before
    space = rules.membership(rules.container("any/item")).space
    assert (space.target_size, space.policy, space.verify) == (100, "lru", "head")
    rules.change(50, "fifo")
    assert rules.refresh() != before
    assert (rules.target, rules.policy, rules.fits(50), rules.fits(51)) == (50, "fifo", True, False)


@pytest.mark.parametrize("target", [None, 10**30])
def test_without_a_target_everything_fits(target):
    rules = OneSpace(target, "lru")
    assert rules.membership("").space.target_size == UNLIMITED
    assert (rules.target, rules.fits(10**15)) == (None, True)


@pytest.mark.parametrize(("target", "policy", "reason"), [(-1, "lru", "size `-1` is negative"), (0, "lrru", "`lru`")])
def test_what_cannot_be_kept_is_refused_and_changes_nothing(target, policy, reason):
    with pytest.raises(CallerError, match=reason):
        OneSpace(target, policy)
    rules = OneSpace(7, "s4lru")
    with pytest.raises(CallerError, match=reason):
        rules.change(target, policy)
    assert (rules.target, rules.policy) == (7, "s4lru")
