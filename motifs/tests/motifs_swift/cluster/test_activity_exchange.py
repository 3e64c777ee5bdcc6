"""Daemons exchange the events of items."""

import pytest

from sluice_motifs.items import ItemTable
from sluice_motifs_swift.cluster.activity_exchange import ActivityExchange, MotifActivity, add_activity

pytestmark = pytest.mark.service


class Daemon:
    def __init__(self, store, name):
        self.items = ItemTable()
        self.exchange = ActivityExchange(store, self.items, name, lambda: 5.0)
        self.items.watch(self.exchange)
        self.exchange.step()


@pytest.fixture
def daemons(store):
    return Daemon(store, "n1/1"), Daemon(store, "n2/1")


def test_what_happens_at_one_daemon_is_known_at_the_others(daemons):
    one, other = daemons
    one.items.put("a/c/1", 10, True)
    one.items.put("a/c/2", 10, True)
    one.exchange.step()
    other.exchange.step()
    one.items.put("a/c/1", 10, False)
    one.items.remove("a/c/2")
    for _ in range(3):
        one.items.note_open("a/c/1", 1.0)
    one.items.note_expansion("a/c/1", 2.5)
    one.exchange.step()
    other.exchange.step()
    found = other.items.statistics("a/c/1")
    assert (found.expanded, found.opens, found.last_open, found.expansion_seconds) == (False, 3, 5.0, 2.5)
    assert other.items.names() == ["a/c/1"]


def test_what_was_told_by_others_is_not_told_again(daemons, store):
    one, other = daemons
    one.items.put("a/c/1", 10, True)
    one.exchange.step()
    other.exchange.step()
    other.exchange.step()
    one.exchange.step()
    assert store.client.xlen(store.keys.motif_activity) == 1


def test_much_is_told_in_pieces_and_nonsense_passed_over(daemons, store):
    one, other = daemons
    for number in range(4500):
        one.items.put(f"a/c/{number}", 1, True)
    store.client.xadd(store.keys.motif_activity, {"activity": b"{"})
    one.exchange.step()
    store.run(add_activity(store.keys, MotifActivity("n3/1", changed=(("a/d/1", 7, 1),))))
    other.exchange.step()
    assert len(other.items) == 4501


def test_it_tells_by_itself_and_before_it_ends(store, daemons):
    items = ItemTable()
    items.put("a/c/old", 1, True)
    exchange = ActivityExchange(store, items, "n4/1")
    exchange.start()
    items.put("a/c/new", 1, True)
    exchange.stop()
    _, other = daemons
    other.exchange.step()
    assert other.items.names() == ["a/c/new"]
