"""Removal of Sluice while there are volumes: Cinder alone has the bytes of each as its user wrote them."""

import json
import os
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.block.cinder import MIB, attach, login
from tests.support.block.volumes import VolumeOwner, konnector, volume_cluster
from tests.support.cluster.uninstall import run_documented

from sluice_aio.cinder.konnector import run_folder, state_folder
from sluice_aio.keystone import seed
from sluice_block.datapath import loop_devices

PAGE = (Path(__file__).parents[3] / "docs" / "admin" / "uninstall.md").read_text(encoding="utf-8")
#: The copy as the page has it, from the first device to the second.
COPY = re.search(r"dd if=/dev/loop0 of=/dev/loop1( .*)", PAGE)[1].split()
CONTENT = random.Random(7).randbytes(8 * MIB)


@pytest.fixture(scope="module")
def cluster():
    with volume_cluster() as running:
        yield running


@pytest.fixture(scope="module")
def admin(cluster):
    with VolumeOwner(cluster, seed.ADMIN) as found:
        yield found


@pytest.fixture
def alice(cluster, admin, eventually):
    """A member with a tier in a back end that stays: Cinder's own driver of a share."""
    eventually(lambda: any(one["name"].endswith("#nfs") for one in admin.client.pools()), limit=60)
    for name, fabric in (("silver", "nfs"), ("gold", "nbd")):
        admin.client.collection("/volumes/tiers").create({"name": name, "fabric": fabric})
    return VolumeOwner(cluster, "alice")  # the remaining volumes are Cinder's


def program(cluster, owner, folder):
    """The client's command line."""
    token = folder / f"token-{id(owner)}"
    token.touch(mode=0o600)
    token.write_text(owner.cinder.client.session.get_token(), encoding="utf-8")
    return [sys.executable, "-m", "sluice_client", "--url", cluster.api_url, "--token-file", str(token)]


def write(device):
    with open(device, "r+b", buffering=0) as opened:
        opened.write(CONTENT)
        os.fsync(opened.fileno())


def stored_bytes(cinder, volume):
    """The first bytes of a volume as a consumer of Cinder's own reads them."""
    connection = attach(cinder, cinder.volumes.get(volume)).connection_info
    assert (connection["driver_volume_type"], connection["format"]) == ("nfs", "raw")
    (file,) = Path(connection["mount_point_base"]).glob(f"*/{connection['name']}")
    with open(file, "rb") as opened:
        return opened.read(len(CONTENT))


def test_after_the_documented_steps_cinder_alone_has_every_byte(cluster, admin, alice, tmp_path):
    node, run = cluster.layout.node, run_folder(cluster.layout)
    plain, filtered = alice.create(tier="silver"), alice.create(tier="gold", name="data1")
    policy = admin.client.create_policy(f"FOR VOLUME {filtered} DO SET xor WITH key=7", wait=10)["id"]
    for volume in (plain, filtered):
        write(alice.attach(volume))
    user, operator = program(cluster, alice, tmp_path), program(cluster, admin, tmp_path)

    def ask(command, documented=""):
        return run_documented(user, command, documented)

    def said(command, documented):
        return json.loads(ask(f"{command} -f json", documented))

    # 1. bytes of volumes that are attached for the first time, and 2. bytes that filters have changed
    admin.client.delete_policy(policy, wait=10)
    documented = "sluice volume show data1"
    assert said(f"sluice volume show {plain}", documented)["filters"] == []
    assert [one["keyword"] for one in said("sluice volume show data1", documented)["filters"]] == ["xor"]
    device = konnector(cluster.layout).show(filtered)["device"]
    create = "sluice volume create 1 --name data1-plain --tier silver --wait"
    ask(create, create.replace("create 1 ", "create 10 "))
    ask(f"sluice volume attach data1-plain {node} --wait", "sluice volume attach data1-plain node1 --wait")
    copied = said("sluice volume show data1-plain", documented)
    assert copied["filters"] == []
    target = konnector(cluster.layout).show(copied["id"])["device"]
    subprocess.run(["dd", f"if={device}", f"of={target}", *COPY], check=True, capture_output=True)
    for command in ("detach data1 --wait", "detach data1-plain --wait", "delete data1 --wait"):
        ask(f"sluice volume {command}")
    # 3. attached volumes, 4. tiers
    attached = [one for one in said("sluice volume list", "sluice volume list") if one["Node"]]
    assert [one["ID"] for one in attached] == [plain]
    ask(f"sluice volume detach {plain} --wait", "sluice volume detach data1 --wait")
    run_documented(operator, "sluice volume tier delete gold")
    # 5. konnectors
    assert konnector(cluster.layout).list() == []
    for service in ("konnector", "agent", "actors", "api", "redis"):
        cluster.kill(service)
    assert list(state_folder(cluster.layout).glob("*.volume")) == []
    assert [one.name for one in run.iterdir() if one.is_dir()] == []
    assert [file for file in loop_devices.by_file() if str(run) in file] == []
    assert str(run) not in Path("/proc/self/mounts").read_text()

    cinder = login(cluster.layout, "alice")
    for volume in (plain, copied["id"]):
        assert stored_bytes(cinder, volume) == CONTENT
