"""Results in columns equal the results of computing one flow after the other."""

import math

import msgpack
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.actors.bandwidth import MB, Cluster, FlowStat, bandwidth_policy

from sluice_actors.bandwidth.fairness.water_filling import water_fill, water_fill_groups
from sluice_actors.bandwidth.loads import node_loads
from sluice_actors.bandwidth.loads.flow_index import FlowIndex, FlowNodeValues
from sluice_actors.bandwidth.loads.flow_stats import COLUMNS, FlowStats
from sluice_actors.bandwidth.methods.weights import CHUNK, GROWTH_ROOM, FlowParts, set_throttled_weights
from sluice_actors.bandwidth.share_encoder import ShareColumns, SharePrefixes, concatenate, encode_shares, pack_shares
from sluice_core.describe import PROXY, STORAGE_NODE
from sluice_core.messages.bandwidth import GET, PUT, Flow, Share, Shares

RATES = st.floats(0, 1e9)
FLOWS = st.builds(
    Flow,
    st.text(st.characters(exclude_categories=["Cs"]), max_size=40),
    st.sampled_from([GET, PUT]),
    st.integers(0, 2**40),
    st.text(max_size=3, alphabet="cé"),
)
SHARES = st.tuples(st.integers(0, 3), st.sampled_from([PROXY, STORAGE_NODE]), FLOWS, RATES, RATES, RATES)


def told(names, rows):
    node, place, *rates, priority = (
        np.array(column)
        for column in zip(
            *((node, names.flow_side(side, flow), *rates, 1 + node) for node, side, flow, *rates in rows), strict=True
        )
    )
    return ShareColumns(node, place, *rates, priority)


@given(st.lists(SHARES, min_size=1, max_size=30), st.dictionaries(st.text(max_size=3, alphabet="s1:"), RATES))
def test_packed_shares_equal_shares_encoded_one_by_one(rows, spares):
    names = FlowIndex()
    both = concatenate([told(names, rows), told(names, rows[:1])])
    found = pack_shares(both, SharePrefixes(names), 5)
    assert len(found) == 5
    for number, (count, raw) in enumerate(found):
        mine = tuple(
            Share(side, flow.account, flow.container, flow.method, flow.policy, *rates, 1 + node)
            for node, side, flow, *rates in (*rows, rows[0])
            if node == number
        )
        shares = Shares(f"n{number}", 7, 9, 1.5, mine, {PROXY: {GET: 5.0}}, spares)
        body = encode_shares(
            Shares(f"n{number}", 7, 9, 1.5, newcomer=shares.newcomer), count, raw, msgpack.packb(spares)
        )
        assert msgpack.unpackb(body) == msgpack.unpackb(shares.encode())
        assert Shares.decode(body) == shares


def parts(*sizes, values=None):
    """Flows with this many parts each."""
    flow = np.repeat(np.arange(len(sizes)), sizes)
    count = len(flow)
    numbers = np.arange(count)
    stats = FlowStats(numbers, np.zeros((COLUMNS, count)) if values is None else values)
    return FlowParts(len(sizes), flow, numbers, numbers, stats, np.ones(count))


LIMITS = st.one_of(st.floats(0, 2), st.just(math.inf))


@given(st.lists(st.lists(st.tuples(st.floats(0.01, 10), LIMITS), min_size=1, max_size=6), min_size=1, max_size=6))
def test_water_filling_of_all_groups_at_once_equals_one_group_at_a_time(flows):
    every = [pair for one in flows for pair in one]
    weights, limits = (np.array(column) for column in zip(*every, strict=True))
    which = np.arange(len(flows)) % 2 == 0
    groups = np.repeat(np.arange(len(flows)), list(map(len, flows)))
    found = water_fill_groups(groups, weights, limits, which).tolist()
    for flow, one in enumerate(flows):
        mine, found = found[: len(one)], found[len(one) :]
        alone = water_fill(1.0, [weight for weight, _ in one], [limit for _, limit in one])
        assert mine == pytest.approx(alone if which[flow] else [0.0] * len(one), abs=1e-9)


def stats(*rows):
    return np.array([FlowStat(**row) for row in rows]).T


def test_a_part_below_its_rate_leaves_the_rest_to_other_parts_of_its_flow():
    two = {"moved": 9 * MB, "mean_moved": 9 * MB, "open": 4.0, "mean_open": 4.0}
    one = parts(2, values=stats({**two, "waiting": 2.0, "mean_waiting": 2.0}, two))
    before = FlowNodeValues.from_unsorted(one.keys, np.array([0.4, 0.6]))
    set_throttled_weights(one, False, np.array([9 * MB, 90 * MB]), before)
    takes = 0.6 * (9 * MB * GROWTH_ROOM + CHUNK) / (90 * MB)
    assert one.portions().tolist() == pytest.approx([1 - takes, takes])


def test_a_part_with_a_rate_of_zero_is_not_limited_to_that():
    two = {"moved": 1 * MB, "mean_moved": 1 * MB, "open": 4.0, "mean_open": 4.0}
    one = parts(2, values=stats(two, two))
    set_throttled_weights(
        one, False, np.array([0.0, 9 * MB]), FlowNodeValues.from_unsorted(one.keys, np.array([0.4, 0.6]))
    )
    assert np.all(one.weight > 0)
    assert one.portions()[0] > 0.5


def test_values_of_flow_nodes_are_found_in_any_order():
    some = FlowNodeValues.from_unsorted(np.array([7, 3, 5]), np.array([0.7, 0.3, 0.5]))
    assert some.get(np.array([5, 9, 3, 1]), -1.0).tolist() == [0.5, -1.0, 0.3, -1.0]
    assert FlowNodeValues().get(np.array([1, 2]), 4.0).tolist() == [4.0, 4.0]


def test_a_round_is_the_same_when_flows_get_other_numbers(monkeypatch):
    """When tenants come and go, numbers are assigned anew; flows that stay must not be affected."""

    def moved():
        cluster = Cluster({"p1": 45.0, "p2": 45.0}, {"s1": 60.0, "s2": 60.0})
        names = ("T1", "T2", "T3")
        cluster.set_policies(
            bandwidth_policy("T1", get_bw=30),
            bandwidth_policy("T2", get_bw=20, max_get_bw=25),
            bandwidth_policy("T3", get_bw=10),
        )
        found = []
        for second in range(20):
            cluster.asks = {name: {"p1": math.inf, "p2": 3.0} for name in names}
            cluster.asks.update({f"G{second}.{number}": {"p1": 0.01} for number in range(5)})
            found.append(cluster.run(1))
        return found, len(cluster.allocator.loads.flow_index.flows)

    kept, many = moved()
    monkeypatch.setattr(node_loads, "_MAX_OVER", 10)
    again, few = moved()
    assert again == [pytest.approx(one) for one in kept]
    assert many > 100 > few
