"""The records of objects with motifs in Redis."""

import pytest

from sluice_core.store.store import Store
from sluice_motifs_swift.objects import item_index


@pytest.fixture
def store(redis_server):
    store = Store(redis_server.url, "items")
    store.client.flushall()
    yield store
    store.close()


def run(store, build, *given):
    return store.run(build(store.keys, *given))


def test_items_are_all_known_after_a_scan_until_redis_has_lost_them(store):
    assert not run(store, item_index.is_complete)
    run(store, item_index.set_complete)
    assert run(store, item_index.is_complete)
    store.client.flushall()
    assert not run(store, item_index.is_complete)


def test_what_is_derived_is_told_as_far_as_it_is_known(store):
    run(store, item_index.add_item, "a/c/ü", ["a/c/1", "a/c/2"])
    run(store, item_index.add_item, "a/c/b", ["a/c/2"])
    run(store, item_index.add_item, "a/c/plain")
    assert run(store, item_index.find_derived, ["a/c/1", "a/c/2", "a/c/3"]) == [["a/c/ü"], ["a/c/b", "a/c/ü"], []]
    run(store, item_index.remove_derived, "a/c/2", ["a/c/ü", "a/c/b"])
    assert run(store, item_index.find_derived, ["a/c/1", "a/c/2"]) == [["a/c/ü"], []]
    assert run(store, item_index.items_after, "") == ["a/c/b", "a/c/plain", "a/c/ü"]


def test_items_are_listed_in_pages(store):
    names = [f"a/c/{number}" for number in range(5)]
    for name in (*names, "a/c/gone"):
        run(store, item_index.add_item, name)
    run(store, item_index.remove_item, "a/c/gone")
    assert run(store, item_index.items_after, "", 3) == names[:3]
    assert run(store, item_index.items_after, names[2], 3) == names[3:]
    assert run(store, item_index.items_after, names[-1], 3) == []
