"""Tenants take turns: none holds all places, however slow its sources."""

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice_motifs.expansion.turns import Turns


def tenant(name):
    return name.partition("/")[0]


def take(turns, name, most):
    """How many places a tenant gets at once."""
    return next(taken for taken in range(most + 1) if taken == most or not turns.acquire(name, 0.0))


def wait_for(turns, name, order):
    """Wait for a place in a thread; the thread records when it gets one."""
    queued = len(turns._waiting.get(tenant(name), ()))
    waiter = threading.Thread(target=lambda: turns.acquire(name, 20.0) and order.append(name), daemon=True)
    waiter.start()
    while len(turns._waiting.get(tenant(name), ())) == queued:
        threading.Event().wait(0.001)
    return waiter


def test_a_tenant_alone_does_not_take_all_places():
    turns = Turns(16, tenant)
    assert take(turns, "a/c/o", 99) == 11
    assert take(turns, "b/c/o", 99) == 4
    assert take(turns, "c/c/o", 99) == 1
    assert take(turns, "a/c/o", 99) == 0


def test_who_holds_none_does_not_wait_for_those_who_hold_all():
    turns = Turns(4, tenant)
    assert [take(turns, f"{number}/c/o", 99) for number in range(10)] == [3, 1, 1, 1, 1, 1, 0, 0, 0, 0]


@pytest.mark.parametrize(("places", "alone"), [(1, 1), (2, 2), (3, 2)])
def test_with_few_places_a_tenant_has_one_at_least(places, alone):
    turns = Turns(places, tenant)
    assert take(turns, "a/c/o", 99) == alone
    assert turns.acquire("b/c/o", 0.0)


def test_a_place_goes_to_who_holds_the_fewest_and_within_a_tenant_to_the_first():
    turns, order = Turns(4, tenant), []
    assert [take(turns, "a/c/o", 99), take(turns, "b/c/o", 99)] == [3, 1]
    waiters = [wait_for(turns, name, order) for name in ("a/c/1", "a/c/2", "b/c/1", "b/c/2")]
    for name in ("a/c/o", "a/c/o", "a/c/o", "b/c/o"):
        served = len(order)
        turns.release(name)
        while name == "a/c/o" and len(order) == served:
            threading.Event().wait(0.001)
    for waiter in waiters:
        waiter.join(20)
    assert [name for name in order if name.startswith("b")] == ["b/c/1", "b/c/2"]
    assert [name for name in order if name.startswith("a")] == ["a/c/1", "a/c/2"]
    assert order[0] == "b/c/1", "it held fewer"


def test_who_gives_up_leaves_nothing_behind():
    turns = Turns(1, tenant)
    assert turns.acquire("a/c/o", 0.0)
    assert not turns.acquire("a/c/o", 0.01)
    turns.release("a/c/o")
    assert (turns._free, turns._waiting, turns._held) == (1, {}, {})


@given(
    st.integers(1, 6),
    st.lists(st.tuples(st.booleans(), st.sampled_from("abcd")), max_size=60),
)
def test_places_are_never_lost_nor_given_twice(places, steps):
    turns, held = Turns(places, tenant), dict.fromkeys("abcd", 0)
    for takes, name in steps:
        if takes:
            free = places - sum(held.values())
            allowed = held[name] < 2 * free if held[name] else free > -places
            assert turns.acquire(f"{name}/o", 0.0) is allowed
            held[name] += allowed
        elif held[name]:
            turns.release(f"{name}/o")
            held[name] -= 1
    for name, count in held.items():
        for _ in range(count):
            turns.release(f"{name}/o")
    assert (turns._free, turns._waiting, turns._held) == (places, {}, {})
