"""Reports of nodes: doubled, late, missing, invalid."""

import math
from dataclasses import replace

import numpy as np
import pytest
from tests.support.actors.bandwidth import MB, flow_row, flow_stat, node_load

from sluice_actors.bandwidth.loads import node_loads
from sluice_actors.bandwidth.loads.decoder import PackedNodeLoad
from sluice_actors.bandwidth.loads.flow_index import FlowNodeValues
from sluice_actors.bandwidth.loads.node_loads import FORGET_SECONDS, LoadTable, NodeLoads
from sluice_core.describe import PROXY, STORAGE_NODE
from sluice_core.errors import DecodeError
from sluice_core.messages.bandwidth import GET, SIDES, Flow

A = (PROXY, Flow("a", GET))


@pytest.fixture
def loads():
    return NodeLoads()


def stat(loads, place=A, node="n"):
    return flow_stat(loads, node, *place)


def places(loads, node="n"):
    """Side and flow of all values of a node."""
    names = loads.flow_index
    found = loads.nodes[node].stats.flow_sides.tolist()
    flows = ((side, flow) for flow in names.flows for side in SIDES)
    return {(side, flow) for side, flow in flows if names.flow_side(side, flow) in found}


def test_a_decoded_report_is_read_like_the_original(loads):
    told = node_load("n", 1, flow_row("a", 1), flow_row("b", 2, STORAGE_NODE, device="sdb1"), policies={"0": "gold"})
    assert loads.feed(PackedNodeLoad.decode(told.encode()), 1.0)
    assert stat(loads, (STORAGE_NODE, Flow("b", GET))).moved == 2 * MB
    assert loads.policies == {"0": "gold"}
    short = replace(told, rows=(tuple(flow_row("a", 1))[:-1],))
    with pytest.raises(DecodeError):
        PackedNodeLoad.decode(short.encode())


def test_repeated_and_overtaken_reports_are_refused(loads):
    assert loads.feed(node_load("n", 5, flow_row("a", 1)), 10.0)
    assert not loads.feed(node_load("n", 5, flow_row("a", 9)), 10.1)
    assert not loads.feed(node_load("n", 4, flow_row("a", 9)), 10.2)
    assert stat(loads).moved == MB
    assert loads.repeated == 2


def test_another_start_counts_at_once_unless_it_seems_to_lie_before(loads):
    loads.feed(node_load("n", 50, flow_row("a", 1), started=100.0), 10.0)
    assert loads.feed(node_load("n", 1, flow_row("a", 2), started=200.0), 10.5)
    assert not loads.feed(node_load("n", 99, flow_row("a", 3), started=100.0), 11.0)
    assert loads.feed(node_load("n", 1, flow_row("a", 4), started=50.0), 15.0)
    assert loads.nodes["n"].started == 50.0


def test_another_start_keeps_what_the_node_had_until_its_workers_are_back(loads):
    loads.feed(node_load("n", 50, flow_row("a", 4), started=100.0), 10.0)
    moved = []
    for number, at in enumerate((20.0, 21.0, 22.0), start=1):
        loads.feed(node_load("n", number, flow_row("a", number), started=200.0), at)
        moved.append(stat(loads).moved / MB)
    assert moved == [4, 4, 3]
    loads.feed(node_load("n", 1, started=300.0, gone=True), 23.0)
    assert not places(loads)


def test_a_new_flow_counts_in_full_and_then_as_a_mean(loads):
    loads.feed(node_load("n", 1, flow_row("a", 8)), 1.0)
    assert stat(loads).mean_moved == 8 * MB
    loads.feed(node_load("n", 2, flow_row("a", 0.1)), 2.0)
    assert 5 * MB < stat(loads).mean_moved < 8 * MB
    loads.feed(node_load("n", 9, flow_row("a", 0.1)), 9.0)
    assert stat(loads).mean_moved < 4 * MB


def test_a_flow_without_transfers_leaves_a_node_within_three_seconds(loads):
    loads.feed(node_load("n", 1, flow_row("a", 8)), 1.0)
    presence = []
    for number in (2, 3):
        loads.feed(node_load("n", number), float(number))
        stats = loads.nodes["n"].stats
        presence += stats.presence.tolist()
        assert not stats.active.any()
    assert presence == [pytest.approx(2 / 3), pytest.approx(1 / 3)]
    loads.feed(node_load("n", 4), 4.0)
    assert stat(loads) is None


def test_devices_of_one_flow_are_added_up(loads):
    loads.feed(
        node_load("n", 1, flow_row("a", 1, STORAGE_NODE, device="sdb1"), flow_row("a", 2, STORAGE_NODE, device="sdc1")),
        1.0,
    )
    found = stat(loads, (STORAGE_NODE, Flow("a", GET)))
    assert (found.moved, found.open) == (3 * MB, 8.0)
    rows = loads.nodes["n"].rows
    assert [loads.flow_index.key(number)[-1] for number in rows.numbers.tolist()] == ["sdb1", "sdc1"]
    assert rows.moved.tolist() == [MB, 2 * MB]


def test_ended_nodes_are_forgotten_at_once_and_silent_ones_after_a_while(loads):
    loads.feed(node_load("n", 1, flow_row("a", 1)), 1.0)
    loads.feed(node_load("m", 1, flow_row("a", 1)), 1.0)
    loads.feed(node_load("n", 2, flow_row("a", 1), gone=True), 2.0)
    assert not places(loads)
    loads.forget(1.0 + FORGET_SECONDS)
    assert stat(loads, node="m") is not None
    loads.forget(1.1 + FORGET_SECONDS)
    assert set(loads.nodes) == {"n"}


def test_an_agent_that_comes_back_before_its_workers_leaves_flows_where_they_were(loads):
    loads.feed(node_load("n", 9, flow_row("a", 1), started=100.0, sides=(PROXY,)), 1.0)
    loads.feed(node_load("n", 1, started=120.0), 20.0)
    assert stat(loads).idle == 0.0
    loads.feed(node_load("n", 2, started=120.0), 21.0)
    assert stat(loads).idle == 0.0
    loads.feed(node_load("n", 3, started=120.0), 22.0)
    assert stat(loads).idle == 1.0
    loads.feed(node_load("n", 4, flow_row("a", 1), started=120.0, sides=(PROXY,)), 23.0)
    assert stat(loads).idle == 0.0
    loads.feed(node_load("n", 8, started=120.0, sides=(PROXY,)), 27.0)
    assert not places(loads)


def test_a_side_without_workers_loses_what_it_had(loads):
    loads.feed(node_load("n", 1, flow_row("a", 1), flow_row("a", 1, STORAGE_NODE), sides=(PROXY, STORAGE_NODE)), 1.0)
    loads.feed(node_load("n", 2, flow_row("a", 1, STORAGE_NODE), sides=(STORAGE_NODE,)), 2.0)
    assert places(loads) == {(STORAGE_NODE, Flow("a", GET))}


@pytest.mark.parametrize("moved", [math.nan, math.inf, -1.0, 1e30])
def test_invalid_rows_are_refused(loads, moved):
    bad = (
        flow_row("b", moved),
        flow_row("b", 1, "nowhere"),
        flow_row("b", 1, method="HEAD"),
        flow_row("b", 1, open="x"),
        flow_row(None, 1),
    )
    loads.feed(node_load("n", 1, *bad, flow_row("a", 1)), 1.0)
    assert places(loads) == {A}
    assert loads.unsound == len(bad)


def test_invalid_capacities_are_unknown(loads):
    capacity = {PROXY: {GET: 5.0, "PUT": -1.0}, STORAGE_NODE: {GET: math.nan}, "nowhere": {GET: 1.0}}
    loads.feed(node_load("n", 1, capacity=capacity), 1.0)
    assert loads.nodes["n"].capacity == {PROXY: {GET: 5.0}}
    loads.feed(node_load("n", 2, capacity="fast"), 2.0)
    assert loads.nodes["n"].capacity == {}


def test_flows_that_are_over_are_forgotten_and_the_others_keep_what_is_known(loads, monkeypatch):
    monkeypatch.setattr(node_loads, "_MAX_OVER", 10)
    for number in range(1, 12):
        told = [flow_row(f"{number}.{place}", 1) for place in range(4)]
        loads.feed(node_load("n", number, *told, flow_row("a", number)), float(number))
        loads.feed(node_load("m", number, flow_row("a", 1, STORAGE_NODE, device="sdb1")), float(number))
    before, known = stat(loads), LoadTable.from_loads(loads)
    remembered = FlowNodeValues.from_unsorted(known.keys(known.node, known.stats.flow_sides), known.stats.moved)
    moved = loads.forget(11.0)
    assert len(loads.flow_index.flows) == 1 + 3 * 4
    assert stat(loads) == before
    assert stat(loads, (STORAGE_NODE, Flow("a", GET)), "m").moved == MB
    anew = LoadTable.from_loads(loads)
    flow_nodes = anew.keys(anew.node, anew.stats.flow_sides)
    assert remembered.renumber(moved).get(flow_nodes, math.nan).tolist() == anew.stats.moved.tolist()
    assert loads.flow_index.key(int(loads.nodes["m"].rows.numbers[0]))[-1] == "sdb1"
    loads.feed(node_load("n", 12, flow_row("a", 12)), 12.0)
    assert stat(loads).moved == 12 * MB
    assert loads.forget(12.0) is None


def test_stats_in_columns_equal_stats_of_each_flow_alone(loads):
    """For all changes of flows: columns equal the values that are computed flow by flow."""
    random = np.random.default_rng(3)
    alone = {name: NodeLoads() for name in "abcdef"}
    for number in range(1, 30):
        told = {name: flow_row(name, float(random.integers(0, 3))) for name in alone if random.random() < 0.5}
        loads.feed(node_load("n", number, *told.values(), sides=(PROXY,)), float(number))
        for name, single in alone.items():
            rows = [told[name]] if name in told else []
            single.feed(node_load("n", number, *rows, sides=(PROXY,)), float(number))
            assert stat(single, (PROXY, Flow(name, GET))) == stat(loads, (PROXY, Flow(name, GET)))
