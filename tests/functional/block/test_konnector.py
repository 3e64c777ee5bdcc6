"""A volume of Cinder on a machine: attached, formatted, used while processes are killed, and attached elsewhere.

The calls are those of docs/admin/volumes/konnector.md.
"""

import hashlib
import os
import secrets
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

import pytest
from tests.support.block.cinder import (
    ELSEWHERE,
    MIB,
    attach,
    detach,
    export_process,
    login,
    reachable_uri,
    run,
    wait_for,
)
from tests.support.block.konnector_client import KonnectorClient
from tests.support.block.verified_load import VerifiedLoad

from sluice_aio.base.layout import Layout
from sluice_aio.base.setup import KEYSTONE, Setup
from sluice_aio.cinder.konnector import run_folder
from sluice_aio.cluster.cluster import Cluster
from sluice_core.errors import Conflict

pytestmark = pytest.mark.probe


@pytest.fixture(scope="module")
def cluster():
    if os.geteuid() != 0:
        pytest.skip("loop devices and mounts are root's")
    folder = Path(tempfile.mkdtemp(prefix="sluice-"))
    try:
        with Cluster(Layout.free(folder), {"cinder", "konnector"}, setup=Setup(auth=KEYSTONE)) as running:
            yield running
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def cinder(cluster):
    return login(cluster.layout, "alice")


@pytest.fixture
def konnector(cluster):
    return KonnectorClient(run_folder(cluster.layout) / "api.sock")


@pytest.fixture
def volume(cinder):
    made = cinder.volumes.create(1, name="data 1")
    wait_for(cinder.volumes, made, "available")
    yield made
    cinder.volumes.delete(made)


def wanted(attachment, **more):
    """The parts of an attachment in Cinder that the konnector needs."""
    return {"project": "acme", "connection": attachment.connection_info, "attachment": attachment.id, **more}


def digest(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "md5").hexdigest()


def digest_of_export(attachment):
    """The digest of the stored bytes in the back end."""
    with reachable_uri(attachment.connection_info) as uri, tempfile.TemporaryDirectory() as folder:
        run("nbdcopy", uri, f"{folder}/bytes")
        return digest(f"{folder}/bytes")


def test_a_volume_keeps_its_bytes_whatever_dies_and_wherever_it_is_attached(cluster, cinder, konnector, volume):
    attachment = attach(cinder, volume)
    shown = konnector.attach(volume.id, wanted(attachment, stack=[{"keyword": "xor", "params": {"key": 7}}]))
    place = cluster.layout.data / "mounted"
    place.mkdir()
    subprocess.run(["mkfs.ext4", "-q", shown["device"]], check=True)
    subprocess.run(["mount", shown["device"], place], check=True)
    try:
        (place / "content").write_bytes(content := secrets.token_bytes(32 * MIB))
        os.sync()
        with pytest.raises(Conflict, match="mounted on"):
            konnector.detach(volume.id)
        cluster.kill("konnector")
        cluster.restart("konnector")
        export_process(cluster.layout, volume).signal(signal.SIGKILL)  # Cinder starts it again with its next report
        (place / "after").write_bytes(content)
        os.sync()
        subprocess.run(["sh", "-c", "echo 3 > /proc/sys/vm/drop_caches"], check=True)
        assert (place / "content").read_bytes() == content
    finally:
        subprocess.run(["umount", place], check=True)
    subprocess.run(["e2fsck", "-fn", shown["device"]], check=True, capture_output=True)
    before = digest(shown["device"])
    konnector.detach(volume.id)
    detach(cinder, volume, attachment)

    again = attach(cinder, volume, ELSEWHERE)  # over TCP, with a key
    assert "auth_password" in again.connection_info
    shown = konnector.attach(volume.id, wanted(again, stack=[{"keyword": "xor", "params": {"key": 7}}]))
    assert digest(shown["device"]) == before
    konnector.detach(volume.id)
    assert digest_of_export(again) != before  # the stored bytes have passed the filter
    detach(cinder, volume, again)


def test_down_ends_what_is_attached_and_up_attaches_it_again(cluster, cinder, konnector, volume, eventually):
    attachment = attach(cinder, volume)
    shown = konnector.attach(volume.id, wanted(attachment))
    with VerifiedLoad(shown["device"], size=32 * MIB) as load:
        load.wait_for(100)
    before = digest(shown["device"])
    cluster.stop()
    assert str(cluster.layout.folder) not in Path("/proc/self/mounts").read_text()
    cluster.start()
    eventually(lambda: konnector.show(volume.id)["device"], limit=30)
    assert digest(konnector.show(volume.id)["device"]) == before
    konnector.detach(volume.id)
    detach(cinder, volume, attachment)
