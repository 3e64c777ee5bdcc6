"""Floors of members of groups count without any demand, whether a byte of them ever moved or not."""

import pytest
from tests.support.actors.bandwidth import MB, bandwidth_policy, flow_row, node_load, report_of

from sluice_actors.bandwidth import objectives
from sluice_actors.bandwidth.allocator import Allocator
from sluice_actors.bandwidth.reports import report
from sluice_actors.policies.group_index import GroupIndex
from sluice_core.describe import PROXY, STORAGE_NODE
from sluice_core.messages.bandwidth import GET, PUT
from sluice_core.messages.policies import Change, Entry, Target
from sluice_core.messages.registry import CONTAINER_MEMBER, TENANT_MEMBER
from sluice_core.testing import assignment

GOLD, SILVER = (Target("tenant", "group", name) for name in ("gold", "silver"))
LOGS = Target("container", "group", "logs")


def entries(group, *paths, kind=TENANT_MEMBER):
    return [Entry(kind, f"{group}/{path}", {}) for path in paths]


def divided(promises, *members):
    groups = GroupIndex()
    groups.replace(members)
    allocator = Allocator(groups)
    allocator.objectives.replace(promises)
    return allocator, groups


def second(allocator, number, *rows, side=PROXY):
    """A proxy and an object server with 100 MB/s for each method, and the rows of one of them."""
    for node, here in (("p1", PROXY), ("s1", STORAGE_NODE)):
        capacity = {here: {GET: 100 * MB, PUT: 100 * MB}}
        told = rows if here == side else ()
        allocator.feed(node_load(node, number, *told, sides=(here,), capacity=capacity), 100.0 + number)
    return report_of(allocator.allocate(100.2 + number))


def test_floors_of_members_that_never_moved_anything_count():
    allocator, _ = divided([bandwidth_policy("p", get_bw=50, target=GOLD)], *entries("gold", "a", "b", "c", "d"))
    picture = second(allocator, 1)
    assert picture.lacking == {"p": {"get_bw": pytest.approx(100 * MB)}}
    assert {one["account"]: one["short"] for one in picture.flows} == dict.fromkeys("abcd", 25 * MB)


def test_an_active_member_counts_once():
    allocator, _ = divided([bandwidth_policy("p", get_bw=50, target=GOLD)], *entries("gold", "a", "b", "c", "d"))
    for number in range(1, 4):
        picture = second(allocator, number, flow_row("a", 40))
        assert picture.infeasible == {"p": pytest.approx(100 * MB)}
        assert sorted(one["account"] for one in picture.flows) == list("abcd")
    for number in range(4, 14):
        picture = second(allocator, number)
    assert not any(one["active"] for one in picture.flows)
    assert picture.infeasible == {"p": pytest.approx(100 * MB)}
    assert sorted(one["account"] for one in picture.flows) == list("abcd")


def test_members_that_join_or_leave_count_from_the_next_second():
    allocator, groups = divided([bandwidth_policy("p", get_bw=60, target=GOLD)], *entries("gold", "a"))
    assert second(allocator, 1).infeasible == {}
    for number, (more, drops, short) in enumerate(
        [(entries("gold", "b"), (), 20), ([], ("tenant_member/gold/a",), 0), (entries("gold", "c", "d"), (), 80)], 2
    ):
        change = Change(1, "h", 0.0, entries=tuple(more), entry_drops=drops)
        groups.apply(change)
        allocator.objectives.apply(change)
        assert sum(second(allocator, number).infeasible.values()) == pytest.approx(short * MB)


def test_an_objective_by_name_replaces_that_of_the_group():
    members = entries("gold", "a", "b", "c", "d")
    group, low = bandwidth_policy("p", get_bw=70, target=GOLD), bandwidth_policy("a", get_bw=20)
    none = assignment("d.0", "c", "bandwidth", "bandwidth", verb="delete")
    allocator, _ = divided([group, low, bandwidth_policy("b", "b.0", max_get_bw=9), none], *members)
    floors = sorted((one["account"], one["floor"] / MB) for one in second(allocator, 1).flows)
    assert floors == [("a", 20), ("b", 0), ("d", 70)]


def test_a_floor_for_all_counts_for_tenants_that_were_seen():
    everybody = bandwidth_policy("all", get_bw=60, target=Target("tenant", "all"))
    allocator, _ = divided([everybody, bandwidth_policy("p", put_bw=60, target=GOLD)], *entries("gold", "a", "b", "c"))
    assert second(allocator, 1).lacking.keys() == {"p"}


def test_a_member_of_two_groups_has_one_of_both_floors_and_one_of_each_storage_policy():
    members = [*entries("gold", "a"), *entries("silver", "a", "b")]
    gold = bandwidth_policy("g", get_bw=30, target=GOLD)
    object.__setattr__(gold, "created", 5)
    allocator, _ = divided([gold, bandwidth_policy("s", get_bw=20, target=SILVER)], *members)
    floors = sorted((one["account"], one["floor"] / MB) for one in second(allocator, 1).flows)
    assert floors == [("a", 30), ("b", 20)]
    ssd = bandwidth_policy("x", get_bw=40, storage_policy="1", target=SILVER)
    allocator, _ = divided([bandwidth_policy("s", get_bw=20, target=SILVER), ssd], *members)
    floors = sorted((one["account"], one["policy"], one["floor"] / MB) for one in second(allocator, 1).flows)
    assert floors == [("a", -1, 20), ("a", 1, 40), ("b", -1, 20), ("b", 1, 40)]


def test_a_group_of_containers_promises_to_containers():
    members = entries("logs", "a/c", "b/c/d", kind=CONTAINER_MEMBER)
    allocator, _ = divided([bandwidth_policy("p", put_bw=10, target=LOGS), bandwidth_policy("a", get_bw=1)], *members)
    found = {(one["account"], one["container"], one["method"]) for one in second(allocator, 1).flows}
    assert found == {("a", "c", PUT), ("b", "c/d", PUT), ("a", "", GET)}


def test_a_floor_of_each_object_server_counts_on_all_of_them():
    allocator, _ = divided(
        [bandwidth_policy("p", node_get_bw=80, place=STORAGE_NODE, target=GOLD)], *entries("gold", "a", "b")
    )
    assert second(allocator, 1).lacking == {"p": {"node_get_bw": pytest.approx(60 * MB)}}


def test_a_ceiling_of_a_group_promises_nothing():
    allocator, _ = divided([bandwidth_policy("p", max_get_bw=1, target=GOLD)], *entries("gold", *map(str, range(500))))
    picture = second(allocator, 1)
    assert (picture.infeasible, picture.flows) == ({}, ())


def test_the_number_of_members_looked_up_is_bounded(monkeypatch):
    monkeypatch.setattr(objectives, "MAX_MEMBERS", 5)
    promises = [bandwidth_policy("p", get_bw=50, target=GOLD), bandwidth_policy("q", get_bw=50, target=SILVER)]
    allocator, _ = divided(promises, *entries("gold", "a", "b", "c"), *entries("silver", *map(str, range(9))))
    assert sum(second(allocator, 1).infeasible.values()) == pytest.approx(150 * MB)


def test_unseen_members_are_reported_where_there_is_room(monkeypatch):
    monkeypatch.setitem(report.MAX_ROWS, "flows", 6)
    promises = [bandwidth_policy("p", get_bw=50, put_bw=1, target=GOLD), bandwidth_policy("z", get_bw=1)]
    allocator, _ = divided(promises, *entries("gold", *map(str, range(9))))
    picture = second(allocator, 1, flow_row("a", 1), flow_row("b", 2), flow_row("c", 3, method=PUT))
    assert [one["account"] for one in picture.flows[:4]] == ["a", "b", "c", "z"]
    assert [one["method"] for one in picture.flows[4:]] == [GET, PUT]
    assert picture.left_out["flows"] == 16
    assert picture.infeasible["p"] == pytest.approx(351 * MB * 450 / 451, rel=0.01)


def test_each_of_many_groups_is_looked_up_once():
    members = [entry for group in range(200) for entry in entries(f"g{group}", *(f"m{n}" for n in range(20)))]
    promises = [
        bandwidth_policy("p", f"p{n}.0", get_bw=1, target=Target("tenant", "group", f"g{n}")) for n in range(200)
    ]
    allocator, groups = divided(promises, *members)
    asked = []
    among = groups.among
    groups.among = lambda *what: asked.append(what) or among(*what)
    second(allocator, 1)
    second(allocator, 2)
    assert len(asked) == 200
    assert len(allocator.objectives.member_floors(GET)) == 20


def test_groups_know_their_members():
    groups = GroupIndex()
    groups.replace([*entries("gold", "a", "b"), *entries("gold", "x/c", kind=CONTAINER_MEMBER)])
    assert (groups.members("tenant", "gold"), groups.members("container", "gold")) == (("a", "b"), ("x/c",))
    assert groups.among("tenant", "gold", {"b", "c"}) == {"b"}
    assert groups.members("tenant", "none") == ()
    assert not groups.among("container", "none", {"a"})
    groups.apply(Change(1, "h", 0.0, entry_drops=("tenant_member/gold/a", "tenant_member/gold/b", "tenant_member/x/y")))
    assert groups.members("tenant", "gold") == ()
