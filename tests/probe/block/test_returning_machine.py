"""A machine that is switched on again asks before it attaches volumes on a share, which another may have by then."""

import contextlib
from pathlib import Path

import pytest
from tests.support.block.cinder import MIB
from tests.support.block.verified_load import VerifiedLoad
from tests.support.block.volumes import VolumeOwner, konnector, volume_cluster

from sluice_aio.cinder.konnector import release, run_folder, state_folder
from sluice_aio.keystone import seed
from sluice_client import ApiError, ClientError
from sluice_core.errors import PeerError
from sluice_core.store.store import Store

SIZE = 32 * MIB
SOON = 60


@pytest.fixture(scope="module")
def cluster():
    with volume_cluster({"agent2", "konnector2"}) as running:
        yield running


@pytest.fixture(scope="module")
def admin(cluster):
    with VolumeOwner(cluster, seed.ADMIN) as found:
        yield found


@pytest.fixture
def shared(cluster, admin, eventually):
    """The owner of volumes on the share, which is not fenced."""
    eventually(lambda: any(one["name"].endswith("#nfs") for one in admin.client.pools()), limit=SOON)
    admin.client.collection("/volumes/tiers").create({"name": "shared", "fabric": "nfs"})
    with VolumeOwner(cluster, "alice") as owner:
        yield owner
    admin.client.collection("/volumes/tiers").delete("shared")


def switch_off(cluster):
    """Stop the first node's konnector and all of its volumes, as its machine does."""
    cluster.kill("konnector")
    release(cluster.layout)
    assert not any(one.is_dir() for one in run_folder(cluster.layout).iterdir())


def written(device, content):
    with VerifiedLoad(device, size=SIZE) as load:
        load.wait_for(50)
    with open(device, "r+b", buffering=0) as opened:
        opened.write(content)


def first_bytes(device):
    with open(device, "rb") as opened:
        return opened.read(8)


def shown(cluster, volume):
    """The volume at the konnector of the first node; None while it does not answer."""
    with contextlib.suppress(PeerError):
        return next((one for one in konnector(cluster.layout).list() if one["volume"] == volume), {})


def test_a_volume_comes_back_after_a_reboot_once_the_control_plane_was_asked(cluster, shared, eventually):
    volume = shared.create(tier="shared")
    written(shared.attach(volume), b"mine now")
    switch_off(cluster)
    cluster.kill("actors")
    cluster.restart("konnector")
    with contextlib.closing(Store(cluster.redis_url)) as store:
        eventually(lambda: [one for one in store.nodes() if volume in one.unconfirmed_volumes], limit=SOON)
    found = shown(cluster, volume)
    assert (found["state"], found["device"]) == ("waiting", "")
    assert "before the control plane has said" in shared.client.volume(volume)["fault"]
    cluster.restart("actors")
    eventually(lambda: shown(cluster, volume)["state"] == "attached", limit=SOON)
    assert first_bytes(shown(cluster, volume)["device"]) == b"mine now"
    assert shared.client.volume(volume)["fault"] is None


def test_a_machine_that_was_declared_gone_attaches_nothing_that_another_one_has(cluster, admin, shared, eventually):
    volume = shared.create(tier="shared")
    written(shared.attach(volume), b"node one")
    switch_off(cluster)
    with pytest.raises(ApiError, match="say `machine_is_gone`"):
        admin.client.detach_volume(volume, force=True)
    admin._ended(admin.client.detach_volume(volume, wait=30, force=True, machine_is_gone=True))
    device = shared.attach(volume, cluster.layout.second_node().node)
    assert first_bytes(device) == b"node one"
    with VerifiedLoad(device, size=SIZE) as load:
        load.wait_for(50)
        kept = state_folder(cluster.layout) / f"{volume}.volume"
        assert kept.exists()
        cluster.restart("konnector")
        seen = set()

        def is_forgotten():
            found = shown(cluster, volume)
            seen.update(() if not found else [(found["state"], found["device"])])
            return found == {}

        eventually(is_forgotten, limit=SOON)
        load.wait_for(50)
    assert seen <= {("waiting", ""), ("broken", ""), ("detaching", "")}
    assert not kept.exists()
    log = Path(cluster.layout.logs / "konnector.log").read_text(encoding="utf-8")
    assert f"volume `{volume}` waits: " in log

    def detached():
        with contextlib.suppress(ClientError):  # its node has no konnector until its agent has reported it
            shared.detach(volume)
            return True

    eventually(detached, limit=SOON)
