"""An attached volume is located and measured, and detached from a machine whose konnector was removed.

Locality and forced detachment, as in docs/admin/volumes/operations.md.
"""

import os
import platform
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.support.block.cinder import LIMIT, login
from tests.support.block.konnector_client import KonnectorClient

from sluice_aio.cinder.konnector import run_folder
from sluice_aio.keystone import seed
from sluice_block.cinder_nbd.exports import SHARED, SINGLE
from sluice_client import ApiError, Client

CONTENT = os.urandom(4096)


@pytest.fixture(scope="module")
def cluster(volumes_cluster):
    if os.geteuid() != 0:
        pytest.skip("loop devices are root's")
    return volumes_cluster


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


def done(operation):
    assert operation["state"] == "done", operation
    return operation


def write(device, content):
    with open(device, "r+b", buffering=0) as opened:
        opened.write(content)
        os.fsync(opened.fileno())


@pytest.fixture
def volume(cluster, client, eventually):
    """An attached volume of a back end that can end exports: its id, and its device."""
    admin, alice = client(seed.ADMIN), client("alice")
    eventually(lambda: list(admin.pools()), limit=30)
    made = done(alice.create_volume(1, wait=30))["volume"]
    yield made, done(alice.attach_volume(made, cluster.layout.node, wait=30))["data"]["device"]
    done(alice.detach_volume(made, wait=30))
    done(alice.delete_volume(made, wait=30))


def test_an_attached_volume_is_located_and_prometheus_reads_what_it_does(cluster, client, eventually, volume):
    name, device = volume
    found = client(seed.ADMIN).volume_locality(name)
    assert (found["fabric"], found["objects"], found["warnings"]) == ("nbd", None, [])
    assert found["consumer"] == {"node": cluster.layout.node, "host": platform.node(), "device": device}
    session = login(cluster.layout, seed.ADMIN).client.session

    def measured():
        write(device, CONTENT)
        text = session.get(f"{cluster.api_url}/volumes/metrics").text
        samples = [one for family in text_string_to_metric_families(text) for one in family.samples]
        return {
            (one.name, one.labels.get("operation")): one.value for one in samples if one.labels.get("volume") == name
        }

    series = eventually(lambda: found if (found := measured()) else None, limit=30)
    assert series["sluice_volume_bytes_per_second", "write"] > 0
    assert found["pool"] in session.get(f"{cluster.api_url}/volumes/metrics").text


def test_cinders_export_has_one_thread_for_each_connection_of_a_device(cluster, client, volume):
    pid = (cluster.layout.run / "nbd" / f"{volume[0]}.pid").read_text().strip()
    expected = SINGLE if client("alice").volume(volume[0])["data_path"] == "fuse" else SHARED
    assert f"--threads={expected}" in Path(f"/proc/{pid}/cmdline").read_text().split("\0")


@pytest.mark.probe
def test_a_volume_is_taken_from_a_machine_that_is_lost(cluster, client, eventually, volume):
    (name, device), admin, alice = volume, client(seed.ADMIN), client("alice")
    konnector = KonnectorClient(run_folder(cluster.layout) / "api.sock")
    write(device, CONTENT)
    cluster.kill("konnector")
    with pytest.raises(ApiError, match="for administrators only"):
        alice.detach_volume(name, force=True)
    operation = done(admin.detach_volume(name, wait=30, force=True))
    assert (operation["data"]["fenced"], operation["data"]["konnector_told"]) == (True, False)
    shown = alice.volume(name)
    assert (shown["status"], shown["node"], shown["attachments"]) == ("available", None, [])
    cluster.restart("konnector")
    eventually(lambda: admin.volume_operation(operation["id"])["data"]["konnector_told"], limit=60)
    # other volumes may exist: those that the calls of the schema's test have created
    assert name not in [one["volume"] for one in konnector.list()]
    assert [one["subject"] for one in admin.events() if "no more" in one["text"]] == [name]
    again = done(alice.attach_volume(name, cluster.layout.node, wait=30))["data"]["device"]
    with open(again, "rb") as opened:
        assert opened.read(len(CONTENT)) == CONTENT
