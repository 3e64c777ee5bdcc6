"""A konnector on this machine, with a file as the source of its volumes."""

import hashlib
import os
import uuid
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from sluice_block.datapath import loop_devices
from sluice_block.datapath.records import VolumeAttachment
from sluice_block.konnector import volume
from sluice_block.konnector.konnector import Konnector
from sluice_block.uploaded.catalogue import Refusals, UploadedFilters
from sluice_block.uploaded.sandbox import Confinement
from sluice_code.code_store import CodeStore
from sluice_core.describe import NBDKIT
from sluice_core.messages.uploads import FILTER_CODE, Upload

MIB = 1 << 20


@dataclass
class Machine:
    """``restart`` makes a new konnector over the same folders, like a new process."""

    folder: Path
    built: Path
    konnector: Konnector = field(init=False)
    uploads: dict[str, Upload] = field(default_factory=dict)
    bounds: Confinement = field(default_factory=lambda: Confinement(uid=500000))

    def __post_init__(self) -> None:
        self.start()

    def start(self) -> None:
        refusals = Refusals(self.folder / "refused.json")
        filters = UploadedFilters(self.uploads.values, CodeStore(self.folder / "code"), refusals, self.bounds)
        folders = (self.folder / "state", self.folder / "run", self.built, self.folder / "logs")
        self.konnector = Konnector(*folders, filters)
        self.konnector.adopt()

    def upload(self, keyword, code, reverse=True, **info):
        """Add a filter, or a further revision of it, that passed its trial, as the agent does."""
        digest, old = hashlib.sha256(code).hexdigest(), self.uploads.get(keyword)
        store = CodeStore(self.folder / "code")
        store.add(code, digest)
        store.mark_proven(digest, FILTER_CODE)
        new = Upload(keyword, NBDKIT, "", "", digest, len(code), reverse=reverse, info=info)
        if old is not None:
            new = replace(new, revision=old.revision + 1, revisions=(old.current, *old.revisions))
        self.uploads[keyword] = new

    def wanted(self, size=64 * MIB):
        """Return a volume over a new file of zeros."""
        key = str(uuid.uuid4())
        source = self.folder / f"{key}.img"
        with open(source, "wb") as file:
            file.truncate(size)
        connection = {"driver_volume_type": "local", "data": {"device_path": str(source)}}
        return VolumeAttachment(key, "acme", connection)

    def attach(self, **fields):
        return self.konnector.attach(replace(self.wanted(), **fields))[0]

    def leftovers(self):
        """Return the rest of volumes: folders, records, mounts, loop devices."""
        run = list((self.folder / "run").glob("*"))
        mounts = [line for line in Path("/proc/self/mounts").read_text().splitlines() if str(self.folder) in line]
        devices = [one for one in run if loop_devices.find(one / "mount" / "image")]
        return run + list((self.folder / "state").glob("*")) + mounts + devices


@pytest.fixture
def old_kernel(monkeypatch):
    """A kernel that does not repeat requests: a front is the client of each stack."""
    monkeypatch.setattr(volume, "is_supported", lambda built: False)


@pytest.fixture(params=["fuse", "nbdfuse"])
def data_path(request):
    """Each way to a block device, by its name."""
    if request.param == "nbdfuse":
        request.getfixturevalue("old_kernel")
    return request.param


@pytest.fixture
def machine(tmp_path_factory, built):
    if os.geteuid() != 0:
        pytest.skip("loop devices and mounts are root's")
    made = Machine(tmp_path_factory.mktemp("k"), built)  # sockets have short paths
    yield made
    for one in made.konnector.volumes():
        one.detach()
    assert made.leftovers() == []
