"""Rings of a policy: the present one, and those that other nodes may still use."""

import time

import pytest
from swift.common.ring import RingBuilder
from tests.support.middleware.object_server import swift_conf

from sluice_objects_swift.rings import KEPT, RingError, Rings, device_name

OBJECT = ("AUTH_acme", "tables", "orders")


@pytest.fixture
def builder():
    built = RingBuilder(4, 3, 0)
    for number in range(3):
        add(built, number)
    built.rebalance(seed="1")
    return built


def add(builder, number):
    place = {"ip": "127.0.0.1", "port": 6200 + number, "device": f"sd{number}", "region": 1, "zone": number}
    builder.add_dev({**place, "weight": 1.0, "meta": ""})


def replace_device(builder, old, new):
    add(builder, new)
    builder.remove_dev(next(dev["id"] for dev in builder.devs if dev and dev["device"] == f"sd{old}"))
    builder.rebalance(seed="1")


@pytest.fixture
def clock():

    class Clock:
        ahead = 0.0

        def __call__(self):
            return time.time() + self.ahead

    return Clock()


@pytest.fixture
def opened(tmp_path, builder, clock):
    builder.get_ring().save(tmp_path / "object.ring.gz")
    with swift_conf(tmp_path):
        yield lambda: Rings(tmp_path / "object.ring.gz", tmp_path / "copies", clock)


def names(ring):
    return {device_name(node) for node in ring}


def test_a_replaced_ring_is_asked_for_a_day(opened, builder, tmp_path, clock):
    rings = opened()
    (first,) = rings.primaries(*OBJECT)
    replace_device(builder, 0, 3)
    builder.get_ring().save(tmp_path / "object.ring.gz")
    clock.ahead = 60
    present, before = rings.primaries(*OBJECT)
    assert names(before) == names(first)
    assert names(present) - names(before) == {"127.0.0.1:6203/sd3"}
    clock.ahead = KEPT + 120
    assert [names(ring) for ring in rings.primaries(*OBJECT)] == [names(present)]


def test_a_ring_that_is_replaced_while_the_daemon_does_not_run_is_known(opened, builder, tmp_path):
    (first,) = opened().primaries(*OBJECT)
    replace_device(builder, 1, 4)
    builder.get_ring().save(tmp_path / "object.ring.gz")
    assert names(opened().primaries(*OBJECT)[1]) == names(first)


def test_the_same_ring_written_again_is_one_ring(opened, builder, tmp_path, clock):
    rings = opened()
    rings.primaries(*OBJECT)
    content = (tmp_path / "object.ring.gz").read_bytes()
    (tmp_path / "new").write_bytes(content)
    (tmp_path / "new").rename(tmp_path / "object.ring.gz")
    clock.ahead = 60
    assert len(rings.primaries(*OBJECT)) == 1
    assert len(list((tmp_path / "copies").iterdir())) == 1


def test_a_damaged_ring_is_an_error_until_it_is_replaced(opened, builder, tmp_path):
    (tmp_path / "object.ring.gz").write_bytes(b"no ring")
    with pytest.raises(RingError, match=r"object\.ring\.gz"):
        opened().primaries(*OBJECT)
    builder.get_ring().save(tmp_path / "object.ring.gz")
    assert len(opened().primaries(*OBJECT)) == 1
