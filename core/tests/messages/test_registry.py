"""The registry: entries of every kind, stored with the configuration and sent in the change stream."""

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sluice_core.errors import Conflict, DecodeError
from sluice_core.messages.policies import CONTAINER, Change, Entry
from sluice_core.messages.registry import (
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
    groups,
    is_member,
    named_records,
)
from sluice_core.store.records import Draft

THINGS = [
    Group("gold"),
    Group("logs", level=CONTAINER),
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
    assert set(named_records(entries, Group)) == {"gold", "logs"}
    assert set(named_records(entries, Group, CONTAINER_GROUP)) == {"logs"}
    assert named_records(entries, Term) == {"DOCS": THINGS[2]}


GOLD = Group("gold", members=("AUTH_a", "AUTH_b"), labels={"AUTH_a": "acme"})
LOGS = Group("gold", level=CONTAINER, members=("AUTH_a/logs", "AUTH_b/logs"))


def test_a_group_is_its_own_entry_and_one_of_each_member():
    entries = {one.key: one for group in (GOLD, LOGS, Group("golden")) for one in group.entries(5, "me")}
    assert list(entries) == [
        "group/gold", "tenant_member/gold/AUTH_a", "tenant_member/gold/AUTH_b",
        "container_group/gold", "container_member/gold/AUTH_a/logs", "container_member/gold/AUTH_b/logs",
        "group/golden",
    ]  # fmt: skip
    assert groups(entries, GROUP) == {"gold": GOLD, "golden": Group("golden")}
    assert groups(entries, GROUP, "gold") == {"gold": GOLD}
    assert groups(entries, CONTAINER_GROUP) == {"gold": LOGS}
    assert groups(entries, GROUP, "gol") == {}
    assert [is_member(key) for key in entries] == [False, True, True, False, True, True, False]


def test_a_group_that_makes_no_sense_is_left_out_with_its_members():
    entries = {one.key: one for one in GOLD.entries()} | {"group/gold": Entry(GROUP, "gold", {"members": 5})}
    assert groups(entries, GROUP) == {}


def test_one_who_comes_or_goes_is_one_entry_however_large_the_group():
    large = Group("g", members=tuple(f"AUTH_{number:05}" for number in range(10_000)))
    fewer, more = replace(large, members=large.members[1:]), replace(large, members=(*large.members, "AUTH_z"))
    assert more.changes_from(large) == ((more.entry(), Entry("tenant_member", "g/AUTH_z", {"label": ""})), ())
    assert fewer.changes_from(large) == ((fewer.entry(),), ("tenant_member/g/AUTH_00000",))
    assert len(Change(1, "h", 0.0, entries=more.changes_from(large)[0]).encode()) < 500


members = st.dictionaries(st.sampled_from(["AUTH_a", "AUTH_b", "AUTH_c", "größe"]), st.sampled_from(["", "acme"]))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50, deadline=None)
@given(st.lists(members, max_size=5))
def test_what_changed_leads_where_a_whole_replacement_does(store, steps):
    store.client.flushdb()
    old = None
    for labelled in steps:
        new = Group("g").with_members(labelled)
        puts, drops = new.changes_from(old)
        store.commit(Draft("me", entries=puts, entry_drops=drops))
        assert groups(store.entries(), GROUP) == {"g": new}
        assert store.entries() == {one.key: one for one in new.entries()}
        assert {one.key for one in store.load().entries} == set(store.entries())
        old = new
    followed = {}
    for change in store.changes_after(0):
        for name in change.entry_drops:
            del followed[name]
        followed |= {one.key: one for one in change.entries}
    assert followed == store.entries()


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
