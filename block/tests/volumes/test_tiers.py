"""Demands against pools and tiers."""

from dataclasses import replace

import pytest

from sluice_volumes.messages import Pool, PoolCalibration, Tier
from sluice_volumes.tiers import (
    MB,
    Demands,
    Unmet,
    extra_specs,
    matching_tiers,
    meeting_pools,
    unmet,
    unmet_by_all,
)

GIB = 2.0**30
FAST = Pool("h@nbd#fast", 100 * GIB, 10 * GIB, {"resiliency": "none", "bandwidth": "400", "fabric": "nbd"})
SAFE = Pool("h@rbd#safe", 900 * GIB, 500 * GIB, {"resiliency": "3", "bandwidth": "80", "iops": "900", "fabric": "rbd"})
SILENT = Pool("h@nfs#nfs", -1.0, -1.0, {"fabric": "nfs"})
POOLS = {one.name: one for one in (FAST, SAFE, SILENT)}
GOLD = Tier("gold", "t1", "2", 50 * MB, fabric="rbd", cost=5.0)
BRONZE = Tier("bronze", "t2", cost=1.0)
SPRINT = Tier("sprint", "t3", bandwidth=300 * MB, cost=2.0)
TIERS = (GOLD, BRONZE, SPRINT)


@pytest.mark.parametrize(
    ("demands", "names"),
    [
        (Demands(), ["h@rbd#safe", "h@nbd#fast", "h@nfs#nfs"]),
        (Demands(resiliency="2"), ["h@rbd#safe"]),
        (Demands(resiliency="raid"), ["h@rbd#safe"]),
        (Demands(resiliency="none"), ["h@rbd#safe", "h@nbd#fast"]),
        (Demands(bandwidth=80 * MB), ["h@rbd#safe", "h@nbd#fast"]),
        (Demands(iops=1), ["h@rbd#safe"]),
        (Demands(fabric="nfs"), ["h@nfs#nfs"]),
        (Demands(size=11 * GIB), ["h@rbd#safe", "h@nfs#nfs"]),
        (Demands(bandwidth=100 * MB, fabric="rbd"), []),
    ],
)
def test_pools_that_say_enough_meet_a_demand(demands, names):
    assert [one.name for one in meeting_pools(demands, POOLS, {})] == names


def test_what_was_measured_counts_before_what_a_pool_claims():
    measured = PoolCalibration(FAST.name, 300 * MB, 60 * MB, 5000, 4000, 1.0)
    assert unmet(FAST, Demands(bandwidth=61 * MB, iops=4000)) == ["iops"]
    assert unmet(FAST, Demands(bandwidth=61 * MB, iops=4000), measured) == ["bandwidth"]


def test_the_cheapest_tier_that_promises_enough_and_has_room_comes_first():
    assert [one.name for one in matching_tiers(Demands(), TIERS, POOLS, {})] == ["bronze", "sprint", "gold"]
    assert [one.name for one in matching_tiers(Demands(bandwidth=40 * MB), TIERS, POOLS, {})] == ["sprint", "gold"]
    assert [one.name for one in matching_tiers(Demands("2", 50 * MB, fabric="rbd"), TIERS, POOLS, {})] == ["gold"]
    roomy = Demands(bandwidth=40 * MB, size=11 * GIB)
    assert [one.name for one in matching_tiers(roomy, TIERS, POOLS, {})] == ["gold"]


def test_each_demand_that_no_pool_meets_is_named_with_the_nearest_value():
    assert unmet_by_all(Demands("4", 500 * MB, 1000, "fc", 900 * GIB), POOLS, {}) == [
        Unmet("resiliency", "3"),
        Unmet("bandwidth", "400 MB/s"),
        Unmet("iops", "900"),
        Unmet("fabric", "nbd, nfs, rbd"),
    ]
    limited = {FAST.name: FAST}
    assert unmet_by_all(Demands(size=11 * GIB), limited, {}) == [Unmet("size", "10.0 GiB")]


def test_demands_that_pools_meet_apart_are_not_called_unmet():
    assert unmet_by_all(Demands("3", 400 * MB), POOLS, {}) == []


def test_without_pools_all_that_is_demanded_is_unmet():
    assert unmet_by_all(Demands(iops=5.0), {}, {}) == [Unmet("iops", "")]


def test_extra_specs_tell_the_scheduler_what_pools_must_claim():
    assert extra_specs(GOLD, "c1", POOLS, {}) == {
        "sluice:tier": "gold",
        "sluice:managed": "c1",
        "storage_protocol": "ceph",
        "capabilities:sluice:resiliency": ">= 2",
        "capabilities:sluice:bandwidth": ">= 50",
    }


def test_extra_specs_name_the_pools_where_a_measurement_contradicts_a_claim():
    slow = {FAST.name: PoolCalibration(FAST.name, 60 * MB, 60 * MB, 1, 1, 1.0)}
    fast = {**slow, SAFE.name: PoolCalibration(SAFE.name, 400 * MB, 400 * MB, 1, 1, 1.0)}
    pools = named_pools(nbd="fast", rbd="safe", nfs="")
    assert extra_specs(SPRINT, "c1", pools, fast)["pool_name"] == "<or> safe"
    assert "pool_name" not in extra_specs(SPRINT, "c1", pools, {})


def named_pools(**names):
    """The pools by their names in Cinder: back end → name of its pool, which may have none."""
    said = [{"volume_backend_name": one, **({"pool_name": name} if name else {})} for one, name in names.items()]
    return {one.name: replace(one, specs=specs) for one, specs in zip(POOLS.values(), said, strict=True)}


def test_extra_specs_name_the_back_end_of_a_measured_pool_without_a_name():
    quick = {SILENT.name: PoolCalibration(SILENT.name, 400 * MB, 400 * MB, 1, 1, 1.0)}
    assert extra_specs(SPRINT, "c1", named_pools(nbd="", rbd="safe", nfs=""), quick) == {
        "sluice:tier": "sprint",
        "sluice:managed": "c1",
        "volume_backend_name": "<or> nbd <or> nfs",
    }


def test_a_back_end_that_has_other_pools_is_not_named():
    quick = {SILENT.name: PoolCalibration(SILENT.name, 400 * MB, 400 * MB, 1, 1, 1.0)}
    shared = named_pools(nbd="", rbd="safe", nfs="")
    other = replace(SAFE, name="h@nfs#slow", capabilities={}, specs={"volume_backend_name": "nfs", "pool_name": "slow"})
    specs = extra_specs(SPRINT, "c1", {**shared, other.name: other}, quick)
    assert specs["volume_backend_name"] == "<or> nbd"
