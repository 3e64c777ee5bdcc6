"""Floors and ceilings of containers, on a small cluster whose nodes report containers and their tenants separately."""

import math

import pytest
from tests.support.actors.bandwidth import MB, Cluster, bandwidth_policy, report_of, share, shares_of

from sluice_core.describe import PROXY
from sluice_core.messages.bandwidth import GET, Flow
from sluice_core.messages.policies import ALL, CONTAINER, Target

EVERYWHERE = {"p1": math.inf, "p2": math.inf}
CONTAINERS = Target(CONTAINER, ALL)


def flow_of(path):
    account, _, container = path.partition("/")
    return Flow(account, GET, 0, container)


class Containers(Cluster):
    """``asks`` and ``lies`` also map ``tenant/container``, which is a flow of its own."""

    def _tell(self, name, side, carries, rows):
        flows = [(row, flow_of(row.account)) for row in rows]
        rows = tuple(row._replace(account=flow.account, container=flow.container) for row, flow in flows)
        super()._tell(name, side, carries, rows)

    def _may(self, side, node, account):
        shares = None if self.last is None else shares_of(self.last).get(node)
        found = None if shares is None else share(shares.rows, side, flow_of(account))
        if found is not None:
            return found.rate / MB if found.rate >= 0 else math.inf
        return math.inf if shares is None else shares.newcomer.get(side, {}).get(GET, math.inf) / MB


def cluster_of(*paths):
    """Two proxies with a capacity of 90 together, at which clients of ``paths`` take their shares."""
    storage = dict.fromkeys(("s1", "s2", "s3", "s4"), 60.0)
    return Containers(dict.fromkeys(EVERYWHERE, 45.0), storage, {path: dict(EVERYWHERE) for path in paths})


def near(expected):
    return pytest.approx(expected, rel=0.02)


def told(cluster, path, name):
    """The sum of one of a flow's figures over all proxies, in MB/s."""
    found = [share(shares.rows, PROXY, flow_of(path)) for shares in shares_of(cluster.last).values()]
    return sum(getattr(one, name) for one in found if one is not None) / MB


def test_a_containers_floor_is_its_own_and_its_tenants_is_for_the_others():
    cluster = cluster_of("T1/c", "T1", "T2")
    cluster.set_policies(bandwidth_policy("T1/c", get_bw=40), bandwidth_policy("T1", get_bw=20))
    # Each tenant has the same part of the spare capacity, and each flow of a tenant, too.
    assert cluster.run(5) == near({"T1/c": 47.5, "T1": 27.5, "T2": 15})
    assert [told(cluster, path, "floor") for path in ("T1/c", "T1", "T2")] == near([40, 20, 0])
    shown = {(row["account"], row["container"]): row["floor"] / MB for row in report_of(cluster.last).flows}
    assert shown == near({("T1", "c"): 40, ("T1", ""): 20, ("T2", ""): 0})


def test_a_tenants_floor_is_not_for_a_container_with_one_of_its_own():
    cluster = cluster_of("T1/c", "T2")
    cluster.set_policies(bandwidth_policy("T1/c", get_bw=10), bandwidth_policy("T1", get_bw=60))
    assert cluster.run(5) == near({"T1/c": 50, "T2": 40})
    assert told(cluster, "T1/c", "floor") == near(10)


def test_containers_of_one_name_are_not_mistaken_for_each_other():
    cluster = cluster_of("T1/c", "T2/c", "T1/d")
    cluster.set_policies(
        bandwidth_policy("T1/c", get_bw=30), bandwidth_policy("T2/c", get_bw=10), bandwidth_policy("T1/d", get_bw=20)
    )
    assert cluster.run(5) == near({"T1/c": 37.5, "T2/c": 25, "T1/d": 27.5})


def test_an_unused_container_floor_goes_to_others_within_two_seconds_and_back():
    cluster = cluster_of("T1/c", "T1", "T2")
    cluster.set_policies(bandwidth_policy("T1/c", get_bw=40), bandwidth_policy("T1", get_bw=20))
    cluster.run(5)
    del cluster.asks["T1/c"]
    assert cluster.run(2) == near({"T1": 55, "T2": 35})
    cluster.asks["T1/c"] = dict(EVERYWHERE)
    cluster.run(1)
    assert cluster.run(2) == near({"T1/c": 47.5, "T1": 27.5, "T2": 15})


def test_a_containers_share_is_where_its_transfers_are():
    cluster = cluster_of("T1/c", "T1", "T2")
    cluster.set_policies(bandwidth_policy("T1/c", get_bw=30), bandwidth_policy("T1", get_bw=30))
    cluster.asks["T1/c"], cluster.asks["T1"] = {"p1": math.inf}, {"p2": math.inf}
    cluster.run(3)
    assert cluster.run(1) == near({"T1/c": 37.5, "T1": 37.5, "T2": 15})
    cluster.asks["T1/c"], cluster.asks["T1"] = {"p2": math.inf}, {"p1": math.inf}
    cluster.run(3)
    assert cluster.run(1) == near({"T1/c": 37.5, "T1": 37.5, "T2": 15})


def test_a_floor_for_all_containers_is_for_each_by_itself_and_not_for_the_rest():
    cluster = cluster_of("T1/c", "T1/d", "T2/c", "T3")
    cluster.set_policies(bandwidth_policy("all", get_bw=20, target=CONTAINERS))
    assert cluster.run(5) == near({"T1/c": 25, "T1/d": 25, "T2/c": 30, "T3": 10})


def test_a_tenants_ceiling_bounds_its_containers_floor_and_all_the_rest():
    cluster = cluster_of("T1/c", "T1", "T2")
    cluster.set_policies(bandwidth_policy("T1/c", get_bw=40), bandwidth_policy("T1", max_get_bw=50))
    assert cluster.run(5) == near({"T1/c": 45, "T1": 5, "T2": 40})
    assert told(cluster, "T1/c", "ceiling") + told(cluster, "T1", "ceiling") <= 50.001


def test_floors_of_containers_beyond_what_is_carried_are_said_to_be_short():
    cluster = cluster_of("T1/c", "T2/c", "T3")
    cluster.set_policies(bandwidth_policy("T1/c", get_bw=120), bandwidth_policy("T2/c", get_bw=60))
    moved = cluster.run(5)
    assert moved["T1/c"] / moved["T2/c"] == pytest.approx(2, rel=0.05)
    assert moved["T3"] < 0.05 * 90
    assert report_of(cluster.last).infeasible == {
        "T1/c": pytest.approx(60 * MB, rel=0.1), "T2/c": pytest.approx(30 * MB, rel=0.1)
    }  # fmt: skip


def test_a_containers_floor_that_ends_leaves_its_bytes_to_its_tenants():
    cluster = cluster_of("T1/c", "T1", "T2")
    cluster.set_policies(bandwidth_policy("T1/c", get_bw=40), bandwidth_policy("T1", get_bw=20))
    cluster.run(5)
    cluster.set_policies(bandwidth_policy("T1", get_bw=20))
    # Nodes still report the container, which has no floor except its part of the tenant's.
    moved = cluster.run(3)
    assert moved["T1/c"] + moved["T1"] == near(55)
    assert moved["T1/c"] == near(moved["T1"])
    assert told(cluster, "T1/c", "floor") + told(cluster, "T1", "floor") == near(20)
