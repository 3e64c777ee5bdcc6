"""What Redis knows of objects with motifs is used only while it is complete."""

import pytest

from sluice_core.errors import PeerError
from sluice_core.motifs import dependents
from sluice_core.store.store import Store


@pytest.fixture
def store(redis_server):
    store = Store(redis_server.url, "dependents")
    store.client.flushall()
    yield store
    store.close()


def run(store, build, *given):
    return store.run(build(store.keys, *given))


def test_dependents_are_told_only_after_a_scan_in_this_run(store):
    run(store, dependents.add_dependent, "a/c/source", "a/c/ü")
    with pytest.raises(PeerError, match="scan"):
        run(store, dependents.find_dependents, "a/c/source")
    assert not run(store, dependents.is_complete)
    assert not run(store, dependents.set_complete, "another run")
    assert run(store, dependents.set_complete, run(store, dependents.current_run))
    assert run(store, dependents.is_complete)
    run(store, dependents.add_dependent, "a/c/source", "a/c/b")
    assert run(store, dependents.find_dependents, "a/c/source") == ["a/c/b", "a/c/ü"]
    run(store, dependents.remove_dependent, "a/c/source", "a/c/b")
    assert run(store, dependents.find_dependents, "a/c/source") == ["a/c/ü"]
    assert run(store, dependents.find_dependents, "a/c/other") == []
    store.client.flushall()
    with pytest.raises(PeerError, match="scan"):
        run(store, dependents.find_dependents, "a/c/source")


def test_what_is_derived_is_told_as_far_as_it_is_known(store):
    run(store, dependents.add_item, "a/c/ü", ["a/c/1", "a/c/2"])
    run(store, dependents.add_item, "a/c/b", ["a/c/2"])
    run(store, dependents.add_item, "a/c/plain")
    assert run(store, dependents.find_derived, ["a/c/1", "a/c/2", "a/c/3"]) == [["a/c/ü"], ["a/c/b", "a/c/ü"], []]
    run(store, dependents.remove_derived, "a/c/2", ["a/c/ü", "a/c/b"])
    assert run(store, dependents.find_derived, ["a/c/1", "a/c/2"]) == [["a/c/ü"], []]
    assert run(store, dependents.items_after, "") == ["a/c/b", "a/c/plain", "a/c/ü"]


def test_items_are_listed_in_pages(store):
    names = [f"a/c/{number}" for number in range(5)]
    for name in (*names, "a/c/gone"):
        run(store, dependents.add_item, name)
    run(store, dependents.remove_item, "a/c/gone")
    assert run(store, dependents.items_after, "", 3) == names[:3]
    assert run(store, dependents.items_after, names[2], 3) == names[3:]
    assert run(store, dependents.items_after, names[-1], 3) == []
