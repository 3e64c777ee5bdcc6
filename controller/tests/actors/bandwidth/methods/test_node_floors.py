"""Floors of each object server (``node_get_bw``) hold on each, wherever most transfers are."""

import math

import numpy as np
import pytest
from tests.support.actors.bandwidth import MB, bandwidth_policy, flow_row, node_load, report_of, share, shares_of

from sluice_actors.bandwidth.allocator import Allocator
from sluice_core.describe import PROXY, STORAGE_NODE
from sluice_core.messages.bandwidth import GET, Flow

SERVERS = ("s1", "s2", "s3", "s4")
FEW, MANY = {"s1": 34.0, "s2": 2.0, "s3": 2.0, "s4": 2.0}, {"s1": 2.0, "s2": 34.0, "s3": 34.0, "s4": 34.0}


def divided(opened, *promises, capacity=20.0, moved=10.0, waits=True, proxies=math.inf, rounds=11):
    """The allocation of the last round; ``opened`` maps a tenant to its transfers on each server, which all wait."""
    allocator = Allocator()
    allocator.objectives.replace(promises)
    for number in range(1, rounds + 1):
        for name in SERVERS:
            rows = [
                flow_row(
                    account, moved, STORAGE_NODE, device="d", policy=policy, open=many[name], waiting=many[name] * waits
                )
                for (account, policy), many in opened.items()
                if name in many
            ]
            given = {"sides": (STORAGE_NODE,), "capacity": {STORAGE_NODE: {GET: capacity * MB}}}
            allocator.feed(node_load(name, number, *rows, server=f"{name}:6200", **given), 100.0 + number)
        if math.isfinite(proxies):
            rows = [flow_row(account, 1.0, policy=policy) for account, policy in opened]
            given = {"sides": (PROXY,), "capacity": {PROXY: {GET: proxies * MB}}}
            allocator.feed(node_load("p1", number, *rows, **given), 100.0 + number)
        made = allocator.allocate(100.3 + number)
    return made


def rates(made, account, policy=0, what="rate"):
    """MB/s on each server."""
    found = [share(shares_of(made)[name].rows, STORAGE_NODE, Flow(account, GET, policy)) for name in SERVERS]
    return [0.0 if one is None else getattr(one, what) / MB for one in found]


def each(rate):
    """``SET bandwidth WITH node_get_bw`` for T1 and T2."""
    return [bandwidth_policy(name, node_get_bw=rate, place=STORAGE_NODE) for name in ("T1", "T2")]


def test_node_floors_that_fill_the_servers_are_met_on_each():
    made = divided({("T1", 0): FEW, ("T2", 0): MANY}, *each(10))
    for account in ("T1", "T2"):
        assert rates(made, account) == pytest.approx([10] * 4, rel=0.01)
        assert rates(made, account, what="floor") == pytest.approx([10] * 4, rel=0.01)
    assert report_of(made).infeasible == {}


def test_capacity_above_node_floors_goes_where_transfers_are():
    made = divided({("T1", 0): FEW, ("T2", 0): MANY}, *each(5))
    for account in ("T1", "T2"):
        assert min(rates(made, account)) >= 5
    assert rates(made, "T1")[0] > 2 * rates(made, "T2")[0]
    assert np.add(rates(made, "T1"), rates(made, "T2")) == pytest.approx([20] * 4, rel=0.01)


def test_node_floors_beyond_a_servers_capacity_are_cut_in_proportion():
    promises = [bandwidth_policy(name, node_get_bw=rate, place=STORAGE_NODE) for name, rate in (("T1", 30), ("T2", 10))]
    made = divided({("T1", 0): FEW, ("T2", 0): MANY}, *promises, moved=15.0)
    assert rates(made, "T1") == pytest.approx([15] * 4, rel=0.01)
    assert rates(made, "T2") == pytest.approx([5] * 4, rel=0.01)
    missing = {"T1": pytest.approx(60 * MB, rel=0.01), "T2": pytest.approx(20 * MB, rel=0.01)}
    assert report_of(made).infeasible == missing


def test_a_node_floor_demanded_on_one_server_alone_is_not_exceeded_there():
    made = divided({("T1", 0): {"s1": 40.0}, ("T2", 0): MANY}, *each(10))
    assert [rates(made, name)[0] for name in ("T1", "T2")] == pytest.approx([10, 10], rel=0.01)
    assert report_of(made).infeasible == {}
    (flow,) = (one for one in report_of(made).flows if one["account"] == "T1")
    assert (flow["floor"], flow["met"], flow["short"]) == (10 * MB, 10 * MB, 0.0)


def test_a_node_floor_comes_before_a_floor_over_the_cluster():
    promises = (
        bandwidth_policy("T1", node_get_bw=10, place=STORAGE_NODE),
        bandwidth_policy("T2", get_bw=70, place=STORAGE_NODE),
    )
    made = divided({("T1", 0): FEW, ("T2", 0): MANY}, *promises)
    assert rates(made, "T1") == pytest.approx([10] * 4, rel=0.01)
    assert sum(rates(made, "T2")) == pytest.approx(40, rel=0.01)


def test_storage_policies_of_one_objective_share_its_node_floor():
    made = divided({("T1", 0): FEW, ("T1", 1): MANY, ("T2", 0): MANY}, *each(10))
    both = np.add(rates(made, "T1", what="floor"), rates(made, "T1", 1, what="floor"))
    assert both == pytest.approx([10] * 4, rel=0.01)
    assert rates(made, "T2", what="floor") == pytest.approx([10] * 4, rel=0.01)


def test_unused_node_floors_go_to_others():
    allocator = Allocator()
    allocator.objectives.replace(each(10))
    given = {"sides": (STORAGE_NODE,), "capacity": {STORAGE_NODE: {GET: 20 * MB}}}
    little = flow_row("T1", 1, STORAGE_NODE, device="d", waiting=0.0)
    for number in range(1, 12):
        for name in SERVERS:
            allocator.feed(
                node_load(name, number, little, flow_row("T2", 19, STORAGE_NODE, device="d"), **given), 100.0 + number
            )
        made = allocator.allocate(100.3 + number)
    assert 1.0 < rates(made, "T1")[0] < 3.0
    assert rates(made, "T2")[0] > 17


def test_node_floors_are_cut_to_ceilings_and_to_the_capacity_of_proxies():
    promises = [bandwidth_policy("T1", node_get_bw=10, max_get_bw=16, place=STORAGE_NODE), each(10)[1]]
    made = divided({("T1", 0): FEW, ("T2", 0): MANY}, *promises)
    assert sum(rates(made, "T1")) <= 16.01
    assert min(rates(made, "T2")) >= 9.99
    made = divided({("T1", 0): FEW, ("T2", 0): MANY}, *each(10), proxies=40)
    assert sum(rates(made, "T1", what="floor")) == pytest.approx(20, rel=0.02)
    assert rates(made, "T1", what="floor") == pytest.approx([5] * 4, rel=0.02)
