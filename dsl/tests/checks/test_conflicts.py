"""The policies with which a new policy is compared."""

from hypothesis import given
from hypothesis import strategies as st

from sluice_core.messages.policies import ALL, GROUP, LEVELS, NAME, Target
from sluice_dsl.checks.conflicts import ExistingPolicy, _narrower_and_inside, _same_scope
from sluice_dsl.plan import Plan

parts = st.sampled_from(["a", "ab", "b", "a b"])
names = st.lists(parts, min_size=1, max_size=4).map("/".join)
named = st.builds(Target, st.sampled_from(LEVELS), st.just(NAME), names | st.just(""))
groups = st.builds(Target, st.sampled_from(LEVELS), st.just(GROUP), parts)
everything = st.builds(Target, st.sampled_from(LEVELS), st.just(ALL))
targets = named | groups | everything


@given(targets, targets)
def test_policies_that_have_to_do_with_each_other_are_of_one_account_or_one_is_of_none(one, other):
    related = _same_scope(one, other) or _narrower_and_inside(one, other) or _narrower_and_inside(other, one)
    mine, theirs = (ExistingPolicy("p", Plan(target, ())).account for target in (one, other))
    assert not related or mine == theirs or "" in (mine, theirs)
