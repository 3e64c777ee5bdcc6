"""The load of this machine, from counters of the kernel."""

from types import SimpleNamespace

import psutil
import pytest

from sluice_motifs.api import RESOURCES
from sluice_motifs.expansion.choice import MachineLoads


class Machine:
    """Counters that a test sets, and a clock."""

    def __init__(self, patch):
        self.now = 100.0
        self.cpu = {"user": 10.0, "system": 5.0, "idle": 80.0, "iowait": 5.0, "guest": 3.0}
        self.disks = {"sda": 1000, "sdb": 500}
        self.links = {"eth0": (0, 0, 1000, True), "eth1": (0, 0, 0, True), "eth2": (0, 0, 1000, False)}
        patch.setattr(psutil, "cpu_times", self.cpu_times)
        patch.setattr(psutil, "disk_io_counters", self.disk_counters)
        patch.setattr(psutil, "net_io_counters", self.link_counters)
        patch.setattr(psutil, "net_if_stats", self.link_states)
        self.loads = MachineLoads(lambda: self.now)

    def cpu_times(self):
        names = (*self.cpu, "guest_nice")
        values = [*self.cpu.values(), 0.0]

        class Times(tuple):
            __slots__ = ()

        for place, name in enumerate(names):
            setattr(Times, name, property(lambda self, place=place: self[place]))
        return Times(values)

    def disk_counters(self, perdisk):
        return {name: SimpleNamespace(busy_time=busy) for name, busy in self.disks.items()} if perdisk else None

    def link_counters(self, pernic):
        return {name: SimpleNamespace(bytes_sent=one[0], bytes_recv=one[1]) for name, one in self.links.items()}

    def link_states(self):
        return {name: SimpleNamespace(speed=one[2], isup=one[3]) for name, one in self.links.items()}


@pytest.fixture
def machine(monkeypatch):
    return Machine(monkeypatch)


def test_loads_are_means_since_the_look_before(machine):
    assert machine.loads() == {}
    machine.now += 2.0
    machine.cpu.update(user=12.0, idle=81.0, iowait=6.0, guest=5.0)
    machine.disks = {"sda": 1500, "sdb": 2300, "new": 10**6}
    machine.links["eth0"] = (25_000_000, 125_000_000, 1000, True)
    machine.links["eth1"] = machine.links["eth2"] = (10**9, 10**9, 0, True)
    expected = {"cpu": 0.5, "disk": 0.9, "network": 0.5}
    assert machine.loads() == pytest.approx(expected)
    machine.now += 0.9
    machine.disks["sda"] += 900
    assert machine.loads() == pytest.approx(expected), "kept for a second"
    machine.now += 0.9
    assert machine.loads() == pytest.approx({"cpu": 0.0, "disk": 0.5, "network": 0.0})


def test_the_loads_of_this_machine_are_parts():
    now = [0.0]
    loads = MachineLoads(lambda: now[0])
    now[0] = 3600.0
    assert set(loads()) == set(RESOURCES)
    assert all(0.0 <= one <= 1.0 for one in loads().values())
