"""Ownership of slots on a real Redis: a replaced owner can no longer write."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sluice_core.errors import Conflict, Fenced
from sluice_core.messages.policies import PolicyState
from sluice_core.store import fencing
from sluice_core.store.records import Draft
from sluice_core.testing import assignment, policy


def run(store, operation):
    return store.run(operation)


def claim(store, host, *slots):
    return run(store, fencing.claim(store.keys, host, slots))


def test_every_claim_has_a_term_that_nobody_had(store):
    first = claim(store, "h1", "3", "7")
    assert first == {"3": "1 h1", "7": "1 h1"}
    assert claim(store, "h2", "7") == {"7": "2 h2"}
    assert run(store, fencing.owners(store.keys)) == {"3": "1 h1", "7": "2 h2"}
    assert (fencing.owner_term("2 h2"), fencing.owner_host("2 h2 and more")) == (2, "h2 and more")
    assert (fencing.owner_term(""), fencing.owner_host("")) == (0, "")


def test_the_owner_commits_and_the_former_one_is_refused(store):
    old = claim(store, "h1", "5")
    store.commit(Draft("h1", puts=(assignment("p.0", "AUTH_test"),), fence=old))
    new = claim(store, "h2", "5")
    before = (store.head(), store.assignments(), store.version("assignment/p.0"))
    with pytest.raises(Fenced, match="slot `5` is owned by `2 h2` now") as refused:
        store.commit(Draft("h1", drops=("p.0",), states=(PolicyState("p"),), fence=old))
    assert refused.value.slot == "5"
    assert isinstance(refused.value, Conflict)
    assert (store.head(), store.assignments(), store.version("assignment/p.0")) == before
    store.commit(Draft("h2", drops=("p.0",), fence=new))
    assert store.assignments() == []


def test_one_stale_slot_refuses_the_whole_draft(store):
    held = claim(store, "h1", "1", "2", "3")
    claim(store, "h2", "2")
    with pytest.raises(Fenced) as refused:
        store.commit(Draft("h1", puts=(assignment("p.0", "AUTH_test"),), fence=held))
    assert refused.value.slot == "2"
    assert store.head().epoch == 0


def test_a_restart_under_the_same_name_is_another_owner(store):
    old = claim(store, "h1", "1")
    claim(store, "h1", "1")
    with pytest.raises(Fenced):
        store.commit(Draft("h1", states=(PolicyState("p"),), fence=old))


def test_what_is_given_back_is_owned_by_nobody_unless_it_was_taken(store):
    held = claim(store, "h1", "1", "2")
    taken = claim(store, "h2", "2")
    assert run(store, fencing.release(store.keys, held)) == 1
    assert run(store, fencing.owners(store.keys)) == taken
    with pytest.raises(Fenced, match="owned by ``"):
        store.commit(Draft("h1", states=(PolicyState("p"),), fence={"1": held["1"]}))


def test_slots_divide_names_evenly_and_for_ever():
    counts = {}
    for number in range(10_000):
        slot = fencing.slot_of(f"policy-{number:08x}")
        counts[slot] = counts.get(slot, 0) + 1
    assert set(counts) == set(fencing.all_slots())
    assert max(counts.values()) < 4 * 10_000 / fencing.SLOTS
    assert fencing.slot_of("policy-00000001") == "203"  # another number would move slots of a running cluster


def test_policies_and_assignments_are_read_by_name(store):
    store.commit(
        Draft(
            "t",
            policies=(policy("a"), policy("b")),
            states=(PolicyState("a", "active"),),
            puts=(assignment("a.0", "AUTH_1"), assignment("a.1@x.y@z", "AUTH_1"), assignment("b.0", "AUTH_2")),
        )
    )
    store.client.hset(store.keys.policies, "broken", b"no json")
    found = run(store, fencing.policies(store.keys, ["b", "none", "a", "broken"]))
    assert [(one.id, version, state and state.status) for one, version, state in found] == [
        ("b", 1, None), ("a", 1, "active"),
    ]  # fmt: skip
    names = run(store, fencing.hash_fields(store.keys.assignments))
    mine = fencing.assignments_of_policies(names, {"a"})
    assert sorted(mine) == ["a.0", "a.1@x.y@z"]
    assert {one.id for one in run(store, fencing.assignments(store.keys, [*mine, "gone.0"]))} == set(mine)
    assert run(store, fencing.policies(store.keys, [])) == run(store, fencing.assignments(store.keys, [])) == []
    assert [len(part) for part in fencing.chunks(["x"] * (2 * fencing.CHUNK + 1))] == [1000, 1000, 1]


STEPS = st.lists(
    st.tuples(st.sampled_from(["claim", "commit", "late commit", "release"]), st.integers(0, 1), st.sampled_from("12")),
    max_size=30,
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(STEPS)
def test_however_two_hosts_interleave_only_the_last_claimer_commits(store, steps):
    """``late commit`` is that of a suspended host: it uses the ownership of its first claim."""
    store.client.flushall()
    told = ({}, {})
    owner = {}
    for what, host, slot in steps:
        if what == "claim":
            mine = claim(store, f"h{host}", slot)[slot]
            told[host].setdefault(slot, []).append(mine)
            owner[slot] = mine
        elif what == "release":
            for one in told[host].get(slot, [])[-1:]:
                run(store, fencing.release(store.keys, {slot: one}))
                if owner.get(slot) == one:
                    del owner[slot]
        elif told[host].get(slot):
            mine = told[host][slot][-1 if what == "commit" else 0]
            draft = Draft(f"h{host}", states=(PolicyState(f"p{slot}", reason=mine),), fence={slot: mine})
            if owner.get(slot) == mine:
                store.commit(draft)
                assert store.state(f"p{slot}").reason == mine
            else:
                before = store.state(f"p{slot}")
                with pytest.raises(Fenced):
                    store.commit(draft)
                assert store.state(f"p{slot}") == before
