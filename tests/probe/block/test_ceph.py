"""Volumes of Cinder in Ceph, on a machine: stored as filters say, limited, and complete after OSDs are killed.

docs/admin/volumes/ceph.md says what it needs.
"""

import json
import mmap
import os
import secrets
import shutil
import signal
import tempfile
from pathlib import Path

import pytest
from tests.support.block.ceph import CephCluster, install_programs
from tests.support.block.cinder import GIB, HERE, MIB, attach, detach, login, run, wait_for, wait_gone
from tests.support.block.konnector_client import KonnectorClient
from tests.support.block.verified_load import VerifiedLoad

from sluice_aio.base.layout import Layout
from sluice_aio.base.setup import KEYSTONE, Setup
from sluice_aio.cinder.conf import CEPH_POOL
from sluice_aio.cinder.konnector import run_folder
from sluice_aio.cluster.cluster import Cluster
from sluice_aio.keystone import seed
from sluice_block.datapath.processes import read_living
from sluice_volumes.messages import RbdLocality

pytestmark = pytest.mark.alone

CONTENT = secrets.token_bytes(8 * MIB)
#: Bytes per second; reached within 3 %.
LIMIT = 3_000_000
XOR = {"keyword": "xor", "params": {"key": 7}}


@pytest.fixture(scope="module")
def folder():
    if os.geteuid() != 0:
        pytest.skip("loop devices and mounts are root's")
    made = Path(tempfile.mkdtemp(prefix="sluice-"))
    yield made
    assert str(made) not in Path("/proc/self/mounts").read_text()
    assert programs_in(made) == []
    shutil.rmtree(made)


@pytest.fixture(scope="module")
def ceph(folder):
    install_programs()
    with CephCluster(folder / "ceph") as running:
        yield running


@pytest.fixture(scope="module")
def cluster(folder, ceph):
    setup = Setup(auth=KEYSTONE, ceph_conf=str(ceph.conf))
    with Cluster(Layout.free(folder / "c"), {"cinder", "konnector"}, setup=setup) as running:
        yield running


@pytest.fixture(scope="module")
def admin(cluster):
    made = login(cluster.layout, seed.ADMIN)
    made.volume_types.create("in-ceph").set_keys({"capabilities:sluice:fabric": "rbd"})
    return made


@pytest.fixture(scope="module")
def cinder(cluster, admin):
    return login(cluster.layout, "alice")


@pytest.fixture
def volumes(cinder, ceph):
    """Creates volumes in Ceph, and deletes them afterwards."""
    made = []

    def create(**options):
        made.append(cinder.volumes.create(1, volume_type="in-ceph", **options))
        return wait_for(cinder.volumes, made[-1], "available")

    yield create
    for volume in reversed(made):
        for snapshot in cinder.volume_snapshots.list(search_opts={"volume_id": volume.id}):
            snapshot.delete()
            wait_gone(cinder.volume_snapshots, snapshot)
        volume.delete()
        wait_gone(cinder.volumes, volume)
    assert ceph.run("rbd", "ls", CEPH_POOL) == ""


@pytest.fixture
def machine(cluster, cinder, ceph):
    """Attaches volumes to this machine; volumes that a test leaves attached are detached."""
    made = Machine(cluster, cinder, ceph)
    yield made
    for volume, _ in list(made.attached.values()):
        made.detach(volume)
    assert [one.name for one in run_folder(cluster.layout).iterdir()] == ["api.sock"]


class Machine:
    """This machine's konnector, and the Cinder of its volumes."""

    def __init__(self, cluster, cinder, ceph):
        self.folder = run_folder(cluster.layout)
        self.konnector = KonnectorClient(self.folder / "api.sock")
        self.attached = {}
        self._cinder, self._ceph = cinder, ceph

    def attach(self, volume, **wanted):
        """The volume's device; its key comes with the connection, as this machine has no keyring."""
        attachment = attach(self._cinder, volume, HERE)
        self.attached[volume.id] = volume, attachment
        given = {"project": "acme", "connection": self.connection(volume), "attachment": attachment.id}
        return self.konnector.attach(volume.id, given | wanted)["device"]

    def connection(self, volume):
        """Cinder's connection of an attached volume, and the key."""
        _, attachment = self.attached[volume.id]
        return attachment.connection_info | {"keyring": self._ceph.key()}

    def detach(self, volume):
        self.konnector.detach(volume.id)
        assert json.loads(self._ceph.run("rbd", "status", image(volume), "--format", "json"))["watchers"] == []
        detach(self._cinder, *self.attached.pop(volume.id))

    def source(self, volume):
        """The process that is Ceph's client."""
        return read_living(self.folder / volume.id / "source.process")


def image(volume):
    return f"{CEPH_POOL}/volume-{volume.id}"


def programs_in(folder):
    """Command lines of processes that name ``folder``."""
    lines = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            lines.append(path.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        except OSError:  # it has ended
            continue
    return [line for line in lines if str(folder) in line]


def write(device, content):
    """Write from the start of a block device; on its disk when this returns."""
    with open(device, "r+b", buffering=0) as opened:
        assert opened.write(content) == len(content)
        os.fsync(opened.fileno())


def write_unflushed(device, content):
    """Write as above; it was answered when this returns, without a flush."""
    with mmap.mmap(-1, len(content)) as aligned:
        aligned[:] = content
        descriptor = os.open(device, os.O_WRONLY | os.O_DIRECT)
        try:
            assert os.pwritev(descriptor, [aligned], 0) == len(content)
        finally:
            os.close(descriptor)


def read(device, length):
    """The first bytes of a block device, past this machine's page cache."""
    run("blockdev", "--flushbufs", device)
    with open(device, "rb") as opened:
        return opened.read(length)


def rate(*options):
    """Bytes per second that fio reaches, once it is running steadily."""
    shape = ("--bs=64k", "--iodepth=8", "--size=256m", "--time_based", "--ramp_time=2", "--runtime=8")
    with tempfile.TemporaryDirectory() as folder:
        run("fio", "--name=load", *options, *shape, "--output-format=json", f"--output={folder}/report")
        report = Path(folder, "report").read_text()
    (job,) = json.loads(report[report.index("{") :])["jobs"]
    return job["read"]["bw_bytes"] + job["write"]["bw_bytes"]


def test_a_type_that_asks_for_the_fabric_gets_a_volume_in_ceph(volumes, admin, ceph):
    volume = volumes()
    (pool,) = [one.to_dict() for one in admin.pools.list(detailed=True) if one.name.endswith("@rbd#rbd")]
    assert pool["capabilities"]["storage_protocol"] == "ceph"
    assert pool["capabilities"]["sluice:resiliency"] == "2"
    assert pool["capabilities"]["free_capacity_gb"] > 0
    assert ceph.run("rbd", "ls", CEPH_POOL).split() == [f"volume-{volume.id}"]


def test_what_ceph_stores_has_passed_the_filters_exactly(volumes, machine, ceph, folder):
    volume, stored = volumes(), folder / "stored"
    write(machine.attach(volume, stack=[XOR]), CONTENT)
    machine.detach(volume)
    ceph.run("rbd", "export", image(volume), str(stored))
    with stored.open("rb") as file:
        assert file.read(len(CONTENT)) == bytes(byte ^ 7 for byte in CONTENT)
        assert all(one == bytes(MIB) for one in iter(lambda: file.read(MIB), b""))
    stored.unlink()
    run("nbdcopy", machine.attach(volume, stack=[XOR], export="nbd"), str(stored))
    with stored.open("rb") as file:
        assert file.read(len(CONTENT)) == CONTENT
    stored.unlink()


def test_a_limit_holds_for_a_block_device_and_for_an_nbd_socket(volumes, machine):
    volume, limits = volumes(), {"max_bw": LIMIT}
    device = machine.attach(volume, limits=limits)
    assert rate(f"--filename={device}", "--ioengine=libaio", "--direct=1", "--rw=rw") == pytest.approx(LIMIT, rel=0.03)
    machine.detach(volume)
    uri = machine.attach(volume, limits=limits, export="nbd")
    assert rate("--ioengine=nbd", f"--uri={uri}", "--rw=randwrite") == pytest.approx(LIMIT, rel=0.03)


def test_osds_that_are_killed_under_load_lose_nothing(volumes, machine, ceph):
    with VerifiedLoad(machine.attach(volumes())) as load:
        for number in (0, 1):  # the second has the bytes written while the first one served alone
            load.wait_for(100)
            ceph.kill_osd(number)
            ceph.wait_degraded()
            load.wait_for(100)
            ceph.start_osd(number)
            ceph.wait_well()
        ceph.kill_osd(0)
        ceph.kill_osd(1)
        ceph.start_osd(1)
        ceph.start_osd(0)
        load.wait_for(100)
        ceph.wait_well()


def test_what_was_answered_is_stored_although_the_client_of_ceph_is_killed(volumes, machine, eventually):
    volume = volumes()
    device = machine.attach(volume)
    write_unflushed(device, CONTENT)
    before = machine.source(volume)
    os.kill(before.pid, signal.SIGKILL)
    assert before.wait(10)
    eventually(lambda: machine.source(volume), limit=30)
    assert read(device, len(CONTENT)) == CONTENT
    write(device, CONTENT[::-1])  # waits until Ceph takes the image's lock from the one that was killed
    assert read(device, len(CONTENT)) == CONTENT[::-1]


def test_the_key_is_in_no_command_line(volumes, machine, ceph, folder):
    machine.attach(volumes())
    running = programs_in(folder)
    assert any('"driver": "rbd"' in line for line in running)
    assert not any(ceph.key() in line for line in running)


def test_a_volume_grows_and_a_snapshot_stays(volumes, machine, cinder):
    volume = volumes()
    device = machine.attach(volume)
    write(device, CONTENT)
    snapshot = cinder.volume_snapshots.create(volume.id, force=True)
    wait_for(cinder.volume_snapshots, snapshot, "available")
    write(device, bytes(len(CONTENT)))
    cinder.volumes.extend(volume, 2)
    wait_for(cinder.volumes, volume, "in-use")
    machine.detach(volume)
    assert int(run("blockdev", "--getsize64", machine.attach(volume))) == 2 * GIB
    assert read(machine.attach(volumes(snapshot_id=snapshot.id)), len(CONTENT)) == CONTENT


def test_the_osds_of_a_volume_are_found(volumes, machine, ceph):
    volume = volumes()
    machine.attach(volume)
    found = RbdLocality.from_data(machine.konnector.locality(volume.id)["rbd"])
    assert (found.pool, found.objects, found.sampled) == (CEPH_POOL, 256, 64)
    assert {one.id: one.share for one in found.osds} == {0: 1.0, 1: 1.0}
    assert sum(one.primary for one in found.osds) == 1.0
    assert {one.host for one in found.osds} == {ceph.ask("osd", "find", "0")["host"]}
