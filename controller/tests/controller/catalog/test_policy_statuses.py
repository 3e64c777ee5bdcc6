"""The statuses of policies equal those of a new read, whatever happens in between."""

from dataclasses import replace

import pytest

from sluice_controller.catalog.policy_cache import PolicyCache, PolicyStatuses
from sluice_core.messages.policies import Policy, PolicyState
from sluice_core.store.records import Draft
from sluice_core.store.store import Store
from sluice_core.testing import assignment
from sluice_dsl.catalogue.vocabulary import default_catalogue
from sluice_dsl.compile import compile_text

CATALOGUE = default_catalogue()


def policy(name, dynamic=True, enabled=True):
    when = "WHEN PUTS_SEC > 3 " if dynamic else ""
    (one,) = compile_text(f"FOR TENANT AUTH_{name} {when}DO SET compression", CATALOGUE)
    return Policy(name, one.source, one.text, one.plan.to_data(), dynamic, 1, enabled=enabled)


@pytest.fixture
def store(redis_server):
    made = Store(redis_server.url, "statuses")
    made.client.flushdb()
    yield made
    made.close()


@pytest.fixture
def current(store):
    """The statuses, which must equal those of a new reader."""
    cache, statuses = PolicyCache(store), PolicyStatuses(store)

    def look():
        found = statuses.current(cache.contents())
        assert found == PolicyStatuses(store).current(PolicyCache(store).contents())
        return dict(found)

    return look


def test_a_static_policy_is_active_and_a_dynamic_one_waits_until_its_actor_writes(store, current):
    store.commit(Draft("t", policies=(policy("s", dynamic=False), policy("d"), policy("off", enabled=False))))
    assert current() == {"s": "active", "d": "waiting", "off": "disabled"}
    store.commit(Draft("t", states=(PolicyState("d", "failed", reason="no"),)))
    assert current() == {"s": "active", "d": "failed", "off": "disabled"}


def test_a_policy_that_is_new_counts_before_anything_else_is_written(store, current):
    assert current() == {}
    store.commit(Draft("t", policies=(policy("d"),)))
    assert current() == {"d": "waiting"}
    store.commit(Draft("t", policies=(policy("e"),), states=(PolicyState("e", "active"),)))
    assert current() == {"d": "waiting", "e": "active"}


def test_a_policy_that_is_replaced_waits_again(store, current):
    store.commit(Draft("t", policies=(policy("d"),), states=(PolicyState("d", "active"),)))
    assert current() == {"d": "active"}
    store.commit(Draft("t", policies=(policy("d"),), policy_drops=("d",)))
    assert current() == {"d": "waiting"}


def test_a_deleted_policy_is_gone(store, current):
    store.commit(Draft("t", policies=(policy("d"), policy("e")), states=(PolicyState("d", "active"),)))
    assert current() == {"d": "active", "e": "waiting"}
    store.commit(Draft("t", policy_drops=("d",)))
    assert current() == {"e": "waiting"}


def test_a_switch_of_a_policy_counts_at_once(store, current):
    store.commit(Draft("t", policies=(policy("d"),), states=(PolicyState("d", "active"),)))
    assert current() == {"d": "active"}
    store.commit(Draft("t", policies=(replace(policy("d"), enabled=False),)))
    assert current() == {"d": "disabled"}


def test_a_redis_that_was_wiped_is_read_anew(store, current):
    store.commit(Draft("t", policies=(policy("d"),), states=(PolicyState("d", "active"),)))
    assert current() == {"d": "active"}
    store.client.flushdb()
    store.commit(Draft("t", policies=(policy("d"),), states=(PolicyState("d", "failed"),)))
    assert current() == {"d": "failed"}


def test_when_nothing_was_written_one_number_is_read(store, current, monkeypatch):
    store.commit(Draft("t", policies=(policy("d"),), states=(PolicyState("d", "active"),)))
    cache, statuses = PolicyCache(store), PolicyStatuses(store)
    first = statuses.current(cache.contents())
    contents = cache.contents()
    asked = []
    run = store.run
    monkeypatch.setattr(store, "run", lambda operation: asked.append(operation.commands) or run(operation))
    assert statuses.current(contents) is first
    assert asked == [(("HGET", store.keys.versions, "*"),)]
    # Only the written state is read.
    store.commit(Draft("t", puts=(assignment("e.0"),)))
    asked.clear()
    assert statuses.current(contents) == first
    assert [command[0][0] for command in asked] == ["HGET", "HMGET"]
