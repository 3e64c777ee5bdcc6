"""Devices in memory that answer at once."""

from __future__ import annotations

from tests.support.objects.simulation import Disk

from sluice_objects.protocol.acceptor import Acceptor
from sluice_objects.protocol.home import Sighting, Vote
from sluice_objects.protocol.stamps import NOTHING
from sluice_objects.protocol.voters import Voter


class Disks:
    """Three disks that answer at once; :attr:`at_store` is called before a state is stored."""

    def __init__(self):
        self.disks = {name: Disk(name, f"of {name}") for name in "abc"}
        self.down = set()
        self.commits = 0
        self.at_store = lambda: None

    def rings(self):
        return [list(self.disks)]

    def look(self, devices):
        return [
            Sighting(Voter(disk.name, disk.incarnation), disk.stamp, disk.voters, disk.record().promised)
            for disk in self.reached(devices)
        ]

    def promise(self, devices, ballot, home):
        return self.votes(devices, lambda disk: Acceptor(disk).promise(ballot, home))

    def fetch(self, device, stamp):
        return self.disks[device].state, self.disks[device].voters

    def store(self, devices, stamp, voters, state):
        self.commits += 1
        self.at_store()

        def store(disk):
            acceptor = Acceptor(disk)
            refusal = acceptor.refusal(stamp)
            if refusal is None:
                disk.put(stamp, state, voters)
                acceptor.accepted(stamp)
            return refusal or True

        return self.votes(devices, store)

    def confirm(self, devices, stamp):
        return self.votes(devices, lambda disk: Acceptor(disk).confirms(stamp))

    def least_stamp(self, state):
        return NOTHING

    def reached(self, devices):
        return [self.disks[name] for name in devices if name not in self.down]

    def votes(self, devices, answer):
        return [Vote(Voter(disk.name, disk.incarnation), answer(disk)) for disk in self.reached(devices)]
