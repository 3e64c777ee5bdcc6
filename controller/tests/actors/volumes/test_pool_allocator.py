"""Floors of volumes that share a pool, on simulated machines whose volumes move their allowed rates."""

import math

import pytest

from sluice_actors.policies.group_index import GroupIndex
from sluice_actors.volumes.pool_allocator import PoolAllocator, VolumeLoad
from sluice_core.describe import BANDWIDTH, PROXY
from sluice_core.messages.bandwidth import GET, PUT, Shares
from sluice_core.messages.policies import ALL, GROUP, NAME, VOLUME, Assignment, Entry, Target
from sluice_core.messages.registry import VOLUME_MEMBER
from sluice_volumes.messages import PoolCalibration

MB = 1_000_000
POOL = PoolCalibration("n@nbd#fast", 90 * MB, 60 * MB, 1e6, 1e6, 0.0)


def floor(volume, select=NAME, **rates):
    name = {NAME: f"AUTH_p/{volume}", GROUP: volume}.get(select, "")
    params = {name: rate * MB for name, rate in rates.items()}
    return Assignment(
        f"{volume}.0", volume, BANDWIDTH, "set", "bandwidth", Target(VOLUME, select, name), params=params, place=PROXY
    )


class Machines:
    """Konnectors, node → its volumes with demands (MB/s); each moves its allowed rate, up to the pool's limit."""

    def __init__(self, asks, *assignments, method=GET, groups=()):
        self.asks = asks
        self.method = method
        index = GroupIndex()
        index.replace(groups)
        self.allocator = PoolAllocator(index)
        self.allocator.set_assignments(assignments)
        self.rates = {}
        self.now = 100.0

    def run(self, seconds):
        """The rate of each volume in the last second, MB/s."""
        for number in range(seconds):
            moved = {
                (node, volume): min(asked, self.rates.get((node, volume), math.inf))
                for node, volumes in self.asks.items()
                for volume, asked in volumes.items()
            }
            carries = (POOL.read_bw if self.method == GET else POOL.write_bw) / MB
            while sum(moved.values()) > carries * 1.0001:
                most = max(moved, key=moved.get)
                moved[most] = min(moved[most] * 0.9, 2 * carries)
            loads = {
                node: [VolumeLoad("AUTH_p", volume, self.method, moved[node, volume] * MB) for volume in volumes]
                for node, volumes in self.asks.items()
            }
            self.now += 1.0
            made = self.allocator.allocate(POOL, loads, self.now, self.now, 1, number + 1)
            self.rates = {
                (node, row.container): row.rate / MB if row.rate >= 0 else math.inf
                for node, body in made.messages.items()
                for row in Shares.decode(body).rows
                if row.method == self.method
            }
        return {volume: round(rate, 3) for (_, volume), rate in moved.items()}


def test_floors_hold_and_the_rest_is_shared_over_machines():
    machines = Machines(
        {"m1": {"a": math.inf, "b": math.inf}, "m2": {"c": math.inf}},
        floor("a", get_bw=30),
        floor("b", get_bw=20),
        floor("c", get_bw=10),
    )
    assert machines.run(8) == pytest.approx({"a": 40, "b": 30, "c": 20}, rel=0.03)


def test_writes_have_a_capacity_of_their_own():
    machines = Machines({"m1": {"a": math.inf}, "m2": {"b": math.inf}}, floor("a", put_bw=40), method=PUT)
    assert machines.run(8) == pytest.approx({"a": 50, "b": 10}, rel=0.03)


def test_what_a_volume_leaves_goes_to_others():
    machines = Machines({"m1": {"a": 5.0}, "m2": {"b": math.inf}}, floor("a", get_bw=40), floor("b", get_bw=10))
    moved = machines.run(8)
    assert moved["a"] == 5.0
    assert moved["b"] > 75


def test_a_floor_of_all_volumes_is_one_of_each():
    machines = Machines({"m1": {"a": math.inf, "b": math.inf}, "m2": {"c": math.inf}}, floor("x", ALL, get_bw=25))
    assert machines.run(8) == pytest.approx({"a": 30, "b": 30, "c": 30}, rel=0.03)


def test_a_floor_of_a_group_is_one_of_each_member():
    members = [Entry(VOLUME_MEMBER, f"disks/AUTH_p/{volume}", {}) for volume in "ab"]
    machines = Machines(
        {"m1": {"a": math.inf, "b": math.inf}, "m2": {"c": math.inf}}, floor("disks", GROUP, get_bw=35), groups=members
    )
    assert machines.run(8) == pytest.approx({"a": 41.67, "b": 41.67, "c": 6.67}, rel=0.03)


def test_without_floors_nothing_is_held_back():
    machines = Machines({"m1": {"a": math.inf}})
    machines.run(3)
    assert not machines.rates
