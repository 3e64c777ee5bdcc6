"""Any process is killed under verified load, or disks fill up: limits stay, no data are lost, others are unaffected."""

import contextlib
import errno
import mmap
import os
import subprocess

import pytest
from tests.support.block.cinder import MIB, login
from tests.support.block.verified_load import VerifiedLoad
from tests.support.block.volumes import VolumeOwner, kill_program, konnector, stored, volume_cluster

from sluice_aio.cinder import backends
from sluice_aio.cinder.konnector import run_folder
from sluice_aio.keystone import seed
from sluice_block.datapath import loop_devices
from sluice_block.stack.page import Page
from sluice_client import ApiError, ClientError

MB = 1_000_000
SIZE = 32 * MIB
#: Seconds within which a killed process serves again.
SOON = 60


@pytest.fixture(scope="module")
def cluster():
    with volume_cluster() as running:
        yield running


@pytest.fixture(scope="module")
def admin(cluster):
    with VolumeOwner(cluster, seed.ADMIN) as found:
        yield found


@pytest.fixture(scope="module")
def alice(cluster, admin):
    with VolumeOwner(cluster, "alice") as found:
        yield found


@pytest.fixture(scope="module")
def volume(alice):
    return alice.create()


@pytest.fixture(scope="module")
def device(alice, volume):
    return alice.attach(volume)


def limit(cluster, volume):
    """Bytes per second that the volume's filters let pass now, whichever processes run."""
    page = Page.open(run_folder(cluster.layout) / volume / "page")
    try:
        return page.limits().both_bytes
    finally:
        page.close()


@pytest.fixture
def hold_to(cluster, admin, volume, eventually):
    """Limit the volume to a rate by a sentence, as soon as its metrics are available."""

    def say(rate):
        def said():
            with contextlib.suppress(ClientError):
                for one in list(admin.client.policies()):
                    admin.client.delete_policy(one["id"])
                return admin.client.create_policy(f"FOR VOLUME {volume} DO SET throttling WITH max_bw={rate}MBps")

        eventually(said, limit=SOON)
        eventually(lambda: limit(cluster, volume) == rate * MB, limit=SOON)

    return say


@pytest.fixture
def once_reported(eventually):
    """Request a volume as soon as the agent has reported the konnector of its node, which was restarted."""

    def call(order, volume):
        done = []

        def accepted():
            with contextlib.suppress(ApiError):
                done.append(order(volume))
            return bool(done)

        eventually(accepted, limit=SOON)
        return done[0]

    return call


@pytest.mark.parametrize("service", ["konnector", "agent", "api", "actors", "cinder", "redis", "rabbit"])
def test_limits_and_data_outlive_a_killed_service_which_is_obeyed_again(cluster, volume, device, hold_to, service):
    hold_to(40)
    with VerifiedLoad(device, size=SIZE) as load:
        load.wait_for(50)
        cluster.kill(service)
        load.wait_for(100)
        assert limit(cluster, volume) == 40 * MB
        cluster.restart(service)
        hold_to(50)
        load.wait_for(50)
    assert konnector(cluster.layout).show(volume)["state"] == "attached"


@pytest.mark.parametrize("alone", [False, True])
def test_a_stack_that_is_killed_is_a_pause_with_and_without_its_konnector(cluster, volume, device, hold_to, alone):
    hold_to(40)
    with VerifiedLoad(device, size=SIZE) as load:
        load.wait_for(50)
        if alone:
            cluster.kill("konnector")
        kill_program(cluster.layout, volume, "stack")
        if alone:
            cluster.restart("konnector")
        load.wait_for(100)
        assert limit(cluster, volume) == 40 * MB


def test_a_keeper_that_is_killed_is_an_error_and_an_event_until_the_next_attach(
    cluster, alice, admin, eventually, once_reported
):
    volume = alice.create()
    with open(once_reported(alice.attach, volume), "r+b", buffering=0) as held:
        held.write(b"kept" * 1024)
        os.fsync(held.fileno())
        kill_program(cluster.layout, volume, "keeper")
        (event,) = eventually(
            lambda: [one for one in admin.client.events() if one["kind"] == "volume_failed"], limit=SOON
        )
        assert (event["subject"], event["node"]) == (volume, cluster.layout.node)
        assert "its front has ended while" in event["text"]
        assert eventually(lambda: refusal_of_a_write(held.name, SIZE), limit=SOON) == errno.EIO
    alice.detach(volume)
    with open(alice.attach(volume), "rb") as again:
        assert again.read(4) in (b"kept", b"xxxx")  # the synchronised bytes, or later ones


def refusal_of_a_write(device, size):
    """The number of the error that a write gets; None when all of it is written."""
    try:
        write_directly(device, size)
    except OSError as error:
        return error.errno
    return None


def write_directly(device, size):
    """Write past the page cache, so that the writer gets the error."""
    buffer = mmap.mmap(-1, MIB)
    buffer[:] = b"x" * len(buffer)
    descriptor = os.open(device, os.O_WRONLY | os.O_DIRECT)
    try:
        for offset in range(0, size, len(buffer)):
            os.pwritev(descriptor, [buffer], offset)
    finally:
        os.close(descriptor)


@pytest.fixture
def small(cluster, admin):
    """A tier whose volumes are in a pool with 16 MiB of space."""
    pool = backends.folder(cluster.layout) / "nbd" / "slow"
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", pool], check=True)
    try:
        made = admin.client.collection("/volumes/tiers").create({"name": "small", "iops": 100})
        login(cluster.layout, seed.ADMIN).volume_types.get(made["type"]).set_keys({"pool_name": "slow"})
        with VolumeOwner(cluster, "alice") as owner:
            yield owner
        admin.client.collection("/volumes/tiers").delete("small")
    finally:
        subprocess.run(["umount", pool], check=True)


def test_a_full_back_end_is_told_to_the_writer_and_to_nobody_else(cluster, small, device):
    full = small.create(tier="small")
    assert stored(cluster.layout, full).parent.name == "slow"
    with VerifiedLoad(device, size=SIZE) as load:
        load.wait_for(50)
        with pytest.raises(OSError, match="No space left"):
            write_directly(small.attach(full), SIZE)
        load.wait_for(50)
    assert konnector(cluster.layout).show(full)["state"] == "attached"
    assert konnector(cluster.layout).counters(full)["errors_enospc"] > 0


def take_device(cluster, alice, other):
    """A volume, and its device, which shows ``other`` now, while no konnector runs; another process that searches a
    free device may be faster to take it.
    """
    for _ in range(5):
        volume = alice.create()
        device = alice.attach(volume)
        cluster.kill("konnector")
        subprocess.run(["losetup", "--detach", device], check=True)
        if subprocess.run(["losetup", device, other], check=False).returncode == 0:
            return volume, device
        cluster.restart("konnector")
    raise AssertionError("others took each device")


def test_a_device_that_another_took_is_left_and_the_volume_gets_a_new_one(
    cluster, alice, tmp_path, eventually, once_reported
):
    other = tmp_path / "other"
    other.write_bytes(bytes(MIB))
    volume, device = take_device(cluster, alice, other)
    try:
        cluster.restart("konnector")
        found = eventually(lambda: konnector(cluster.layout).show(volume)["device"], limit=SOON)
        assert found != device
        with VerifiedLoad(found, size=SIZE) as load:
            load.wait_for(50)

        once_reported(alice.detach, volume)
        assert loop_devices.find(other) == device
    finally:
        subprocess.run(["losetup", "--detach", device], check=True)
