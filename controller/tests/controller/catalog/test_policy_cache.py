"""The cache follows the change stream; after any change it equals a new read."""

from dataclasses import replace

import pytest

from sluice_controller.catalog.policy_cache import PolicyCache
from sluice_core.messages.policies import Policy
from sluice_core.messages.registry import Group, Term, groups
from sluice_core.store.records import Draft, Head
from sluice_core.store.store import Store
from sluice_core.testing import assignment
from sluice_dsl.catalogue.base import Catalogue
from sluice_dsl.catalogue.vocabulary import default_catalogue
from sluice_dsl.compile import compile_text

CATALOGUE: Catalogue = default_catalogue()


def policy(name, created=1):
    (one,) = compile_text(f"FOR TENANT AUTH_{name} DO SET compression", CATALOGUE)
    return Policy(name, one.source, one.text, one.plan.to_data(), False, created)


@pytest.fixture
def store(redis_server, monkeypatch):
    monkeypatch.setattr("sluice_core.store.commit.STREAM_LENGTH", 5)
    made = Store(redis_server.url, "cache")
    made.client.flushdb()
    yield made
    made.close()


def assert_fresh(cache, store):
    """``cache`` must equal a cache that has just read everything; returns the ids, oldest first."""
    seen, fresh = cache.contents(), PolicyCache(store).contents()
    assert (seen.head, seen.policies, seen.epochs) == (fresh.head, fresh.policies, fresh.epochs)
    assert seen.ordered == fresh.ordered
    assert seen.existing == fresh.existing
    return [one.policy.id for one in seen.ordered]


def test_an_empty_redis_is_an_empty_cache(store):
    assert assert_fresh(PolicyCache(store), store) == []


def test_created_changed_and_deleted_policies_are_followed(store):
    cache = PolicyCache(store)
    store.commit(Draft("t", policies=(policy("b", 2), policy("a", 2), policy("c", 1))))
    assert assert_fresh(cache, store) == ["c", "a", "b"]
    store.commit(Draft("t", policies=(replace(policy("a", 2), created=3),)))
    assert assert_fresh(cache, store) == ["c", "b", "a"]
    store.commit(Draft("t", policy_drops=("c",)))
    assert assert_fresh(cache, store) == ["b", "a"]


def test_new_policies_are_sorted_by_age(store):
    cache = PolicyCache(store)
    store.commit(Draft("t", policies=(policy("a", 5),)))
    assert assert_fresh(cache, store) == ["a"]
    before = cache.contents()
    store.commit(Draft("t", policies=(policy("d", 9), policy("c", 9), policy("b", 7))))
    assert assert_fresh(cache, store) == ["a", "b", "c", "d"]
    assert [one.policy.id for one in before.ordered] == ["a"], "what was handed out does not change"
    store.commit(Draft("t", policies=(policy("e", 8), policy("f", 10))))
    assert assert_fresh(cache, store) == ["a", "b", "e", "c", "d", "f"]
    store.commit(Draft("t", policies=(policy("g", 20),)))
    store.commit(Draft("t", policies=(policy("h", 30),), policy_drops=("g",)))
    assert assert_fresh(cache, store) == ["a", "b", "e", "c", "d", "f", "h"]


def test_assignments_change_the_epoch_of_their_policy_alone(store):
    cache = PolicyCache(store)
    store.commit(Draft("t", policies=(policy("a"), policy("b"))))
    before = cache.contents()
    store.commit(Draft("t", puts=(assignment("a.0"),)))
    after = cache.contents()
    assert after.epochs == {"a": 2, "b": 1}
    assert before.epochs == {"a": 1, "b": 1}, "what was handed out does not change"
    store.commit(Draft("t", drops=("a.0",)))
    assert cache.contents().epochs == {"a": 3, "b": 1}
    assert_fresh(cache, store)


def test_a_cache_behind_a_trimmed_stream_reads_everything_again(store):
    cache = PolicyCache(store)
    store.commit(Draft("t", policies=(policy("a"),)))
    cache.contents()
    for number in range(300):
        store.commit(Draft("t", policies=(policy(f"n{number}"),)))
    assert len(assert_fresh(cache, store)) == 301


@pytest.mark.parametrize("changes", [0, 1, 5])
def test_a_wiped_redis_is_detected_even_at_the_same_epoch(store, changes):
    cache = PolicyCache(store)
    for _ in range(3):
        store.commit(Draft("t", policies=(policy("a"),)))
    assert assert_fresh(cache, store) == ["a"]
    store.client.flushdb()
    for _ in range(changes):
        store.commit(Draft("t", policies=(policy("b"),)))
    assert assert_fresh(cache, store) == (["b"] if changes else [])


@pytest.mark.parametrize("others", [0, 1, 2])
def test_changes_that_a_failover_lost_are_forgotten(store, monkeypatch, others):
    """The server that takes over has the same history; it may have as many changes as the lost ones, or more."""
    monkeypatch.setattr("sluice_controller.catalog.policy_cache._LOOK_AGAIN", 0.0)
    cache = PolicyCache(store)
    store.commit(Draft("t", policies=(policy("a"),)))
    replica = {key: store.client.dump(key) for key in store.client.scan_iter()}
    store.commit(Draft("t", policies=(policy("lost"),)))
    assert assert_fresh(cache, store) == ["a", "lost"]
    store.client.flushdb()
    for key, dump in replica.items():
        store.client.restore(key, 0, dump)
    for number in range(others):
        store.commit(Draft("t", policies=(policy(f"n{number}", 2),)))
    assert assert_fresh(cache, store) == ["a", *(f"n{number}" for number in range(others))]


def test_without_changes_nothing_is_read(store, monkeypatch):
    cache = PolicyCache(store)
    store.commit(Draft("t", policies=(policy("a"),)))
    first = cache.contents()
    monkeypatch.setattr(store, "policies", None)
    monkeypatch.setattr(store, "changes_after", None)
    assert cache.contents() is first
    assert first.head == Head(first.head.history, 1)


def test_a_policy_that_cannot_be_read_is_left_out_and_named_in_the_log(store, caplog):
    store.commit(Draft("t", policies=(policy("a"), replace(policy("b"), plan={"nonsense": 1}))))
    assert [one.policy.id for one in PolicyCache(store).contents().ordered] == ["a"]
    assert "`b`" in caplog.text


def test_members_who_come_and_go_are_followed_and_leave_the_vocabulary_as_it_is(store):
    cache = PolicyCache(store)
    gold = Group("gold", members=("AUTH_a",))
    store.commit(Draft("t", entries=gold.entries()))
    words = cache.contents().vocabulary
    assert words.groups == {"gold": "tenant"}
    puts, drops = Group("gold", members=("AUTH_b",)).changes_from(gold)
    store.commit(Draft("t", entries=puts, entry_drops=drops))
    contents = cache.contents()
    assert groups(contents.entries, "group")["gold"].members == ("AUTH_b",)
    assert contents.vocabulary is words
    store.commit(Draft("t", entries=(Term("PAPERS", ("pdf",)).entry(),)))
    assert cache.contents().vocabulary.terms == {"PAPERS": ("pdf",)}
    store.commit(Draft("t", entry_drops=("group/gold", "tenant_member/gold/AUTH_b")))
    assert cache.contents().vocabulary.groups == {}
