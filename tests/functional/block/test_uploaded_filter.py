"""Filters of volumes from end to end: set by a sentence and applied; an uploaded one also tried, and given up.

The upload is that of docs/admin/volumes/own-filters.md.
"""

import json
import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

import pytest
from tests.support.block.cinder import LIMIT, login
from tests.support.block.konnector_client import KonnectorClient

from sluice_aio.base.layout import Layout
from sluice_aio.base.setup import KEYSTONE, Setup
from sluice_aio.cinder import backends
from sluice_aio.cinder.konnector import run_folder
from sluice_aio.cluster.cluster import Cluster
from sluice_aio.cluster.components import DEFAULT, PROFILES
from sluice_aio.keystone import seed
from sluice_client import ApiError, Client

pytestmark = pytest.mark.probe

SOURCE = Path(__file__).parents[3] / "block" / "tests" / "uploaded" / "filters" / "rot.c"
ROT = {
    "keyword": "rot",
    "environment": "nbdkit",
    "reverse": True,
    "parameters": [{"name": "rot-by", "type": "int", "default": 13, "minimum": 1, "maximum": 255}],
}
GIB = 1 << 30
TEXT = b"the quick brown fox jumps over the lazy dog ".ljust(4096, b".")


@pytest.fixture(scope="module")
def cluster():
    if os.geteuid() != 0:
        pytest.skip("loop devices and mounts are root's")
    folder = Path(tempfile.mkdtemp(prefix="sluice-"))
    setup = Setup(auth=KEYSTONE, api_options={"workers": "1"})
    try:
        with Cluster(Layout.free(folder), DEFAULT | PROFILES["block"], setup=setup) as running:
            yield running
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def client(cluster):
    """The API for a user."""
    made = []

    def ask(user):
        session = login(cluster.layout, user).client.session
        made.append(Client.from_session(session, cluster.api_url, timeout=LIMIT))
        return made[-1]

    yield ask
    for one in made:
        one.close()


def ended(client, operation):
    """The operation when it is done."""
    while operation["state"] == "under_way":
        operation = client.volume_operation(operation["id"], wait=10)
    assert operation["state"] == "done", operation
    return operation


def kill_sandbox(folder, before=0):
    """Kill the process of the filter, once it differs from ``before``; return its pid, None when it does not."""
    pid = json.loads((folder / "filter.process").read_text())["process"]["pid"]
    if pid == before or not Path(f"/proc/{pid}").exists():
        return None
    os.kill(pid, signal.SIGKILL)
    return pid


def test_an_uploaded_filter_is_tried_chosen_obeyed_and_given_up(cluster, client, eventually, tmp_path):
    admin, alice = client(seed.ADMIN), client("alice")
    eventually(lambda: list(admin.pools()), limit=30)
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", tmp_path / "rot.so", SOURCE], check=True)
    admin.register_filter(ROT)
    rollout = admin.upload_filter("rot", (tmp_path / "rot.so").read_bytes(), wait=30)["rollout"]
    assert (rollout["nodes"], rollout["total"], rollout["refused"]) == (1, 1, [])
    policy = admin.create_policy("FOR TENANT acme DO SET rot WITH rot-by=7", wait=30)["id"]
    volume = ended(alice, alice.create_volume(1, name="data1"))["volume"]
    device = ended(alice, alice.attach_volume(volume, cluster.layout.node, export="block"))["data"]["device"]
    with open(device, "r+b", buffering=0) as file:
        file.write(TEXT)
        os.fsync(file.fileno())
        (image,) = (backends.folder(cluster.layout) / "nbd").rglob(f"*{volume}*")
        with image.open("rb") as stored:
            assert stored.read(len(TEXT)) == bytes(byte + 7 & 0xFF for byte in TEXT)
        folder = run_folder(cluster.layout) / volume
        first = kill_sandbox(folder)
        eventually(lambda: kill_sandbox(folder, first), limit=30)
        konnector = KonnectorClient(run_folder(cluster.layout) / "api.sock")
        eventually(lambda: konnector.show(volume)["state"] == "broken", limit=30)
    (event,) = eventually(lambda: [one for one in admin.events() if one["kind"] == "volume_failed"], limit=30)
    assert (event["subject"], event["node"]) == (volume, cluster.layout.node)
    assert "revision 1 of filter `rot` failed: it was ended by SIGKILL" in event["text"]
    eventually(lambda: "rot" in str(admin.policy(policy)["enforced"]["refused"]), limit=30)
    (refused,) = eventually(lambda: admin.filter("rot")["rollout"]["refused"], limit=30)
    assert (refused["node"], refused["revision"]) == (cluster.layout.node, 0)
    assert "it was ended by SIGKILL" in refused["reason"]
    ended(alice, alice.detach_volume(volume))
    admin.delete_policy(policy)
    with pytest.raises(ApiError, match=f"volumes `{volume}` are stored through filter `rot`"):
        admin.unregister_filter("rot", force=True)
    ended(alice, alice.delete_volume(volume))
    admin.unregister_filter("rot")


def test_an_encrypted_volume_has_the_size_that_was_asked_for_and_a_gib_more_in_cinder(cluster, client, eventually):
    admin, alice = client(seed.ADMIN), client("alice")
    eventually(lambda: list(admin.pools()), limit=30)
    volume = ended(alice, alice.create_volume(1, name="data2"))["volume"]
    policy = admin.create_policy("FOR TENANT acme DO SET encryption", wait=30)["id"]
    device = ended(alice, alice.attach_volume(volume, cluster.layout.node, export="block"))["data"]["device"]
    ends = (0, GIB - len(TEXT))
    with open(device, "r+b", buffering=0) as file:
        assert file.seek(0, os.SEEK_END) == GIB
        for offset in ends:
            os.pwrite(file.fileno(), TEXT, offset)
        os.fsync(file.fileno())
    (image,) = (backends.folder(cluster.layout) / "nbd").rglob(f"*{volume}*")
    assert image.stat().st_size == 2 * GIB
    with image.open("rb") as stored:
        assert stored.read(4) == b"LUKS"
    assert [alice.volume(volume)[name] for name in ("size", "cinder_size")] == [1, 2]
    assert ended(alice, alice.extend_volume(volume, 2))["data"]["size_seen"] == "after the next attach"
    ended(alice, alice.detach_volume(volume))
    admin.delete_policy(policy)
    device = ended(alice, alice.attach_volume(volume, cluster.layout.node, export="block"))["data"]["device"]
    with open(device, "rb", buffering=0) as file:
        assert file.seek(0, os.SEEK_END) == 2 * GIB
        assert [os.pread(file.fileno(), len(TEXT), offset) for offset in ends] == [TEXT, TEXT]
    assert [alice.volume(volume)[name] for name in ("size", "cinder_size")] == [2, 3]
    ended(alice, alice.detach_volume(volume))
    ended(alice, alice.delete_volume(volume))
