"""The back end stores exactly the output of the filters, and another konnector reads the same volume."""

import hashlib
import os
import random

import pytest
from tests.support.block.cinder import GIB, MIB, attach, detach, login
from tests.support.block.volumes import VolumeOwner, konnector, stored, volume_cluster

from sluice_aio.keystone import seed

#: Filter → its output for each byte value on a write.
TABLES = {
    "nop": bytes(range(256)),
    "xor": bytes(value ^ 7 for value in range(256)),
    "bitrev": bytes(int(f"{value:08b}"[::-1], 2) for value in range(256)),
}
PARAMS = {"nop": {}, "xor": {"key": 7}, "bitrev": {}}


@pytest.fixture(scope="module")
def cluster():
    with volume_cluster({"agent2", "konnector2"}) as running:
        yield running


@pytest.fixture(scope="module")
def admin(cluster):
    with VolumeOwner(cluster, seed.ADMIN) as found:
        yield found


@pytest.fixture(scope="module")
def alice(cluster, admin):
    with VolumeOwner(cluster, "alice") as found:
        yield found


def blocks(size):
    """The content: blocks that differ from each other and from the output of any filter for one of them."""
    return (random.Random(number).randbytes(MIB) for number in range(size // MIB))


def write(device, size):
    """Write the content to a device; its md5."""
    digest = hashlib.md5()
    with open(device, "r+b", buffering=0) as file:
        for block in blocks(size):
            file.write(block)
            digest.update(block)
        os.fsync(file.fileno())
    return digest.hexdigest()


def digest(device, size):
    """The md5 of a device's bytes."""
    found = hashlib.md5()
    with open(device, "rb", buffering=0) as file:
        for _ in range(size // MIB):
            found.update(file.read(MIB))
    return found.hexdigest()


def assert_stored(image, size, stack):
    """The back end's file has the output of the filters of ``stack`` for the content, in the written order."""
    with open(image, "rb") as file:
        for number, block in enumerate(blocks(size)):
            for keyword in stack:
                block = block.translate(TABLES[keyword])
            assert file.read(MIB) == block, f"MiB {number} of `{image}` through {stack}"


def test_a_volume_has_its_bytes_at_the_konnector_of_another_node(cluster, admin, alice):
    first, second = cluster.layout, cluster.layout.second_node()
    volume = alice.create()
    for filters in ("xor WITH key=7", "bitrev"):
        admin.client.create_policy(f"FOR VOLUME {volume} DO SET {filters}", wait=10)
    written = write(alice.attach(volume, first.node), GIB)
    shown = alice.client.volume(volume)
    alice.detach(volume)
    assert_stored(stored(first, volume), GIB, [one["keyword"] for one in shown["filters"]])
    device = alice.attach(volume, second.node)
    assert alice.client.volume(volume)["node"] == second.node
    assert [one["volume"] for one in konnector(second).list()] == [volume]
    assert konnector(first).list() == []
    assert digest(device, GIB) == written


@pytest.mark.parametrize(
    "stack",
    [["nop"], ["xor"], ["bitrev"], ["xor", "bitrev"], ["bitrev", "xor"], ["nop", "xor", "nop", "bitrev", "nop"]],
    ids="-".join,
)
def test_filters_are_passed_in_order_on_writes_and_reversed_on_reads(cluster, admin, alice, stack):
    cinder = login(cluster.layout, "alice")
    volume = cinder.volumes.get(alice.create())
    size = 64 * MIB

    def use(node, how):
        """The result of ``how`` on the device of a node; the back end has the transformed content then."""
        attachment = attach(cinder, volume)
        wanted = {"project": "acme", "connection": attachment.connection_info, "attachment": attachment.id}
        steps = [{"keyword": one, "params": PARAMS[one]} for one in stack]
        found = how(konnector(node).attach(volume.id, wanted | {"stack": steps})["device"], size)
        konnector(node).detach(volume.id)
        assert_stored(stored(cluster.layout, volume.id), size, stack)
        detach(cinder, volume, attachment)
        return found

    written = use(cluster.layout, write)
    assert use(cluster.layout.second_node(), digest) == written
