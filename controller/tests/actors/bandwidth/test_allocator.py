"""The allocator without I/O, on a small cluster that moves its allowed rates."""

import math

import pytest
from tests.support.actors.bandwidth import (
    MB,
    Cluster,
    bandwidth_policy,
    flow_row,
    node_load,
    replication_cap,
    report_of,
    share,
    shares_of,
)

from sluice_actors.bandwidth.reports import report
from sluice_core.describe import PROXY, STORAGE_NODE
from sluice_core.messages.bandwidth import GET, PUT, REPLICATION, Flow, Load

ALL = math.inf
TWO = {"p1": 45.0, "p2": 45.0}
FOUR = dict.fromkeys(("s1", "s2", "s3", "s4"), 60.0)
EVERYWHERE = dict.fromkeys(TWO, ALL)


def three(**more):
    """Three tenants with floors 30, 20 and 10 on a cluster with a capacity of 90."""
    cluster = Cluster(dict(TWO), dict(FOUR), {name: dict(EVERYWHERE) for name in ("T1", "T2", "T3")}, **more)
    cluster.set_policies(
        bandwidth_policy("T1", get_bw=30), bandwidth_policy("T2", get_bw=20), bandwidth_policy("T3", get_bw=10)
    )
    return cluster


def near(**expected):
    return pytest.approx(expected, rel=0.02)


def test_floors_and_an_equal_part_of_the_spare():
    assert three().run(5) == near(T1=40, T2=30, T3=20)


def test_a_flow_without_floor_gets_a_part_of_the_spare():
    cluster = three()
    cluster.asks["T4"] = {"p1": ALL}
    assert cluster.run(6) == near(T1=37.5, T2=27.5, T3=17.5, T4=7.5)


def test_an_unused_floor_goes_to_others_within_two_seconds():
    cluster = three()
    cluster.run(5)
    del cluster.asks["T1"]
    assert cluster.run(2) == near(T2=50, T3=40)
    cluster.asks["T1"] = dict(EVERYWHERE)
    cluster.run(1)
    assert cluster.run(2) == near(T1=40, T2=30, T3=20)


def test_agents_that_start_again_before_their_workers_return_change_no_share():
    cluster = three()
    cluster.run(5)
    before = {name: shares_of(cluster.last)[name].rows for name in TWO}
    for number, back in enumerate((("T3",), ("T2", "T3")), start=1):
        for name, carries in TWO.items():
            rows = [flow_row(account, 1, waiting=0.0) for account in back]
            told = node_load(name, number, *rows, started=50.0, sides=(PROXY,), capacity={PROXY: {GET: carries * MB}})
            cluster.allocator.feed(told, cluster.now + number + 0.07)
        after = shares_of(cluster.allocator.allocate(cluster.now + number + 0.18, cluster.now + number))
        assert {name: [row.rate for row in after[name].rows] for name in TWO} == {
            name: pytest.approx([row.rate for row in rows], rel=0.02) for name, rows in before.items()
        }


def test_a_small_demand_is_met_and_the_rest_is_used():
    cluster = three()
    cluster.asks["T1"] = {"p1": 5.0, "p2": 5.0}
    moved = cluster.run(8)
    assert moved["T1"] == pytest.approx(10)
    assert sum(moved.values()) > 0.95 * 90


def test_nothing_is_held_back_without_objectives():
    cluster = three()
    cluster.set_policies()
    cluster.run(3)
    assert not cluster.last.governed
    assert all(not one.rows and not one.newcomer for one in shares_of(cluster.last).values())
    assert {one["account"] for one in report_of(cluster.last).flows} == {"T1", "T2", "T3"}


def test_a_ceiling_alone_holds_back_nobody_else():
    cluster = three()
    cluster.set_policies(bandwidth_policy("T1", max_get_bw=10))
    moved = cluster.run(4)
    assert moved["T1"] == pytest.approx(10, rel=0.02)
    (only,) = shares_of(cluster.last)["p1"].rows
    assert (only.account, only.ceiling) == ("T1", only.rate)
    assert not shares_of(cluster.last)["p1"].newcomer
    assert sum(share(shares_of(cluster.last)[p].rows, PROXY, Flow("T1", GET)).ceiling for p in TWO) <= 10.001 * MB


def test_a_ceiling_is_retained_for_a_flow_that_comes_back():
    cluster = three()
    cluster.set_policies(bandwidth_policy("T1", max_get_bw=10))
    cluster.run(3)
    del cluster.asks["T1"]
    cluster.run(10)
    assert sum(share(shares_of(cluster.last)[p].rows, PROXY, Flow("T1", GET)).rate for p in TWO) == pytest.approx(
        10 * MB
    )


def test_a_ceiling_beside_a_floor():
    cluster = three()
    cluster.set_policies(bandwidth_policy("T1", get_bw=30), bandwidth_policy("T2", max_get_bw=15))
    moved = cluster.run(5)
    assert moved == near(T1=52.5, T2=15, T3=22.5)
    rows = [share(shares_of(cluster.last)[p].rows, PROXY, Flow("T2", GET)) for p in TWO]
    assert sum(one.ceiling for one in rows) <= 15.001 * MB
    assert all(one.rate <= one.ceiling * 1.0001 for one in rows)


def test_a_tenants_share_is_where_its_transfers_are():
    cluster = three()
    cluster.asks["T1"] = {"p1": ALL, "p2": 2.0}
    moved = cluster.run(8)
    assert moved == near(T1=40, T2=30, T3=20)
    cluster.asks["T1"] = {"p2": ALL}
    cluster.run(3)
    assert cluster.run(1) == near(T1=40, T2=30, T3=20)


def test_shares_follow_proxies_that_fail_and_join():
    cluster = three()
    cluster.run(5)
    del cluster.proxies["p2"]
    for places in cluster.asks.values():
        del places["p2"]
    cluster.allocator.feed(node_load("p2", 1000, gone=True), cluster.now)
    cluster.run(2)
    assert cluster.run(1) == near(T1=22.5, T2=15, T3=7.5)  # floors, cut to the capacity
    cluster.proxies["p3"] = 45.0
    for places in cluster.asks.values():
        places["p3"] = ALL
    cluster.run(2)
    assert cluster.run(1) == near(T1=40, T2=30, T3=20)


def silent(cluster, alive):
    """The agent of p2 falls silent; ``alive`` if its workers continue."""
    cluster.storage = dict.fromkeys(FOUR, 22.5)  # the scarce resource
    cluster.proxies = dict.fromkeys(TWO, 90.0)
    cluster.run(10)
    feed = cluster.allocator.feed
    cluster.allocator.feed = lambda told, arrived: told.node == "p2" or feed(told, arrived)
    if not alive:
        for places in cluster.asks.values():
            del places["p2"]


def test_a_proxy_that_fails_with_its_agent_loses_its_part_within_three_seconds():
    cluster = three()
    silent(cluster, alive=False)
    assert cluster.run(2) == near(T1=20, T2=15, T3=10)
    cluster.run(2)
    assert "p2" not in shares_of(cluster.last)
    assert cluster.run(1) == near(T1=40, T2=30, T3=20)
    for _ in range(40):
        assert cluster.run(1) == near(T1=40, T2=30, T3=20)


@pytest.mark.parametrize("buffered", [0, 3])
def test_a_proxy_whose_agent_alone_is_silent_keeps_its_part_for_half_a_minute(buffered):
    """For ``buffered`` seconds at first, object servers read far more than passes the proxies: buffers take it."""
    cluster = three(copies=12.0)
    cluster.storage = dict.fromkeys(FOUR, 1000.0)
    cluster.run(buffered)
    cluster.copies = 1.0
    silent(cluster, alive=True)
    before = shares_of(cluster.last)["p2"]
    may = cluster._may
    cluster._may = lambda side, node, account: (
        share(before.rows, side, Flow(account, GET)).rate / MB if node == "p2" else may(side, node, account)
    )
    for _ in range(28):
        cluster.run(1)
        assert "p2" in shares_of(cluster.last)
        told = [one for one in shares_of(cluster.last)["p1"].rows if one.rate >= 0]
        assert sum(one.rate for one in told) < 1.05 * 45 * MB
    cluster.run(5)
    assert "p2" not in shares_of(cluster.last)


def test_a_failure_is_detected_while_responses_come_from_caches():
    cluster = three(copies=0.5)  # half a byte is stored for each byte
    silent(cluster, alive=False)
    cluster.storage = dict.fromkeys(FOUR, 11.25)
    cluster.run(4)
    assert "p2" not in shares_of(cluster.last)


def test_where_data_lies_on_a_slow_node_only_that_tenant_gets_less():
    cluster = three()
    cluster.storage["s1"] = 20.0
    cluster.lies["T1"] = {"s1": 1.0}
    cluster.lies["T2"] = cluster.lies["T3"] = dict.fromkeys(("s2", "s3", "s4"), 1 / 3)
    assert cluster.run(6) == near(T1=20, T2=40, T3=30)
    (flow,) = (one for one in report_of(cluster.last).flows if one["account"] == "T1")
    assert flow["short"] == pytest.approx(10 * MB, rel=0.02)
    assert report_of(cluster.last).infeasible == {"T1": pytest.approx(10 * MB, rel=0.02)}


def test_floors_beyond_the_capacity_are_reported_as_infeasible():
    cluster = three()
    cluster.set_policies(bandwidth_policy("T1", get_bw=120), bandwidth_policy("T2", get_bw=60))
    moved = cluster.run(5)
    assert moved["T1"] / moved["T2"] == pytest.approx(2, rel=0.05)
    assert report_of(cluster.last).infeasible == {
        "T1": pytest.approx(60 * MB, rel=0.1), "T2": pytest.approx(30 * MB, rel=0.1)
    }  # fmt: skip
    cluster.asks.clear()
    cluster.run(3)
    assert sum(report_of(cluster.last).infeasible.values()) == pytest.approx(90 * MB)


def test_uploads_count_once_and_their_copies_are_learned():
    cluster = Cluster({"p1": 300.0}, dict(FOUR), {"T1": {"p1": ALL}, "T2": {"p1": ALL}}, method=PUT, copies=1.5)
    cluster.set_policies(bandwidth_policy("T1", put_bw=40))
    moved = cluster.run(40)
    assert sum(moved.values()) == pytest.approx(160, rel=0.02)
    assert moved["T1"] - moved["T2"] == pytest.approx(40, rel=0.05)


def test_downloads_are_held_back_at_the_storage_nodes_when_all_say_so():
    cluster = three()
    cluster.set_policies(bandwidth_policy("T1", get_bw=30, place=STORAGE_NODE))
    cluster.run(2)
    for name in ("T1", "T2"):
        told = (flow_row(name, 10, STORAGE_NODE, device=device) for device in ("sdb1", "sdb2"))
        cluster.allocator.feed(node_load("s1", 100, *told, sides=(STORAGE_NODE,)), cluster.now)
    made = cluster.allocator.allocate(cluster.now)
    assert {one.side for one in shares_of(made)["s1"].rows if one.rate >= 0} == {STORAGE_NODE}
    assert all(one.rate < 0 for one in shares_of(made)["p1"].rows)
    assert share(shares_of(made)["p1"].rows, PROXY, Flow("T1", GET)).floor > 0
    cluster.set_policies(bandwidth_policy("T1", get_bw=30, place=STORAGE_NODE), bandwidth_policy("T2", get_bw=30))
    made = cluster.allocator.allocate(cluster.now)
    assert all(one.rate < 0 for one in shares_of(made)["s1"].rows)


def test_a_floor_per_object_server_counts_those_that_serve_the_tenant():
    cluster = three()
    cluster.set_policies(bandwidth_policy("T1", node_get_bw=10, place=STORAGE_NODE))
    cluster.run(2)
    (flow,) = (one for one in report_of(cluster.last).flows if one["account"] == "T1")
    assert flow["floor"] == 40 * MB


def test_new_flows_begin_at_the_rate_of_others():
    cluster = three()
    cluster.run(5)
    told = shares_of(cluster.last)["p1"]
    assert told.newcomer == {PROXY: {GET: pytest.approx(45 * MB / 4)}}
    cluster.asks.clear()
    cluster.run(4)
    assert shares_of(cluster.last)["p1"].newcomer == {PROXY: {GET: pytest.approx(45 * MB)}}


def test_proxies_get_the_read_headroom_of_object_servers():
    cluster = three()
    cluster.lies = {name: {"s1": 0.5, "s2": 0.5} for name in cluster.asks}
    cluster.run(10)
    spares = shares_of(cluster.last)["p1"].spares
    assert spares["s1:6200"] == pytest.approx(0.25, abs=0.05)
    assert spares["s3:6200"] == 1.0
    assert not shares_of(cluster.last)["s1"].spares


def test_replication_is_capped_over_the_cluster():
    cluster = three()
    cluster.set_policies(replication_cap(8))
    busy = Load(STORAGE_NODE, "", "", REPLICATION, 0, "sdb1", 3 * MB, 1.0, 1.0)
    cluster.run(1)
    for number in range(10, 13):
        cluster.allocator.feed(node_load("s1", number, busy, sides=(STORAGE_NODE,)), cluster.now + number)
        made = cluster.allocator.allocate(cluster.now + number)
    rates = {name: share(shares_of(made)[name].rows, STORAGE_NODE, Flow("", REPLICATION)).rate for name in FOUR}
    assert sum(rates.values()) == pytest.approx(8 * MB)
    assert rates["s1"] > 7 * MB
    assert rates["s2"] > 0
    assert all(one.account == "" for name in TWO for one in shares_of(made)[name].rows)


def test_nothing_is_held_back_where_no_capacity_is_known():
    cluster = three(known=False)
    cluster.run(3)
    rows = shares_of(cluster.last)["p1"].rows
    assert {one.account for one in rows} == {"T1", "T2", "T3"}
    assert all(one.rate < 0 for one in rows)
    assert not shares_of(cluster.last)["p1"].newcomer


def test_a_violated_floor_where_no_capacity_is_known():
    cluster = three(known=False)
    cluster.proxies = dict.fromkeys(TWO, 1000.0)
    cluster.storage = dict.fromkeys(FOUR, 25.0)
    cluster.set_policies(bandwidth_policy("T1", get_bw=60))
    cluster.asks["T1"] = {"p1": 40.0, "p2": 40.0}
    assert cluster.run(3)["T1"] < 40
    cluster.run(30)
    moved = [cluster.run(1) for _ in range(30)]
    assert sum(one["T1"] for one in moved) / 30 > 0.9 * 60
    assert sum(sum(one.values()) for one in moved) / 30 > 0.9 * 100


def test_a_floor_above_the_estimated_capacity_is_reported_as_infeasible():
    cluster = three(known=False)
    cluster.proxies = dict.fromkeys(TWO, 1000.0)
    cluster.storage = dict.fromkeys(FOUR, 25.0)
    cluster.set_policies(bandwidth_policy("T1", get_bw=160))
    cluster.run(4)
    assert report_of(cluster.last).infeasible == {}  # the shortfall is not known yet
    for second in range(50):
        cluster.run(1)
        picture = report_of(cluster.last)
        sources = {one["source"] for one in picture.nodes if (one["side"], one["method"]) == (STORAGE_NODE, GET)}
        assert sources == {"estimated"}
        (flow,) = (one for one in picture.flows if one["account"] == "T1")
        assert flow["floor"] == 160 * MB
        assert flow["met"] + flow["short"] == pytest.approx(160 * MB)
        assert picture.infeasible == {"T1": pytest.approx(flow["short"])}
        assert flow["short"] == pytest.approx(60 * MB, rel=0.5 if second < 20 else 0.03)


def test_doubled_late_and_lost_messages_change_little():
    cluster = three()
    cluster.run(5)
    feed = cluster.allocator.feed
    turns = iter(range(10_000))
    held, news = {}, {"late": 0, "overtaken": 0}

    def late(told, arrived):
        """The report of this node from a round ago arrives now."""
        if feed(held.pop(told.node), arrived):
            news["late"] += 1
        else:
            news["overtaken"] += 1

    def unreliable(told, arrived):
        turn = next(turns)
        if told.node in held and turn % 2:
            late(told, arrived - 0.01)
        if turn % 7 == 0:
            return False
        if turn % 5 == 0 and told.node not in held:
            held[told.node] = told
            return True
        assert feed(told, arrived)
        assert not feed(told, arrived + 0.01)
        if told.node in held:
            late(told, arrived + 0.02)
        return True

    cluster.allocator.feed = unreliable
    for _ in range(20):
        assert cluster.run(1) == near(T1=40, T2=30, T3=20)
    assert min(news.values()) > 3
    assert cluster.allocator.loads.repeated > news["overtaken"]


def test_idle_tenants_with_floors_are_not_looked_at():
    cluster = three()
    many = [bandwidth_policy(f"I{number}", get_bw=0.001) for number in range(10_000)]
    cluster.set_policies(bandwidth_policy("T1", get_bw=30), *many)
    cluster.run(2)
    assert len(cluster.allocator._methods[GET].assigned) == 3 * (len(TWO) + len(FOUR))
    assert len(report_of(cluster.last).flows) == 10_000
    assert [one["account"] for one in report_of(cluster.last).flows if one["active"]] == ["T1", "T2", "T3"]
    assert report_of(cluster.last).left_out == {"flows": 3}  # idle ones
    assert report_of(cluster.last).took < 0.5


def test_the_report_is_json_and_bounded(monkeypatch):
    monkeypatch.setattr(report, "MAX_ROWS", dict.fromkeys(("flows", "nodes", "parts", "objects"), 1000))
    cluster = three(known=False)
    cluster.asks = {f"T{number}": {"p1": 0.01} for number in range(1500)}
    cluster.run(2)
    picture = report_of(cluster.last)
    assert len(picture.flows) == len(picture.parts) == 1000
    assert picture.left_out == {"flows": 500, "parts": 6500}
    assert "Infinity" not in picture.encode().decode()
    assert "NaN" not in picture.encode().decode()
    assert type(picture).decode(picture.encode()).number == picture.number
