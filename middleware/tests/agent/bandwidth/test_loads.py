"""From running totals to a node's load of each second."""

import pytest

from sluice_agent.bandwidth.loads import LoadMeter, disk_traffic
from sluice_core.describe import PROXY, STORAGE_NODE
from sluice_core.messages.bandwidth import GET, PUT, Flow, MovedObject, NodeLoad
from sluice_core.messages.credit import CreditHello, TrafficReport, TrafficSample

DELAY = 0.06


class Node:
    def __init__(self):
        self.now = 1000.06
        self.steady = 5.0
        self.loads = LoadMeter("n1", {PROXY: {GET: 9.0}}, lambda: self.now, lambda: self.steady)

    def join(self, name="1", side=PROXY):
        self.loads.add_worker(name, CreditHello("w", side, 1, "h:1" if side == STORAGE_NODE else "", {"0": "gold"}))

    def used(self, moved, name="1", busy=0.0, held=0.0, open=0, waiting=0, device="", method=GET, objects=()):  # noqa: A002
        row = TrafficSample("a", "", method, 0, device, moved, busy, held, open, waiting)
        self.loads.add_report(name, TrafficReport(self.now, (row,), objects))

    def second(self, count=1, governed=False):
        self.now += count
        self.steady += count
        return self.loads.close_window(governed, DELAY)


def moved(load):
    return [(row.account, row.moved) for row in load.rows]


def test_running_totals_become_loads_of_each_second():
    node = Node()
    node.join()
    node.used(100, busy=0.5, held=0.25, open=1, waiting=1)
    first = node.second()
    assert first.rows[0][:7] == (PROXY, "a", "", GET, 0, "", 100.0)
    assert (first.rows[0].open, first.rows[0].waiting) == (0.5, 0.25)
    assert (first.number, first.at, first.sides, first.capacity) == (1, 1001.0, (PROXY,), {PROXY: {GET: 9.0}})
    assert NodeLoad.decode(first.encode()) == first
    node.used(150, busy=1.5, held=0.25, open=1)
    second = node.second()
    assert (moved(second), second.rows[0].open, second.rows[0].waiting) == ([("a", 50.0)], 1.0, 0.0)
    assert second.number == 2


def test_nobody_waits_when_no_transfer_is_open_any_more():
    node = Node()
    node.join()
    node.used(100, busy=0.9, held=0.9)
    [row] = node.second().rows
    assert (row.open, row.waiting) == (0.9, 0.0)


def test_the_totals_of_all_workers_are_summed():
    node = Node()
    for name in "12":
        node.join(name)
        node.used(100, name, busy=0.5)
    assert [row[6:8] for row in node.second().rows] == [(200.0, 1.0)]


def test_an_open_transfer_without_bytes_is_reported():
    node = Node()
    node.join()
    node.used(100, open=1)
    node.second()
    assert moved(node.second()) == [("a", 0.0)]


def test_a_worker_that_vanishes_keeps_its_last_second():
    node = Node()
    node.join()
    node.used(100, open=1)
    node.loads.remove_worker("1")
    load = node.second()
    assert moved(load) == [("a", 100.0)]
    assert (load.gone, load.sides) == (True, ())
    assert node.second().rows == ()


def test_a_worker_that_counts_from_the_beginning_again_is_not_negative():
    node = Node()
    node.join()
    node.used(1000, busy=5.0)
    node.second()
    node.used(10, busy=0.1)
    assert moved(node.second()) == [("a", 10.0)]


def test_a_worker_that_connects_anew_counts_from_its_hello():
    node = Node()
    node.join("1")
    node.used(1000, "1")
    node.second()
    node.join("2")
    node.loads.remove_worker("1")
    node.used(1010, "2")
    assert moved(node.second()) == [("a", 1010.0)]


def test_an_idle_node_publishes_three_loads_and_then_few():
    node = Node()
    node.join()
    node.used(100)
    heard = [node.second() is not None for _ in range(20)]
    assert heard[:4] == [True] * 4
    assert sum(heard[4:]) in (3, 4)
    node.used(200)
    assert moved(node.second()) == [("a", 100.0)]


def test_a_limiting_node_publishes_each_second():
    node = Node()
    assert all(node.second(governed=True) for _ in range(10))
    assert not node.second(governed=True).gone


def test_a_second_is_published_once_and_missed_seconds_are_averaged():
    node = Node()
    node.join()
    node.second()
    assert node.second(0) is None
    node.used(300, busy=3.0, open=1)
    [row] = node.second(3).rows
    assert (row.moved, row.open) == (100.0, 1.0)


@pytest.mark.parametrize("jump", [-86_400, 86_400, -1, 1])
def test_a_wall_clock_that_jumps_changes_no_rate(jump):
    node = Node()
    node.join()
    node.second()
    node.used(100)
    node.now += jump
    load = node.second()
    if jump == -1:
        assert load is None  # the load of this second was published already
        load = node.second()
        assert moved(load) == [("a", 50.0)]
    else:
        assert moved(load) == [("a", 100.0)]


def test_readers_of_one_object_add_up_over_workers():
    node = Node()
    node.join("1", STORAGE_NODE)
    node.join("2", STORAGE_NODE)
    node.used(1, "1", device="sda", objects=(MovedObject("sda", 0, "a", "c/o", GET, "0-end", 5.0),))
    node.used(1, "2", device="sda", objects=(MovedObject("sda", 0, "a", "c/o", GET, "0-end", 7.0),))
    assert [one.rate for one in node.second().objects] == [12.0]


def test_objects_are_the_fastest_of_all_workers_and_of_this_second_only():
    node = Node()
    node.join("1", STORAGE_NODE)
    objects = tuple(MovedObject("sda", 0, "a", f"o{n}", GET, "0-end", float(n)) for n in range(300))
    node.used(1, objects=objects[:150], device="sda")
    node.used(2, objects=objects[150:], device="sda")
    found = node.second().objects
    assert [one.oid for one in found[:2]] == ["o299", "o298"]
    assert len(found) == 200
    assert node.second().objects == ()


def test_slow_uploads_are_reported_beside_many_faster_downloads():
    node = Node()
    node.join("1", STORAGE_NODE)
    reads = tuple(MovedObject("sda", 0, "a", f"o{n}", GET, "0-end", 100.0 + n) for n in range(300))
    writes = tuple(MovedObject("sda", 0, "a", f"o{n}", PUT, "0-end", float(n)) for n in range(3))
    node.used(1, objects=(*writes, *reads), device="sda")
    found = node.second().objects
    assert [one.rate for one in found] == [*(399.0 - n for n in range(197)), 2.0, 1.0, 0.0]
    assert [one.oid for one in found if one.method == PUT] == ["o2", "o1", "o0"]


def test_each_device_has_the_object_server_that_moved_bytes_on_it_last():
    node = Node()
    for port in (6200, 6201, 6202):
        node.loads.add_worker(str(port), CreditHello("w", STORAGE_NODE, 1, f"10.0.0.1:{port}"))
    for port, device in ((6200, "sda"), (6201, "sdb"), (6202, "sdc"), (6201, "sdc")):
        node.used(1, str(port), device=device, objects=(MovedObject(device, 0, "a", "c/o", GET, "0-end", 5.0),))
    load = NodeLoad.decode(node.second().encode())
    assert {one.device: one.server for one in load.objects} == {
        "sda": "10.0.0.1:6200",
        "sdb": "10.0.0.1:6201",
        "sdc": "10.0.0.1:6201",
    }
    assert load.server == "10.0.0.1:6202"
    assert node.second().servers == {}


def test_loads_stay_within_the_bounds_of_messages():
    node = Node()
    node.join()
    node.used(10**18)
    assert NodeLoad.decode(node.second().encode()).rows[0].moved == 1e15


def test_the_disks_of_a_flow_add_up():
    node = Node()
    node.join("1", STORAGE_NODE)
    node.join("2", PROXY)
    node.used(10, "1", device="sda", busy=0.5)
    node.used(20, "1", device="sdb", busy=0.5)
    node.used(99, "2", method=PUT)
    node.second()
    assert disk_traffic(node.loads.rows) == {Flow("a", GET): (30.0, 1.0, 0.0)}
