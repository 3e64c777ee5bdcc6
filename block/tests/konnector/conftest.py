"""A konnector on this machine, with a file as the source of its volumes."""

import os
import uuid
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from sluice_block.konnector.datapath import loop_devices
from sluice_block.konnector.konnector import Konnector
from sluice_block.konnector.records import VolumeAttachment

MIB = 1 << 20


@dataclass
class Machine:
    """``restart`` makes a new konnector over the same folders, as another process would be."""

    folder: Path
    built: Path
    konnector: Konnector = field(init=False)

    def __post_init__(self) -> None:
        self.start()

    def start(self) -> None:
        self.konnector = Konnector(self.folder / "state", self.folder / "run", self.built, self.folder / "logs")
        self.konnector.adopt()

    def wanted(self, size=64 * MIB):
        """A volume over a fresh file of zeros."""
        key = str(uuid.uuid4())
        source = self.folder / f"{key}.img"
        with open(source, "wb") as file:
            file.truncate(size)
        connection = {"driver_volume_type": "local", "data": {"device_path": str(source)}}
        return VolumeAttachment(key, "acme", connection)

    def attach(self, **fields):
        return self.konnector.attach(replace(self.wanted(), **fields))[0]

    def leftovers(self):
        """What is there of volumes: folders, records, mounts, loop devices."""
        run = list((self.folder / "run").glob("*"))
        mounts = [line for line in Path("/proc/self/mounts").read_text().splitlines() if str(self.folder) in line]
        devices = [one for one in run if loop_devices.find(one / "mount" / "image")]
        return run + list((self.folder / "state").glob("*")) + mounts + devices


@pytest.fixture
def machine(tmp_path_factory, built):
    if os.geteuid() != 0:
        pytest.skip("loop devices and mounts are root's")
    made = Machine(tmp_path_factory.mktemp("k"), built)  # sockets have short paths
    yield made
    for volume in made.konnector.volumes():
        volume.detach()
    assert made.leftovers() == []
