"""Members of groups on actor hosts, from the registry and the change stream."""

from hypothesis import given
from hypothesis import strategies as st

from sluice_actors.policies.group_index import GroupIndex
from sluice_core.messages.policies import Change
from sluice_core.messages.registry import Group, Term


def entries(name, *members, level="tenant"):
    return Group(name, level, members).entries()


def change(entries=(), drops=()):
    return Change(1, "h", 0.0, entries=tuple(entries), entry_drops=drops)


def test_groups_follow_the_registry_and_its_changes():
    groups = GroupIndex()
    assert not groups.contains("tenant", "gold", "AUTH_a")
    groups.replace([*entries("gold", "AUTH_a", "AUTH_b"), Term("DOCS", ("pdf",)).entry()])
    assert groups.contains("tenant", "gold", "AUTH_a")
    came = (*entries("gold", "AUTH_c"), *entries("silver", "AUTH_a"))
    groups.apply(change(came, drops=("tenant_member/gold/AUTH_a",)))
    assert [groups.contains("tenant", "gold", path) for path in ("AUTH_a", "AUTH_b", "AUTH_c")] == [False, True, True]
    gone = ("group/gold", "tenant_member/gold/AUTH_b", "tenant_member/gold/AUTH_c", "term/DOCS")
    groups.apply(change(drops=gone))
    assert not groups.contains("tenant", "gold", "AUTH_b")
    groups.replace([])
    assert not groups.contains("tenant", "silver", "AUTH_a")


def test_a_group_of_tenants_and_one_of_containers_may_share_a_name():
    groups = GroupIndex()
    groups.replace([*entries("x", "AUTH_a"), *entries("x", "AUTH_a/c", level="container")])
    assert groups.contains("tenant", "x", "AUTH_a")
    assert groups.contains("container", "x", "AUTH_a/c")
    assert not groups.contains("container", "x", "AUTH_a")
    assert not groups.contains("object", "x", "AUTH_a/c")


ACCOUNTS = ("AUTH_a", "AUTH_b", "AUTH_c")


@given(st.lists(st.tuples(st.sampled_from("gh"), st.frozensets(st.sampled_from(ACCOUNTS))), max_size=8))
def test_applying_changes_equals_reading_all_members_again(steps):
    followed, anew, known = GroupIndex(), GroupIndex(), {}
    for name, members in steps:
        new = Group(name, members=tuple(sorted(members)))
        puts, drops = new.changes_from(known.get(name))
        known[name] = new
        followed.apply(change(puts, drops))
        anew.replace([one for group in known.values() for one in group.entries()])
        for path in ACCOUNTS:
            assert [each.contains("tenant", name, path) for each in (followed, anew)] == [path in members] * 2
