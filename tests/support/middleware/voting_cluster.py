"""The simulated cluster of ``tests.support.objects.simulation`` whose devices are those of an object server.

Each message is a request to Swift's object server, and the record, the incarnation and the states are files.  The
greenlets of the simulation are no green threads: nothing in the server may wait for these (:func:`without_threads`).
"""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest
from tests.support.middleware.object_server import StorageNode
from tests.support.middleware.voters import Voter as Server
from tests.support.objects.simulation import Disk, Network, State, World

from sluice_middleware.object_server.voter.device_files import DeviceFiles
from sluice_middleware.swift import green
from sluice_middleware.swift.object_votes import CONFIRM, LOOK, PROMISE, decode_voters
from sluice_middleware.wsgi import sysmeta
from sluice_objects.protocol.acceptor import Record, Refusal
from sluice_objects.protocol.home import Sighting, Vote
from sluice_objects.protocol.stamps import NOTHING, Stamp
from sluice_objects.protocol.voters import Voter, Voters


def without_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run in the calling greenlet what the server would run in threads and green threads."""
    monkeypatch.setattr(green, "map_concurrently", lambda function, items, most: [function(one) for one in items])
    monkeypatch.setattr(green.tpool, "_nthreads", 0)
    monkeypatch.setattr(green.tpool, "_setup_already", True)


class ServerDisk(Disk):
    """A device of an object server."""

    def __init__(self, name: str, node: StorageNode) -> None:
        (node.folder / name).mkdir()
        self.name = name
        self.server = Server(node, name)

    @property
    def files(self) -> DeviceFiles:
        return DeviceFiles(self.server.file())

    @property
    def incarnation(self) -> str:
        return self.files.incarnation()

    @property
    def stamp(self) -> Stamp | None:
        return self.files.stored()

    @property
    def state(self) -> State:
        return self.read()[0]

    @property
    def voters(self) -> Voters:
        return self.read()[1]

    def record(self) -> Record:
        return self.files.record()

    def read(self) -> tuple[State, Voters]:
        response = self.server.node.get(device=self.name)
        return tuple(json.loads(response.body)), decode_voters(response.headers[sysmeta.VOTERS])

    def put(self, stamp: Stamp, state: State, voters: Voters) -> None:
        if stamp > (self.stamp or NOTHING):
            self.server.replicate(stamp, json.dumps(state).encode(), voters)

    def remove(self) -> None:
        shutil.rmtree(self.server.file()._datadir, ignore_errors=True)  # it may be gone

    def wipe(self, incarnation: str) -> None:
        self.server.wipe()


class ServerNetwork(Network):
    """The requests of one home."""

    def look(self, devices: Sequence[str]) -> Iterable[Sighting]:
        return self._ask(devices, lambda disk: disk.server.ask(LOOK).sighting(disk.name))

    def promise(self, devices: Sequence[str], ballot: Stamp, home: str) -> Iterable[Vote]:
        return self._ask(devices, lambda disk: disk.server.ask(PROMISE, ballot, home).vote(disk.name, PROMISE))

    def confirm(self, devices: Sequence[str], stamp: Stamp) -> Iterable[Vote]:
        return self._ask(devices, lambda disk: disk.server.ask(CONFIRM, stamp).vote(disk.name, CONFIRM))

    def store(self, devices: Sequence[str], stamp: Stamp, voters: Voters, state: State) -> Iterable[Vote]:
        body = json.dumps(state).encode()

        def answer(disk: ServerDisk) -> Vote:
            headers = disk.server.store(stamp, io.BytesIO(body), voters=voters).headers
            voter = Voter(disk.name, headers[sysmeta.INCARNATION])
            if headers.get(sysmeta.STATE_STORED) == stamp.internal:
                return Vote(voter, True)
            return Vote(voter, Refusal(Stamp.read(headers[sysmeta.PROMISED]), headers[sysmeta.HOME]))

        return self._ask(devices, answer)

    def _ask(self, devices: Sequence[str], answer: Callable[[Any], Any]) -> Any:
        return super()._ask(devices, answer)


class VotingCluster(World):
    """
    :param node: the object server, on which the cluster's devices are made
    """

    def __init__(self, seed: int, node: StorageNode, **options: Any) -> None:
        super().__init__(seed, **options)
        self.disks = {name: ServerDisk(name, node) for name in self.disks}

    def connect(self, home: int) -> Network:
        return ServerNetwork(self, home)
