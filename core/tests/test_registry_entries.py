"""What the registry holds: entries of every kind, kept with everything else and told in the change stream."""

import pytest

from sluice_core.errors import Conflict, DecodeError
from sluice_core.messages import CONTAINER, Entry
from sluice_core.registry import (
    CONTAINER_GROUP,
    GROUP,
    KINDS,
    METRIC,
    Activation,
    Alias,
    Dependency,
    Group,
    Metric,
    Placement,
    Stereotype,
    Term,
    things,
)
from sluice_core.store import Draft

THINGS = [
    Group("gold", members=("AUTH_a", "AUTH_b"), labels={"AUTH_a": "acme"}),
    Group("logs", level=CONTAINER, members=("AUTH_a/logs",)),
    Term("DOCS", ("pdf", "application/msword")),
    Alias("GET_SEC_TENANT", METRIC, "GETS_SEC", "tenant"),
    Stereotype("archive", "FOR {target} DO SET compression", "what is seldom read"),
    Placement("AUTH_a", "ec21"),
    Activation("compression", "http://127.0.0.1/on", "http://127.0.0.1/off"),
    Metric("CPU_BUSY", "fraction", "gauge", ("node", "tenant"), 10.0, "of all cores", "x/metric.CPU_BUSY.*"),
    Dependency("commons.jar", "ab" * 32, 5, 2, "for the parser"),
]


@pytest.mark.parametrize("thing", THINGS, ids=lambda thing: thing.name)
def test_a_thing_is_read_back_out_of_its_entry(thing):
    entry = Entry.decode(thing.entry(5, "me").encode())
    assert KINDS[entry.kind].read(entry) == thing
    assert (entry.created, entry.created_by, entry.key) == (5, "me", f"{entry.kind}/{thing.name}")


def test_an_entry_of_another_kind_or_shape_is_refused():
    with pytest.raises(DecodeError, match="group/gold"):
        Term.read(THINGS[0].entry())
    with pytest.raises(DecodeError):
        Group.read(Entry(GROUP, "g", {"members": 5}))


def test_things_are_sorted_out_by_class_and_kind():
    entries = {one.key: one for one in (thing.entry() for thing in THINGS)} | {
        "group/bad": Entry(GROUP, "bad", {"members": 5})
    }
    assert set(things(entries, Group)) == {"gold", "logs"}
    assert set(things(entries, Group, CONTAINER_GROUP)) == {"logs"}
    assert things(entries, Term) == {"DOCS": THINGS[2]}


def test_entries_are_committed_told_and_dropped(store):
    gold, docs = THINGS[0].entry(), THINGS[2].entry()
    first = store.commit(Draft("me", entries=(gold, docs), expect={"entry/group/gold": 0}))
    assert store.entries() == {gold.key: gold, docs.key: docs}
    assert store.load().entries == (gold, docs)
    assert store.version("entry/group/gold") == first.version
    with pytest.raises(Conflict, match="entry/group/gold"):
        store.commit(Draft("me", entries=(gold,), expect={"entry/group/gold": 0}))
    store.commit(Draft("me", entry_drops=(docs.key,), expect={"entry/term/DOCS": first.version}))
    assert store.entries() == {gold.key: gold}
    changes = store.changes_after(0)
    assert [(one.entries, one.entry_drops) for one in changes] == [((gold, docs), ()), ((), ("term/DOCS",))]
