"""Two volumes share a pool: each has its floor, and the unused rate of one goes to the other."""

import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import pytest
from tests.support.block.cinder import LIMIT, login
from tests.support.block.konnector_client import KonnectorClient

from sluice_aio.base.layout import Layout
from sluice_aio.base.setup import KEYSTONE, Setup
from sluice_aio.cinder.konnector import run_folder
from sluice_aio.cluster.cluster import Cluster
from sluice_aio.keystone import seed
from sluice_client import Client

pytestmark = pytest.mark.probe

MB = 1_000_000
SERVICES = {"redis", "rabbit", "agent", "actors", "api", "cinder", "konnector"}
#: Seconds in which shares settle, and over which they are measured.
SETTLE, MEASURED = 30.0, 6.0


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


@pytest.fixture
def volumes(cluster, admin, eventually):
    """Two attached volumes in one pool: name → device and id."""
    (pool,) = eventually(lambda: [one["name"] for one in admin.pools() if one["name"].endswith("#fast")], limit=30)
    admin.calibrate_pool(pool, read_bw="4.5MBps", write_bw="4.5MBps", read_iops=1000, write_iops=1000)
    made = {}
    for name in ("a", "b"):
        volume = admin.create_volume(1, wait=30, name=name)["volume"]
        operation = admin.attach_volume(volume, cluster.layout.node, wait=30)
        assert operation["state"] == "done", operation
        made[name] = (operation["data"]["device"], volume)
    yield made
    for _, volume in made.values():
        assert admin.detach_volume(volume, wait=30)["state"] == "done"
        assert admin.delete_volume(volume, wait=30)["state"] == "done"


def writing(device):
    """fio, which writes as fast as it can."""
    job = ["--name=w", f"--filename={device}", "--rw=write", "--bs=64k", "--iodepth=8", "--size=512M", "--loops=1000"]
    return subprocess.Popen(["fio", *job, "--ioengine=libaio", "--direct=1", "--thread"], stdout=subprocess.DEVNULL)


@pytest.fixture
def loads(volumes):
    running = {name: writing(device) for name, (device, _) in volumes.items()}
    yield running
    for one in running.values():
        one.kill()
        one.wait()


def test_floors_hold_and_what_is_left_is_used(cluster, admin, volumes, loads, eventually):
    konnector = KonnectorClient(run_folder(cluster.layout) / "api.sock")

    def rates():
        """MB written a second by each volume, over some seconds."""
        before = {name: konnector.counters(one)["written_bytes"] for name, (_, one) in volumes.items()}
        begin = time.monotonic()
        time.sleep(MEASURED)
        seconds = time.monotonic() - begin
        after = {name: konnector.counters(one)["written_bytes"] for name, (_, one) in volumes.items()}
        return {name: (after[name] - before[name]) / seconds / MB for name in before}

    def come_to(**expected):
        until = time.monotonic() + SETTLE
        while (found := rates()) != pytest.approx(expected, rel=0.1, abs=0.1) and time.monotonic() < until:
            pass
        assert found == pytest.approx(expected, rel=0.1, abs=0.1)

    for name, floor in (("a", 2.5), ("b", 1)):
        made = admin.create_policy(f"FOR VOLUME {volumes[name][1]} DO SET bandwidth WITH put_bw={floor}MBps", wait=10)
        assert made["enforced"]["nodes"] == made["enforced"]["total"] == 1, made
    come_to(a=3, b=1.5)
    loads["a"].kill()
    loads["a"].wait()
    come_to(a=0, b=4.5)
    for policy in list(admin.policies()):
        admin.delete_policy(policy["id"])
    eventually(lambda: konnector.show(volumes["b"][1])["limits_in_force"]["write_bw"] == 0, limit=10)
