"""The storage in memory that stands for Swift keeps the contract of shims."""

import pytest

from sluice_motifs.expansion.opening import Openings
from sluice_motifs.storage.leases import LocalLeases
from sluice_motifs.testing.memory_shim import MemoryShim
from sluice_motifs.testing.shim_suite import ShiftedCopy, ShimContract


class MemoryStorage:
    def __init__(self):
        self.shim = MemoryShim(front_door=self.read)
        self._openings = Openings(self.shim, LocalLeases(), {ShiftedCopy.info.keyword: ShiftedCopy})

    def read(self, name, chain):
        opened = self._openings.open(name, chain)
        yield from self.shim.own_bytes(opened.view) if opened.expansion is None else opened.read()
        opened.close()

    def put(self, name, content):
        self.shim.put(name, content)

    def delete(self, name):
        self.shim.delete(name)

    def attach(self, name, record):
        assert self.shim.annotate(self.shim.view(name), record)


class TestMemoryShim(ShimContract):
    placement = "cold"

    @pytest.fixture
    def storage(self):
        return MemoryStorage()
