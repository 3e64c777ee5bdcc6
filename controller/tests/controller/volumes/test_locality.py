"""``/locality/volume``: the values of Cinder, those of the konnector, and the missing ones without it."""

import pytest

from sluice_core.errors import PeerError
from sluice_volumes.messages import OsdShare, RbdLocality

IN_CEPH = RbdLocality("safe", 256, 64, (OsdShare(2, "left", 1.0, 0.75), OsdShare(0, "right", 0.5, 0.25)))


@pytest.fixture
def volume(order, konnector, cinder):
    return order("post", "/volumes", {"size": 1, "name": "data1"})["volume"]


@pytest.fixture
def locality(send):
    return lambda name: send("get", f"/locality/volume/{name}")


def test_a_volume_that_is_not_attached_has_a_place_and_no_consumer(locality, volume):
    found = locality("data1")
    assert found == locality(volume)
    assert (found["volume"], found["pool"], found["host"], found["back_end"]) == (volume, "h@nbd#fast", "h", "nbd")
    assert (found["fabric"], found["consumer"], found["osds"], found["warnings"]) == ("nbd", None, [], [])


def test_of_a_volume_in_ceph_osds_are_known_while_it_is_attached(locality, order, cinder, konnector, volume):
    cinder._change(volume, pool="h@rbd#safe")
    assert "known while it is attached" in locality(volume)["warnings"][0]
    konnector.lies[volume] = IN_CEPH
    order("post", f"/volumes/{volume}/attach", {"node": "n1"})
    found = locality(volume)
    assert found["consumer"] == {"node": "n1", "host": "consumer", "device": "/dev/loop7"}
    assert (found["fabric"], found["objects"], found["sampled"], found["warnings"]) == ("rbd", 256, 64, [])
    assert found["osds"] == [
        {"id": 2, "host": "left", "objects": 256, "primary": 192},
        {"id": 0, "host": "right", "objects": 128, "primary": 64},
    ]


@pytest.mark.parametrize(("call", "device"), [("volume", ""), ("locality", "/dev/loop7")])
def test_a_konnector_that_does_not_answer_is_a_warning(locality, order, konnector, volume, call, device):
    order("post", f"/volumes/{volume}/attach", {"node": "n1"})
    konnector.faults[call] = PeerError("konnector of node `n1` cannot be asked")
    found = locality(volume)
    assert (found["consumer"]["node"], found["consumer"]["device"]) == ("n1", device)
    assert (found["objects"], found["warnings"]) == (None, ["konnector of node `n1` cannot be asked"])


def test_a_volume_that_others_attached_names_their_host(locality, cinder, volume):
    cinder.attach(volume, {"host": "nova1"})
    assert locality(volume)["consumer"] == {"node": "", "host": "nova1", "device": ""}


def test_a_volume_that_there_is_not_has_no_place(message, volume):
    assert "there is no volume `data2`" in message("get", "/locality/volume/data2", status=404)
