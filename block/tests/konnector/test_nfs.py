"""Volumes that are files on a share: raw ones, and overlays that Cinder leaves after a snapshot."""

import hashlib
import os
import subprocess
from dataclasses import replace

import pytest
from tests.support.block.verified_load import VerifiedLoad

from sluice_core.errors import CallerError, PeerError

pytestmark = pytest.mark.service
EXPORT = "127.0.0.1:/export"
SIZE = 64 << 20


@pytest.fixture
def share(machine):
    """A share that Cinder has mounted on this machine already."""
    base, served = machine.folder / "mnt", machine.folder / "export"
    place = base / hashlib.md5(EXPORT.encode()).hexdigest()
    for folder in (place, served):
        folder.mkdir(parents=True)
    subprocess.run(["mount", "--bind", served, place], check=True)
    yield served
    for volume in machine.konnector.volumes():
        volume.detach()
    subprocess.run(["umount", place], check=True)


def nfs(machine, **fields):
    data = {"export": EXPORT, "name": "volume-7", "options": None, "format": "raw", **fields}
    return {"driver_volume_type": "nfs", "data": data, "mount_point_base": str(machine.folder / "mnt")}


def write(device, data):
    with open(device, "r+b", buffering=0) as file:
        file.write(data)
        os.fsync(file.fileno())


@pytest.mark.parametrize("kind", ["raw", "qcow2"])
def test_what_is_written_is_in_the_file_and_an_overlay_leaves_its_base_alone(machine, share, kind):
    (share / "volume-7").write_bytes(b"base" * 1024)
    os.truncate(share / "volume-7", SIZE)
    name = "volume-7"
    if kind == "qcow2":
        name = "volume-7.snapshot"
        base = ["-b", "volume-7", "-F", "raw"]
        subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", *base, share / name], check=True)
    volume = machine.attach(connection=nfs(machine, name=name, format=kind))
    assert volume.attachment.size == SIZE
    with open(volume.device(), "rb", buffering=0) as file:
        assert file.read(4096) == b"base" * 1024
    with VerifiedLoad(volume.device(), size=32 << 20) as load:
        load.wait_for(50)
    write(volume.device(), b"over" * 1024)
    machine.konnector.detach(volume.attachment.volume)
    assert ((share / "volume-7").read_bytes()[:4096] == b"base" * 1024) is (kind == "qcow2")
    again = machine.attach(connection=nfs(machine, name=name, format=kind))
    with open(again.device(), "rb", buffering=0) as file:
        assert file.read(4096) == b"over" * 1024


@pytest.mark.parametrize(
    ("changes", "error", "reason"),
    [
        ({"name": "../../etc/passwd"}, CallerError, "expected the name of a file"),
        ({"name": "missing"}, PeerError, "No such file"),
        ({"format": "vmdk"}, CallerError, "expected raw or qcow2"),
        ({"export": "127.0.0.1:/elsewhere"}, PeerError, "`127.0.0.1:/elsewhere` is not mounted"),
    ],
)
def test_of_a_file_that_cannot_be_used_nothing_stays(machine, share, changes, error, reason):
    (share / "volume-7").write_bytes(bytes(4096))
    connection = nfs(machine, **changes)
    with pytest.raises(error, match=reason):
        machine.konnector.attach(replace(machine.wanted(), connection=connection))
    assert [one for one in machine.leftovers() if "/mnt/" not in str(one)] == []
