"""Who belongs to which group, as actor hosts know it from the registry and the change stream."""

import logging

from sluice_actors.groups import Groups
from sluice_core.messages import Change, Entry
from sluice_core.registry import Group, Term


def entry(name, *members, level="tenant"):
    return Group(name, level=level, members=members).entry()


def change(*entries, drops=()):
    return Change(1, "h", 0.0, entries=entries, entry_drops=drops)


def test_groups_are_what_was_read_and_what_changed_since():
    groups = Groups()
    assert not groups.contains("tenant", "gold", "AUTH_a")
    groups.replace([entry("gold", "AUTH_a", "AUTH_b"), Term("DOCS", ("pdf",)).entry()])
    assert groups.contains("tenant", "gold", "AUTH_a")
    groups.apply(change(entry("gold", "AUTH_b", "AUTH_c"), entry("silver", "AUTH_a")))
    assert [groups.contains("tenant", "gold", path) for path in ("AUTH_a", "AUTH_b", "AUTH_c")] == [False, True, True]
    groups.apply(change(drops=("group/gold", "term/DOCS")))
    assert not groups.contains("tenant", "gold", "AUTH_b")
    groups.replace([])
    assert not groups.contains("tenant", "silver", "AUTH_a")


def test_a_group_of_tenants_and_one_of_containers_may_share_a_name():
    groups = Groups()
    groups.replace([entry("x", "AUTH_a"), entry("x", "AUTH_a/c", level="container")])
    assert groups.contains("tenant", "x", "AUTH_a")
    assert groups.contains("container", "x", "AUTH_a/c")
    assert not groups.contains("container", "x", "AUTH_a")
    assert not groups.contains("object", "x", "AUTH_a/c")


def test_a_group_that_cannot_be_read_has_no_member_and_is_named_in_the_log(caplog):
    groups = Groups()
    groups.replace([entry("gold", "AUTH_a")])
    with caplog.at_level(logging.ERROR):
        groups.apply(change(Entry("group", "gold", {"members": 5})))
    assert not groups.contains("tenant", "gold", "AUTH_a")
    assert "gold" in caplog.text
