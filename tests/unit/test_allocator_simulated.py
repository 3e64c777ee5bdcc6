"""The allocator in simulated clusters: lost reports, and clients in a closed loop."""

import numpy as np
import pytest
from tests.support.actors.bandwidth import MB, bandwidth_policy, flow_row, node_load
from tests.support.simulation.closed_loop import Components, Loop
from tests.support.simulation.decider import allocator_decider
from tests.support.simulation.events import Cluster, Faults, relative_errors
from tests.support.simulation.random_clusters import Sizes, capacity_limits, max_rates, random_problem, random_sizes

from sluice_actors.bandwidth.allocator import Allocator, read_headroom
from sluice_actors.bandwidth.loads.node_loads import LoadTable, NodeLoads
from sluice_agent.bandwidth.node_limiter import NodeLimiter
from sluice_core.describe import STORAGE_NODE
from sluice_middleware.bandwidth.token_account import TokenAccount
from sluice_middleware.proxy.replica_choice import weighted_order

EVEN = Sizes(flows=12, proxies=3, storage=6, parts=6, skew=0.0, capped=0.0, waiting=1.0)
COMPONENTS = Components(NodeLimiter, TokenAccount, weighted_order)
MIB = 2**20
EXPECTED = {"T1": 40.0, "T2": 30.0, "T3": 20.0}


# -- fluid clusters -----------------------------------------------------------------------------------


def cluster(seed, sizes, faults=Faults()):  # noqa: B008
    random = np.random.default_rng(seed)
    problem = random_problem(random, sizes)
    return Cluster(problem, random, allocator_decider(problem), faults)


@pytest.mark.parametrize(
    ("faults", "mean"),
    [
        (Faults(), 0.02),
        (Faults(lost=0.1), 0.03),
        (Faults(lost=0.1, doubled=0.1, late=0.1, churn=0.1), 0.03),
    ],
)
def test_tenants_get_what_is_expected(faults, mean):
    found = [error for seed in range(4) for error in relative_errors(cluster(seed, EVEN, faults), 14)]
    assert np.concatenate(found).mean() < mean


def test_skewed_clusters_get_what_is_expected_nearly():
    found = []
    for seed in range(5):
        one = cluster(seed, random_sizes(np.random.default_rng(seed)))
        if capacity_limits(one.problem).allows(np.minimum(one.problem.floor, max_rates(one.problem))):
            found += relative_errors(one, 12)
    everyone = np.concatenate(found)
    assert everyone.mean() < 0.04
    assert np.median(everyone) < 0.02


# -- closed loops before object servers that throttle ------------------------------------------------


def skewed(random):
    """64 KiB to 64 MiB."""
    return int(65536 * 2 ** (10 * random.random()))


def loop(connections, sizes, servers=(30.0, 30.0, 30.0), seed=1):
    allocator = Allocator()
    floors = {"T1": 30, "T2": 20, "T3": 10}
    allocator.objectives.replace(
        [bandwidth_policy(name, get_bw=rate, place=STORAGE_NODE) for name, rate in floors.items()]
    )
    return Loop(
        allocator,
        COMPONENTS,
        [rate * MB for rate in servers],
        dict.fromkeys(floors, connections),
        sizes,
        np.random.default_rng(seed),
    )


def off(seconds):
    """(seconds, tenants) the relative error of each."""
    rates = np.array([[one[name] / MB for name in EXPECTED] for one in seconds])
    return np.abs(rates / np.array(list(EXPECTED.values())) - 1)


@pytest.mark.parametrize(
    ("connections", "sizes", "servers"),
    [
        (96, lambda random: 2 * MIB, (30.0, 30.0, 30.0)),
        (96, lambda random: 2 * MIB, (15.0,) * 6),
        (96, skewed, (40.0, 30.0, 20.0)),
    ],
)
def test_shares_hold_where_clients_go_to_servers_at_random(connections, sizes, servers):
    one = loop(connections, sizes, servers)
    one.seconds(6)
    seconds = one.seconds(16)
    found = off(seconds)
    assert found.mean() < 0.02
    assert found.max() < 0.1
    assert sum(sum(each.values()) for each in seconds) / len(seconds) > 0.97 * 90 * MB


def test_few_clients_get_their_shares_in_the_mean_and_no_capacity_is_idle():
    one = loop(32, lambda random: 2 * MIB)
    one.seconds(6)
    seconds = one.seconds(24)
    mean = {name: sum(each[name] for each in seconds) / len(seconds) / MB for name in EXPECTED}
    assert off(seconds).mean() < 0.035  # transfers move between servers before one has none of a tenant
    assert mean == pytest.approx(EXPECTED, rel=0.05)
    assert sum(mean.values()) > 0.97 * 90


def test_a_server_with_fewer_waiting_transfers_has_more_headroom():
    known = NodeLoads()
    for second in (1, 2, 3):
        for name, waiting in (("s0", 8.0), ("s1", 24.0), ("s2", 16.0)):
            told = flow_row("T1", 30, STORAGE_NODE, device="sdb1", open=waiting + 1, waiting=waiting)
            known.feed(node_load(name, second, told, server=f"{name}:6200"), float(second))
    found = read_headroom(LoadTable.from_loads(known), np.full(3, 30 * MB))
    assert found == {"s0:6200": 0.55, "s1:6200": 0.45, "s2:6200": 0.5}
    known.feed(node_load("s0", 4, server="s0:6200", gone=True), 4.0)
    assert read_headroom(LoadTable.from_loads(known), np.full(3, 30 * MB))["s0:6200"] == 1.0


def rooms_of(*moved):
    known = NodeLoads()
    for number, rate in enumerate(moved):
        told = flow_row("T1", rate, STORAGE_NODE, device="sdb1", open=1.0)
        known.feed(node_load(f"s{number}", 1, told, server=f"s{number}:6200"), 1.0)
    return list(read_headroom(LoadTable.from_loads(known), np.full(len(moved), 100 * MB)).values())


def test_small_differences_in_headroom_are_ignored():
    assert rooms_of(40, 46, 50, 44) == [0.55] * 4
    assert rooms_of(30, 46, 40, 44) == [0.7, 0.6, 0.6, 0.6]
    assert rooms_of(0, 0) == [1.0, 1.0]
