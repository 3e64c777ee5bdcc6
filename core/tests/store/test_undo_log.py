"""The script that commits a change also stores the documents that it replaced."""

import pytest

from sluice_core.errors import Conflict
from sluice_core.messages.policies import Entry, PolicyState
from sluice_core.store.change_stream import (
    CONFIGURATION,
    changes_before,
    oldest_change,
    replaced_before,
    replaced_since,
)
from sluice_core.store.records import Draft
from sluice_core.testing import assignment, policy


def test_each_change_remembers_what_it_replaced(store):
    term = Entry("term", "DOCS", {"values": ["pdf"]})
    store.commit(Draft("me", policies=(policy("a", 1),)))
    store.commit(Draft("me", policies=(policy("a", 2), policy("b", 2)), entries=(term,)))
    store.commit(Draft("me", policy_drops=("b",), entry_drops=("term/DOCS",)))
    past = store.run(replaced_since(store.keys, 2))
    assert past.since == 0
    assert past.first == {"policy/a": policy("a", 1).encode(), "policy/b": b"", "entry/term/DOCS": b""}
    assert past.later == {"policy/b": policy("b", 2).encode(), "entry/term/DOCS": term.encode()}
    assert past.replaced()["policy/b"] == b"", "the oldest wins"
    assert store.run(replaced_since(store.keys, 3)).replaced() == past.later


def test_what_actors_do_is_not_remembered_and_leaves_no_gap(store):
    store.commit(Draft("me", policies=(policy("a"),)))
    version = store.version(CONFIGURATION)
    for number in range(3):
        store.commit(Draft("host", puts=(assignment(f"a.{number}"),), states=(PolicyState("a"),)))
    assert store.version(CONFIGURATION) == version
    store.commit(Draft("me", policies=(policy("a", 2),)))
    past = store.run(replaced_since(store.keys, 5))
    assert (past.since, list(past.first), past.later) == (0, ["policy/a"], {})


def test_what_was_replaced_is_read_backwards_in_pages(store):
    for number in range(3):
        store.commit(Draft("me", policies=(policy("a", number),)))
    newest, second = store.run(replaced_before(store.keys, "", 2))
    assert [newest[1], second[1]] == [{"policy/a": policy("a", number).encode()} for number in (1, 0)]
    ((_, oldest),) = store.run(replaced_before(store.keys, second[0], 2))
    assert oldest == {"policy/a": b""}


def test_a_history_that_began_before_anything_was_remembered_reaches_back_to_there(store):
    for number in range(4):
        store.commit(Draft("me", policies=(policy(f"p{number}"),)))
    store.client.delete(store.keys.past)
    assert store.run(replaced_since(store.keys, 1)).since == 4
    store.commit(Draft("me", policies=(policy("q"),)))
    assert store.run(replaced_since(store.keys, 1)).since == 4


def test_a_change_of_thousands_is_remembered_whole(store):
    store.commit(Draft("me", policies=tuple(policy(f"p{number}") for number in range(1200))))
    assert store.client.xlen(store.keys.past) == 3
    past = store.run(replaced_since(store.keys, 1))
    assert (past.since, len(past.first)) == (0, 1200)
    store.client.xtrim(store.keys.past, maxlen=2, approximate=False)
    assert store.run(replaced_since(store.keys, 1)).since == 1, "a change that lost a part cannot be undone"


def test_a_guard_on_the_whole_configuration_refuses_when_any_part_of_it_changed(store):
    store.commit(Draft("me", policies=(policy("a"),)))
    seen = store.version(CONFIGURATION)
    store.commit(Draft("you", entries=(Entry("term", "X", {"values": []}),)))
    with pytest.raises(Conflict, match="config"):
        store.commit(Draft("me", policies=(policy("b"),), expect={CONFIGURATION: seen}))


def test_a_policy_that_is_dropped_and_put_is_replaced_with_all_it_set(store):
    store.commit(Draft("me", policies=(policy("a", 1, dynamic=True),)))
    store.commit(
        Draft("host", puts=(assignment("a.0"), assignment("a.1@AUTH_x")), states=(PolicyState("a", "active"),))
    )
    new = policy("a", 1)
    done = store.commit(Draft("me", puts=(assignment("a.0", keyword="lower"),), policies=(new,), policy_drops=("a",)))
    assert store.policy("a") == (new, done.version)
    assert store.state("a") is None
    assert [(one.id, one.keyword) for one in store.assignments()] == [("a.0", "lower")]
    assert store.epochs() == {"a": 3}
    (change,) = store.changes_after(2)
    assert set(change.drops) == {"a.0", "a.1@AUTH_x"}
    assert [one.keyword for one in change.puts] == ["lower"]


@pytest.mark.parametrize("count", [2, 7])
def test_dropped_policies_take_theirs_and_nothing_else(store, count):
    names = [f"p{number}" for number in range(count)]
    kept = ["p10.0", "q.0", "p1x.0@a/p1.0"]
    mine = [f"{name}.{number}@AUTH_a/c.1" for name in names for number in (0, 11)]
    store.commit(Draft("me", puts=tuple(map(assignment, [*kept, *mine])), policies=tuple(map(policy, names))))
    store.commit(Draft("me", policy_drops=tuple(names)))
    assert sorted(one.id for one in store.assignments()) == sorted(kept)


def test_changes_are_read_backwards(store):
    for number in range(5):
        store.commit(Draft(f"by{number}", policies=(policy(f"p{number}"),)))
    assert [one.epoch for one in store.run(changes_before(store.keys, 6, 2))] == [5, 4]
    assert [one.by for one in store.run(changes_before(store.keys, 4, 10))] == ["by2", "by1", "by0"]
    assert store.run(oldest_change(store.keys)) == 1
    store.client.xtrim(store.keys.changes, maxlen=2, approximate=False)
    assert store.run(oldest_change(store.keys)) == 4
