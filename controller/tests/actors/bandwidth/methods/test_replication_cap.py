"""The cap on replication: divided without loss among nodes with limited capacities."""

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.support.actors.bandwidth import (
    MB,
    Cluster,
    bandwidth_policy,
    node_load,
    replication_cap,
    report_of,
    share,
    shares_of,
)

from sluice_actors.bandwidth.fairness.water_filling import water_fill
from sluice_actors.bandwidth.loads.flow_stats import COLUMNS, FlowStats
from sluice_actors.bandwidth.methods.replication_cap import capped_rates
from sluice_actors.bandwidth.methods.weights import FlowParts
from sluice_core.describe import STORAGE_NODE
from sluice_core.messages.bandwidth import GET, REPLICATION, Flow, Load

ALL = math.inf
REPLICATOR = Flow("", REPLICATION)
OTHERS = Flow("", REPLICATION, 1)
#: The part of the cap that is divided evenly, also among nodes without demand.
EVEN = 0.05
#: The rounding error of a sum.
TOLERANCE = 1e-9

CAPS = st.floats(1, 1e12)
CARRIES = st.one_of(st.just(ALL), st.floats(1, 1e12))
WANTS = st.one_of(st.just(0.0), st.just(ALL), st.floats(0, 1e12))


@st.composite
def clusters(draw, carries=CARRIES):
    """(cap, parts, capacities of nodes, demands of parts); nodes that store nothing have no part."""
    nodes, flows = draw(st.integers(1, 7)), draw(st.integers(1, 4))
    serving = sorted(draw(st.sets(st.integers(0, nodes - 1), min_size=1)))
    known = draw(st.lists(carries, min_size=nodes, max_size=nodes))
    count = flows * len(serving)
    wants = draw(st.lists(WANTS, min_size=count, max_size=count))
    return draw(CAPS), parts(flows, serving), np.array(known), np.array(wants)


def parts(flows, serving):
    count = flows * len(serving)
    flow, node = np.repeat(np.arange(flows), len(serving)), np.tile(serving, flows)
    stats = FlowStats(np.arange(count), np.zeros((COLUMNS, count)))
    return FlowParts(flows, flow, node, np.arange(count), stats, np.ones(count))


def on_nodes(made, rates, carries):
    return np.bincount(made.node, rates, minlength=len(carries))


def is_full(made, rates, carries):
    """(parts,) those whose node is used up."""
    return (on_nodes(made, rates, carries) >= carries * (1 - TOLERANCE))[made.node]


@given(clusters())
def test_no_more_than_the_cap_is_divided(cluster):
    total, made, carries, wants = cluster
    assert capped_rates(total, made, carries, wants).sum() <= total * (1 + TOLERANCE)


@given(clusters())
def test_no_node_gets_more_than_it_carries(cluster):
    total, made, carries, wants = cluster
    assert np.all(on_nodes(made, capped_rates(total, made, carries, wants), carries) <= carries * (1 + TOLERANCE))


@given(clusters())
def test_demand_is_met_up_to_the_cap_or_a_full_node(cluster):
    total, made, carries, wants = cluster
    rates = capped_rates(total, made, carries, wants)
    more = rates < wants
    used_up = rates.sum() >= total * (1 - TOLERANCE)
    assert used_up or np.all(is_full(made, rates, carries)[more])


@given(clusters())
def test_all_of_the_cap_is_divided_or_all_that_nodes_carry(cluster):
    total, made, carries, wants = cluster
    carried = carries[np.unique(made.node)].sum()
    assert capped_rates(total, made, carries, wants).sum() == pytest.approx(min(total, carried), rel=TOLERANCE)


@given(clusters())
def test_every_serving_node_gets_something(cluster):
    total, made, carries, wants = cluster
    rates = capped_rates(total, made, carries, wants)
    crowd = np.bincount(made.node, minlength=len(carries))
    least = np.minimum(total / len(rates), (carries / np.maximum(crowd, 1))[made.node])
    assert np.all(rates >= EVEN * least * (1 - TOLERANCE))


@given(clusters())
def test_nodes_with_unmet_demand_get_equal_rates(cluster):
    """Equal to the others on its node if that is used up, otherwise to all others; except for the even part."""
    total, made, carries, wants = cluster
    rates = capped_rates(total, made, carries, wants)
    slight = TOLERANCE * total
    full = is_full(made, rates, carries)
    for part in np.flatnonzero(rates < wants - slight).tolist():
        others = rates[made.node == made.node[part]] if full[part] else rates
        assert rates[part] >= others.max() - EVEN * total / len(rates) - slight


@given(clusters(carries=st.just(ALL)))
@example((8 * MB, parts(1, [0, 1]), np.array([ALL, ALL]), np.array([ALL, 0.0])))
def test_where_nothing_is_known_of_nodes_the_cap_alone_is_divided(cluster):
    total, made, carries, wants = cluster
    even = EVEN * total / len(wants)
    wanted = water_fill(total * (1 - EVEN), [1.0] * len(wants), wants.tolist())
    rest = (total * (1 - EVEN) - sum(wanted)) / len(wants)
    expected = [one + even + rest for one in wanted]
    assert capped_rates(total, made, carries, wants).tolist() == pytest.approx(
        expected, rel=TOLERANCE, abs=TOLERANCE * total
    )


CASES = {
    "what one node cannot carry goes to the other": ([2, ALL], [ALL, ALL], [2, 8]),
    "and to who wants nothing yet, when nobody else can": ([2, ALL, ALL], [ALL, 0, 0], [2, 4, 4]),
    "where they carry less than the cap each gets that": ([2, 3, 4], [ALL, 0, 1], [2, 3, 4]),
    "a node that wants little leaves it": ([5, 9, ALL], [ALL, 0, ALL], [4.75 + 1 / 12, 1 / 3, 4.75 + 1 / 12]),
}


@pytest.mark.parametrize(("carries", "wants", "expected"), CASES.values(), ids=CASES)
def test_one_flow_of_which_each_node_has_a_part(carries, wants, expected):
    rates = capped_rates(10 * MB, parts(1, range(len(carries))), np.array(carries) * MB, np.array(wants) * MB)
    assert (rates / MB).tolist() == pytest.approx(expected, abs=0.2)


def test_flows_of_one_node_share_what_it_carries_by_what_they_want():
    """Two flows on two nodes; on the first node one of them demands little."""
    rates = capped_rates(10 * MB, parts(2, [0, 1]), np.array([4.0, ALL]) * MB, np.array([1.0, ALL, ALL, ALL]) * MB)
    assert (rates / MB).tolist() == pytest.approx([1.0, 3.0, 3.0, 3.0], abs=0.2)


def test_many_flows_of_a_node_have_together_what_it_carries():
    rates = capped_rates(1000 * MB, parts(50, [0]), np.array([1.0]) * MB, np.zeros(50))
    assert (rates / MB).tolist() == pytest.approx([0.02] * 50)


# -- the same through rounds of the allocating host


class Copying:
    """Storage nodes that replicate at their allowed rates, flow by flow; ``asks`` maps (node, flow) to MB/s."""

    def __init__(self, asks, flows=(REPLICATOR,), **carries):
        self.cluster = Cluster({}, {})
        self.allocator = self.cluster.allocator
        self.nodes = sorted({node for node, _ in asks})
        self.asks, self.flows, self.carries = asks, flows, carries
        self.number = 0
        self.made = self.allocator.allocate(0.0)

    def run(self, seconds):
        """(node, flow) → its share after ``seconds`` rounds."""
        for _ in range(seconds):
            self.number += 1
            for node in self.nodes:
                self.allocator.feed(self._load(node), self.number)
            self.made = self.allocator.allocate(self.number + 0.2)
        return {(node, flow): self.share(node, flow) for node in self.nodes for flow in self.flows}

    def share(self, node, flow):
        told = shares_of(self.made).get(node)
        return None if told is None else share(told.rows, STORAGE_NODE, flow)

    def _load(self, node):
        rows = []
        for flow in self.flows:
            told, asked = self.share(node, flow), self.asks[node, flow]
            moved = min(asked, 5.0 if told is None else told.rate / MB)
            waits = float(asked > moved)
            rows += [Load(STORAGE_NODE, *REPLICATOR[:1], "", *flow[1:3], "sdb1", moved * MB, 1.0, waits)] * bool(asked)
        capacity = {STORAGE_NODE: {REPLICATION: self.carries[node] * MB}} if node in self.carries else {}
        return node_load(node, self.number, *rows, sides=(STORAGE_NODE,), capacity=capacity)


def rates(told):
    return {key: one.rate / MB for key, one in told.items()}


def test_a_round_gives_no_node_more_than_its_agent_says():
    copying = Copying({(node, REPLICATOR): ALL for node in ("s1", "s2", "s3")}, s1=1.0, s2=50.0)
    copying.cluster.set_policies(replication_cap(9))
    told = copying.run(4)
    assert rates(told) == pytest.approx({("s1", REPLICATOR): 1, ("s2", REPLICATOR): 4, ("s3", REPLICATOR): 4})
    assert all(one.ceiling == one.rate for one in told.values())
    shown = {one["node"]: one for one in report_of(copying.made).nodes if one["method"] == REPLICATION}
    assert {node: one["source"] for node, one in shown.items()} == {
        "s1": "configured", "s2": "configured", "s3": "unknown"
    }  # fmt: skip
    assert shown["s1"]["assigned"] == pytest.approx(1 * MB)


def test_the_cap_goes_to_nodes_that_begin_and_can_carry_it():
    copying = Copying(
        {("s1", REPLICATOR): ALL, ("s2", REPLICATOR): 0.0, ("s3", REPLICATOR): 0.0},
        s1=1.0,
        s2=2.0,
    )
    copying.cluster.set_policies(replication_cap(9))
    assert rates(copying.run(3))["s3", REPLICATOR] == pytest.approx(6)
    copying.asks["s2", REPLICATOR] = ALL
    assert rates(copying.run(3))["s2", REPLICATOR] == pytest.approx(2)


def test_several_flows_of_a_node_have_together_what_it_carries():
    asks = {
        ("s1", REPLICATOR): ALL,
        ("s1", OTHERS): 1.0,
        ("s2", REPLICATOR): ALL,
        ("s2", OTHERS): ALL,
    }
    copying = Copying(asks, (REPLICATOR, OTHERS), s1=4.0)
    copying.cluster.set_policies(replication_cap(10))
    found = rates(copying.run(6))
    assert found["s1", REPLICATOR] + found["s1", OTHERS] == pytest.approx(4)
    assert 1.0 <= found["s1", OTHERS] < 1.6
    assert sum(found.values()) == pytest.approx(10)


def test_where_nodes_carry_less_than_the_cap_each_gets_that():
    copying = Copying({("s1", REPLICATOR): ALL, ("s2", REPLICATOR): 0.0}, s1=2.0, s2=3.0)
    copying.cluster.set_policies(replication_cap(100))
    assert rates(copying.run(3)) == pytest.approx({("s1", REPLICATOR): 2, ("s2", REPLICATOR): 3})
    (flow,) = (one for one in report_of(copying.made).flows if one["method"] == REPLICATION)
    assert flow["share"] == pytest.approx(5 * MB)


def test_a_new_capacity_counts_from_the_next_round():
    copying = Copying({("s1", REPLICATOR): ALL, ("s2", REPLICATOR): ALL}, s1=1.0)
    copying.cluster.set_policies(replication_cap(10))
    assert rates(copying.run(3))["s1", REPLICATOR] == pytest.approx(1)
    copying.carries["s1"] = 3.0
    assert rates(copying.run(1))["s1", REPLICATOR] == pytest.approx(3)
    del copying.carries["s1"]
    assert rates(copying.run(1)) == pytest.approx({("s1", REPLICATOR): 5, ("s2", REPLICATOR): 5})


def test_what_a_node_carries_holds_nothing_back_without_a_cap():
    copying = Copying({("s1", REPLICATOR): 5.0}, s1=1.0)
    assert copying.run(3) == {("s1", REPLICATOR): None}
    assert not copying.made.governed


def test_what_a_node_moves_is_not_taken_for_what_it_carries():
    """Estimates are for floors; a violated floor on the node does not limit what replication can move."""
    cluster = Cluster(
        {"p1": 1000.0}, dict.fromkeys(("s1", "s2"), 25.0), {"T1": {"p1": 40.0}, "T2": {"p1": ALL}}, known=False
    )
    cluster.set_policies(bandwidth_policy("T1", get_bw=60), replication_cap(8))
    cluster.run(20)
    sources = {(one["method"], one["source"]) for one in report_of(cluster.last).nodes if one["side"] == STORAGE_NODE}
    assert {source for method, source in sources if method == GET} == {"estimated"}
    assert {source for method, source in sources if method == REPLICATION} == {"unknown"}
    told = [share(shares_of(cluster.last)[node].rows, STORAGE_NODE, REPLICATOR) for node in ("s1", "s2")]
    assert sum(one.rate for one in told) == pytest.approx(8 * MB)
