"""``/volumes/metrics``: volumes, tenants, the cluster and pools, for Prometheus."""

import math

import pytest
from tests.support.controller.exposition import families, labelled, series

from sluice_volumes.messages import Pool, VolumeRecord, VolumeReport
from sluice_volumes.operations import RECORDS, write_pools, write_volume_report

MB = 1e6
LEVELS = {"volume": {"AUTH_p1/v1": 3 * MB, "AUTH_p2/v2": MB}, "tenant": {"AUTH_p1": 3 * MB}, "cluster": {"": 4 * MB}}
REPORT = VolumeReport(
    1.0,
    {
        "VOLUME_READ_BW": LEVELS,
        "VOLUME_WRITE_BW": {"volume": {"AUTH_p1/v1": 2 * MB}},
        "VOLUME_WRITE_IOPS": {"tenant": {"AUTH_p1": 50.0}},
        "VOLUME_LATENCY": {"volume": {"AUTH_p1/v1": 0.002}},
        "VOLUME_LATENCY_P99": {"volume": {"AUTH_p1/v1": 0.5}, "cluster": {"": 0.5}},
        "VOLUME_QUEUE": {"cluster": {"": 7.0}},
    },
    {"volume": 3},
)


@pytest.fixture
def put(backend):
    return lambda operation, *given: backend.store.run(operation(backend.store.keys, *given))


@pytest.fixture
def read(api):
    """All series: name → labels, as a sorted tuple of their values → value."""

    def get():
        found = families(api, "/volumes/metrics")
        assert {one.type for one in found} == {"gauge"}
        return series(found)

    return get


def test_a_volume_is_labelled_by_its_id_its_project_and_its_pool(put, read):
    put(write_volume_report, REPORT)
    put(RECORDS.create, VolumeRecord("v1", "p1", "AUTH_p1", pool="h@nbd#fast"))
    found = read()
    first, other = {"volume": "v1", "project": "p1", "pool": "h@nbd#fast"}, {"volume": "v2", "project": "p2"}
    assert found["sluice_volume_bytes_per_second"] == {
        labelled(**first, operation="read"): 3 * MB,
        labelled(**first, operation="write"): 2 * MB,
        labelled(**other, pool="", operation="read"): MB,
    }
    assert found["sluice_volume_latency_seconds"] == {
        labelled(**first, quantile="0.5"): 0.002,
        labelled(**first, quantile="0.99"): 0.5,
    }


def test_what_tenants_and_the_cluster_do_are_families_of_their_own(put, read):
    put(write_volume_report, REPORT)
    found = read()
    assert found["sluice_tenant_volumes_bytes_per_second"] == {labelled(project="p1", operation="read"): 3 * MB}
    assert found["sluice_tenant_volumes_requests_per_second"] == {labelled(project="p1", operation="write"): 50.0}
    assert found["sluice_cluster_volumes_bytes_per_second"] == {labelled(operation="read"): 4 * MB}
    assert found["sluice_cluster_volumes_queue"] == {labelled(): 7.0}
    assert found["sluice_volume_rows_left_out"] == {labelled(level="volume"): 3}


def test_pools_tell_what_is_free_and_used_unless_they_do_not_know(put, read, backend):
    known = Pool("h@nbd#fast", 100.0, 25.0, seen=backend.now())
    put(write_pools, [known, Pool("h@rbd#all", -1.0, -1.0, seen=backend.now())])
    found = read()
    assert found["sluice_pool_free_ratio"] == {labelled(pool="h@nbd#fast"): 0.25}
    assert found["sluice_pool_used_bytes"] == {labelled(pool="h@nbd#fast"): 75.0}
    assert found["sluice_pool_report_age_seconds"].keys() == {
        labelled(pool=f"h@{one}") for one in ("nbd#fast", "rbd#all")
    }


def test_while_nobody_measures_there_is_an_infinite_age_and_no_volume(read):
    found = read()
    assert found["sluice_volume_report_age_seconds"] == {labelled(): math.inf}
    assert found["sluice_volume_bytes_per_second"] == {}
