"""The report of a round: fresh rows, omitted rows, and missing bandwidth."""

import pytest
from tests.support.actors.bandwidth import (
    MB,
    Cluster,
    bandwidth_policy,
    flow_row,
    node_load,
    report_of,
    share,
    shares_of,
)

from sluice_actors.bandwidth.allocator import Allocator
from sluice_actors.bandwidth.reports import report
from sluice_core.describe import PROXY, STORAGE_NODE
from sluice_core.messages.bandwidth import GET, PUT, REPLICATION, Flow, Load, MovedObject
from sluice_core.messages.policies import ALL, TENANT, Target

EVERYBODY = Target(TENANT, ALL)


def told(allocator, number, *rows, node="s1", side=STORAGE_NODE, get=100.0, put=100.0, **more):
    capacity = {side: {GET: get * MB, PUT: put * MB}}
    allocator.feed(node_load(node, number, *rows, sides=(side,), capacity=capacity, **more), 100.0 + number)


def divided(*promises):
    allocator = Allocator()
    allocator.objectives.replace(promises)
    return allocator


def flow(picture, account, method=GET):
    (found,) = (one for one in picture.flows if (one["account"], one["method"]) == (account, method))
    return found


def test_a_silent_node_is_not_reported_but_keeps_its_share():
    allocator = divided(bandwidth_policy("T1", get_bw=30))
    moved = MovedObject("sdb1", 0, "T1", "T1/c/o", GET, "0-end", 5 * MB)
    for number in (1, 2):
        told(allocator, number, flow_row("T1", 10, STORAGE_NODE, device="sdb1"), objects=(moved,))
        told(allocator, number, flow_row("T1", 10), node="p1", side=PROXY)
        told(allocator, number, flow_row("T1", 5), node="p2", side=PROXY)
    picture = report_of(allocator.allocate(102.2))
    assert {one["node"] for one in picture.nodes} == {"s1", "p1", "p2"}
    assert flow(picture, "T1")["measured"] == 15 * MB
    told(allocator, 5, flow_row("T1", 10), node="p2", side=PROXY)
    made = allocator.allocate(105.2)
    assert {one["node"] for one in (*report_of(made).nodes, *report_of(made).parts)} == {"p2"}
    assert report_of(made).objects == ()
    assert flow(report_of(made), "T1")["measured"] == 10 * MB
    assert share(shares_of(made)["p1"].rows, PROXY, Flow("T1", GET)).rate > 0


def test_a_cut_list_has_flows_with_objectives_and_each_method(monkeypatch):
    monkeypatch.setattr(report, "MAX_ROWS", {"flows": 6, "nodes": 6, "parts": 6, "objects": 6})
    allocator = divided(bandwidth_policy("small", get_bw=1))
    busy = [flow_row(f"T{number}", 50 + number, STORAGE_NODE, device="sdb1") for number in range(20)]
    puts = [flow_row(f"T{number}", 1, STORAGE_NODE, method=PUT, device="sdb1") for number in range(20)]
    objects = tuple(MovedObject("d", 0, "T", str(one), GET, "0-end", float(one)) for one in range(20))
    rows = [*busy, *puts, flow_row("small", 0.1, STORAGE_NODE, device="sdb1")]
    told(allocator, 1, *rows, objects=objects)
    told(allocator, 1, *(one._replace(side=PROXY, device="") for one in rows), node="p1", side=PROXY)
    picture = report_of(allocator.allocate(101.1))
    assert picture.left_out == {"flows": 35, "parts": 76, "objects": 14}
    for rows in (picture.flows, picture.parts):
        assert {one["method"] for one in rows} == {GET, PUT}
        assert any(one["account"] == "small" for one in rows)
        assert "T19" in {one["account"] for one in rows if one["method"] == GET}
    assert [one["rate"] for one in picture.objects] == [19, 18, 17, 16, 15, 14]


def test_nodes_that_are_too_many_are_cut_alike_for_each_method(monkeypatch):
    monkeypatch.setitem(report.MAX_ROWS, "nodes", 30)
    allocator = divided()
    for number in range(40):
        told(allocator, 1, flow_row("T", number, STORAGE_NODE, device="d"), node=f"s{number}")
    picture = report_of(allocator.allocate(101.1))
    counts = [sum(one["method"] == method for one in picture.nodes) for method in (GET, PUT, REPLICATION)]
    assert (counts, picture.left_out) == ([10, 10, 10], {"nodes": 90})
    assert {one["node"] for one in picture.nodes if one["method"] == GET} == {f"s{number}" for number in range(30, 40)}


def asked(picture):
    """Account and storage policy → the floors of the objectives, in MB/s."""
    return {
        (one["account"], one["policy"]): (one["asked"] / MB, one["node_asked"] / MB)
        for one in picture.flows
        if "asked" in one
    }


def test_flows_say_what_was_asked_for_them_whatever_they_get():
    allocator = divided(
        bandwidth_policy("both", get_bw=60),
        bandwidth_policy("each", get_bw=10, node_get_bw=40, place=STORAGE_NODE),
        bandwidth_policy("capped", max_get_bw=5),
    )
    names = (("both", 0), ("both", 1), ("each", 0), ("capped", 0), ("free", 0))
    nodes = (("p1", PROXY, ""), ("s1", STORAGE_NODE, "d"), ("s2", STORAGE_NODE, "d"))
    for number in (1, 2):
        for node, side, device in nodes:
            rows = [flow_row(name, 10, side, device=device, policy=policy) for name, policy in names]
            told(allocator, number, *rows, node=node, side=side)
        picture = report_of(allocator.allocate(100.1 + number))
    wanted = {("both", 0): (60, 0), ("both", 1): (60, 0), ("each", 0): (10, 40), ("capped", 0): (0, 0)}
    assert asked(picture) == wanted
    (shared,) = (one for one in picture.flows if (one["account"], one["policy"]) == ("both", 0))
    assert shared["floor"] < 60 * MB, "its floor is divided among storage policies"
    for number in range(3, 12):
        for node, side, _ in nodes:
            told(allocator, number, node=node, side=side)
        picture = report_of(allocator.allocate(100.1 + number))
    assert not any(one["active"] for one in picture.flows)
    assert asked(picture) == {("both", -1): (60, 0), ("each", -1): (10, 40), ("capped", -1): (0, 0)}


def test_an_idle_floor_that_cannot_be_carried_is_short_per_tenant_and_parameter():
    allocator = divided(bandwidth_policy("A", get_bw=150, put_bw=80), bandwidth_policy("B", get_bw=50))
    told(allocator, 1)
    picture = report_of(allocator.allocate(101.1))
    assert picture.lacking == {
        "A": {"get_bw": pytest.approx(75 * MB), "put_bw": pytest.approx((1 - 100 / 240) * 80 * MB)},
        "B": {"get_bw": pytest.approx(25 * MB)},
    }
    assert picture.infeasible["A"] == pytest.approx(sum(picture.lacking["A"].values()))
    found = flow(picture, "A")
    assert (found["floor"], found["met"], found["short"], found["active"]) == (150 * MB, 75 * MB, 75 * MB, False)


def test_idle_floors_of_each_object_server_count_on_all_of_them():
    allocator = divided(
        bandwidth_policy("A", node_get_bw=80, place=STORAGE_NODE),
        bandwidth_policy("B", node_get_bw=120, place=STORAGE_NODE),
    )
    for node in ("s1", "s2"):
        told(allocator, 1, node=node)
    picture = report_of(allocator.allocate(101.1))
    assert picture.lacking == {"A": {"node_get_bw": 80 * MB}, "B": {"node_get_bw": 120 * MB}}
    assert flow(picture, "A")["short"] == 80 * MB


def test_idle_floors_of_everybody_count_for_those_who_were_seen():
    allocator = divided(bandwidth_policy("all", get_bw=60, target=EVERYBODY))
    told(allocator, 1)
    assert report_of(allocator.allocate(101.1)).infeasible == {}
    told(allocator, 2, *(flow_row(name, 1, STORAGE_NODE, device="d", waiting=0.0) for name in ("A", "B", "C")))
    for number in range(3, 12):
        told(allocator, number)
    picture = report_of(allocator.allocate(111.1))
    assert not any(one["active"] for one in picture.flows)
    assert picture.lacking == {"all": {"get_bw": pytest.approx(80 * MB)}}
    assert flow(picture, "B")["short"] == pytest.approx(80 * MB / 3)


def test_idle_floors_are_judged_by_the_copies_of_their_own_storage_policy():
    allocator = divided(bandwidth_policy("A", put_bw=60, storage_policy="1"))
    for number in range(1, 30):
        told(allocator, number, flow_row("B", 10, method=PUT, policy=1), node="p1", side=PROXY)
        told(allocator, number, flow_row("B", 15, STORAGE_NODE, method=PUT, policy=1, device="d"))
        picture = report_of(allocator.allocate(100.1 + number))
    assert allocator._amplification.factor(1) == pytest.approx(1.5, abs=0.05)
    assert picture.infeasible == {}  # 60 × 1.5 of 100, where 60 × 3 would not fit


def lost(copied, waiting, seconds=10):
    """A tenant with a floor of 40 that moves 10 on a disk with ``copied`` of replication."""
    allocator = divided(bandwidth_policy("A", get_bw=40))
    copies = Load(STORAGE_NODE, "", "", REPLICATION, 0, "d", copied * MB, 1.0, 0.0)
    for number in range(1, seconds):
        told(allocator, number, flow_row("A", 10, waiting=waiting), node="p1", side=PROXY)
        told(allocator, number, flow_row("A", 10, STORAGE_NODE, device="d", waiting=0.0), copies)
        picture = report_of(allocator.allocate(100.1 + number))
    return picture


def test_a_floor_that_is_lost_to_replication_shows_what_it_gets():
    picture = lost(80, waiting=0.0)
    found = flow(picture, "A")
    assert (found["met"], found["short"]) == (pytest.approx(10 * MB), pytest.approx(30 * MB))
    assert picture.lacking == {"A": {"get_bw": pytest.approx(30 * MB)}}
    assert lost(80, waiting=0.0, seconds=4).infeasible == {}


def test_a_waiting_flow_below_its_floor_is_short_and_a_slow_one_is_not():
    assert flow(lost(0, waiting=3.0), "A")["short"] == pytest.approx(30 * MB)
    assert flow(lost(1, waiting=0.0), "A")["short"] == 0.0


def test_a_class_beside_a_ceiling_is_told_to_object_servers():
    ceiling = {"max_get_bw": 10, "class": "gold"}
    cluster = Cluster({"p1": 50.0}, {"s1": 50.0}, {"A": {"p1": 50.0}, "B": {"p1": 5.0}})
    cluster.set_policies(bandwidth_policy("A", **ceiling))
    cluster.run(3)
    (only,) = shares_of(cluster.last)["s1"].rows
    assert (only.side, only.account, only.rate, only.ceiling, only.priority) == (STORAGE_NODE, "A", -1.0, 0.0, 1)
    assert shares_of(cluster.last)["p1"].rows[0].rate == pytest.approx(10 * MB)
