from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice_core.errors import Conflict
from sluice_motifs.space.ledger import SpaceItem, SpaceLedger, SpaceUsage

slots = st.integers(0, 5)
items = st.tuples(st.sampled_from(["a", "b"]), st.integers(0, 9), st.booleans())
#: A slot becomes another item (None: is free), or the scan reads a slot, or delivers the oldest of what it has read.
steps = st.lists(
    st.tuples(st.just("change"), slots, st.none() | items) | st.tuples(st.sampled_from(["read", "deliver"]))
)


def sums(table):
    found = defaultdict(SpaceLedger)
    for item in table.values():
        found[item.space].add(item)
    return {space: ledger.usage(space) for space, ledger in found.items()}


def change(ledger, table, slot, new):
    old = table.pop(slot, None)
    if new is not None:
        table[slot] = SpaceItem(slot, *new)
    if old is None and new is not None:
        ledger.add(table[slot])
    elif old is not None and new is not None:
        ledger.change(old, table[slot])
    elif old is not None:
        ledger.remove(old)


def usages(ledger):
    return {space: ledger.usage(space) for space in ledger.spaces()}


def test_bytes_and_items_are_summed_by_space_and_state():
    ledger = SpaceLedger()
    ledger.add(SpaceItem(0, "a", 5, True))
    ledger.add(SpaceItem(1, "a", 7, True))
    ledger.add(SpaceItem(2, "b", 1, True))
    ledger.change(SpaceItem(1, "a", 7, True), SpaceItem(1, "a", 7, False))
    ledger.remove(SpaceItem(2, "b", 1, True))
    assert usages(ledger) == {"a": SpaceUsage(5, 7, 1, 1)}
    assert ledger.usage("b") == SpaceUsage()


@given(st.dictionaries(slots, items), steps)
def test_a_rebuild_counts_each_item_as_it_is_whatever_changes_meanwhile(before, steps):
    table = {slot: SpaceItem(slot, *item) for slot, item in before.items()}
    ledger = SpaceLedger()  # it has forgotten all of them
    rebuild = ledger.rebuild()
    unread, under_way = list(range(6)), []
    for step in (*steps, *[("read",), ("deliver",)] * 6):
        if step[0] == "change":
            change(ledger, table, step[1], step[2])
        elif step[0] == "read" and unread:
            under_way.append([table[slot] for slot in (unread.pop(0),) if slot in table])
        elif step[0] == "deliver" and under_way:
            rebuild.count(under_way.pop(0))
    for piece in under_way:
        rebuild.count(piece)
    rebuild.finish()
    assert usages(ledger) == sums(table)
    assert not ledger.drifted


def test_the_old_sums_serve_until_a_rebuild_is_finished():
    ledger = SpaceLedger()
    ledger.add(SpaceItem(0, "a", 5, True))
    rebuild = ledger.rebuild()
    rebuild.count([SpaceItem(1, "a", 3, True)])
    assert ledger.usage("a").expanded_bytes == 5
    rebuild.finish()
    assert ledger.usage("a").expanded_bytes == 3


def test_a_rebuild_ends_when_another_one_is_begun():
    ledger = SpaceLedger()
    old, new = ledger.rebuild(), ledger.rebuild()
    with pytest.raises(Conflict, match="this rebuild of the ledger is over"):
        old.count([])
    new.finish()
    with pytest.raises(Conflict, match="this rebuild of the ledger is over"):
        new.finish()


def test_an_item_that_was_not_counted_leaves_no_negative_sums_and_asks_for_a_rebuild():
    ledger = SpaceLedger()
    ledger.add(SpaceItem(0, "a", 5, True))
    ledger.change(SpaceItem(1, "a", 7, True), SpaceItem(1, "a", 7, False))
    assert ledger.usage("a") == SpaceUsage(0, 7, 0, 1)
    assert ledger.drifted
    ledger.rebuild().finish()
    assert not ledger.drifted


def test_nonsense_is_refused_and_changes_nothing():
    ledger = SpaceLedger()
    with pytest.raises(ValueError, match="item `0` has -1 bytes, expected at least 0"):
        ledger.add(SpaceItem(0, "a", -1, True))
    with pytest.raises(ValueError, match="slot `0` became slot `1`, expected the same item"):
        ledger.change(SpaceItem(0, "a", 1, True), SpaceItem(1, "a", 1, True))
    assert ledger.spaces() == ()
