"""A pool of a real Cinder is measured by fio at a konnector, while policies throttle all volumes.

The measurement is that of docs/admin/volumes/policies.md.
"""

import os
import shutil
import tempfile
from pathlib import Path

import pytest
from tests.support.block.cinder import LIMIT, login
from tests.support.block.konnector_client import KonnectorClient

from sluice_aio.base.layout import Layout
from sluice_aio.base.setup import KEYSTONE, Setup
from sluice_aio.cinder.konnector import run_folder
from sluice_aio.cluster.cluster import Cluster
from sluice_aio.keystone import seed
from sluice_client import ApiError, Client

pytestmark = pytest.mark.probe

SERVICES = {"redis", "rabbit", "agent", "actors", "api", "cinder", "konnector"}
FIGURES = ("read_bw", "write_bw", "read_iops", "write_iops")


@pytest.fixture(scope="module")
def cluster():
    if os.geteuid() != 0:
        pytest.skip("loop devices are root's")
    folder = Path(tempfile.mkdtemp(prefix="sluice-"))
    try:
        with Cluster(Layout.free(folder), SERVICES, setup=Setup(parts=frozenset(), auth=KEYSTONE)) as running:
            yield running
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def admin(cluster):
    with Client.from_session(login(cluster.layout, seed.ADMIN).client.session, cluster.api_url, timeout=LIMIT) as found:
        yield found


@pytest.fixture(scope="module")
def pools(admin, eventually):
    """The pools by the name behind the back end's."""

    def known():
        return {one["name"].partition("#")[2]: one["name"] for one in admin.pools()}

    return eventually(lambda: known() if {"fast", "slow", "nfs"} <= known().keys() else None, limit=30)


@pytest.fixture
def everything(cluster):
    """All objects in Cinder and at the konnector."""
    cinder, konnector = login(cluster.layout, seed.ADMIN), KonnectorClient(run_folder(cluster.layout) / "api.sock")

    def found():
        volumes = [one.id for one in cinder.volumes.list(search_opts={"all_tenants": 1})]
        types = [one.name for one in cinder.volume_types.list(is_public=None)]
        return sorted(volumes), sorted(types), sorted(one["volume"] for one in konnector.list())

    return found


def ended(admin, operation):
    """The operation when it has ended."""
    while operation["state"] == "under_way":
        operation = admin.volume_operation(operation["id"], wait=10)
    return operation


@pytest.fixture(scope="module")
def throttled(admin):
    """A policy throttles all volumes."""
    policy = admin.create_policy("FOR ALL VOLUMES DO SET throttling WITH max_bw=1MBps max_iops=10", wait=10)
    assert policy["enforced"]["nodes"] == 1


# the driver of `nfs` has no pools of its own
@pytest.mark.parametrize("pool", ["slow", "nfs"])
def test_a_pool_is_measured_in_spite_of_policies_and_nothing_stays(cluster, admin, throttled, pools, everything, pool):
    before = everything()
    found = ended(admin, admin.measure_pool(pools[pool], cluster.layout.node, seconds=1))
    assert (found["state"], found["reason"]) == ("done", "")
    session = login(cluster.layout, seed.ADMIN).client.session
    measured = session.get(f"{cluster.api_url}/volumes/pools").json()["measured"]
    (kept,) = (one for one in measured if one["pool"] == pools[pool])
    assert {name: kept[name] for name in FIGURES} == {name: found["data"][name] for name in FIGURES}
    assert min(kept["read_bw"], kept["write_bw"]) > 2e6
    assert min(kept["read_iops"], kept["write_iops"]) > 20
    assert (kept["node"], found["data"]["attached_volumes"]) == (cluster.layout.node, 0)
    assert everything() == before


def test_a_measurement_whose_konnector_dies_is_undone_by_an_actor_host(cluster, admin, pools, everything, eventually):
    before = everything()
    operation = admin.measure_pool(pools["fast"], cluster.layout.node, seconds=300)
    eventually(lambda: admin.volume_operation(operation["id"])["data"].get("phase"), limit=LIMIT)
    cluster.kill("konnector")
    cluster.restart("konnector")
    found = ended(admin, operation)
    assert found["state"] == "failed"
    assert "was started again while it measured" in found["reason"]
    assert everything() == before


def test_members_measure_no_pool(cluster, pools):
    session = login(cluster.layout, "alice").client.session
    with Client.from_session(session, cluster.api_url, timeout=LIMIT) as alice, pytest.raises(ApiError) as caught:
        alice.measure_pool(pools["fast"], cluster.layout.node)
    assert caught.value.status == 403
