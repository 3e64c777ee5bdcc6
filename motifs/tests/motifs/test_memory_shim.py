"""The storage in memory that replaces Swift keeps the contract of shims."""

from dataclasses import replace

import pytest

from sluice_motifs.expansion.opening import Openings
from sluice_motifs.storage.leases import LocalLeases
from sluice_motifs.storage.records import Motif, Record
from sluice_motifs.testing.memory_shim import MemoryShim
from sluice_motifs.testing.shim_suite import RECORD, ShiftedCopy, ShimContract, SweptCopiesContract, attached


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


class TestMemoryShim(ShimContract, SweptCopiesContract):
    placement = "cold"

    @pytest.fixture
    def storage(self):
        return MemoryStorage()


@pytest.mark.parametrize("record", [RECORD, replace(RECORD, made_from={"source": "1"})], ids=["as it was", "another"])
@pytest.mark.parametrize("contracted", [False, True], ids=["contract", "expand"])
def test_a_motif_that_a_client_posts_after_the_look_stays(contracted, record):
    storage = MemoryStorage()
    seen = attached(storage, "item", b"one", contracted)
    more = Motif("shifted_copy", {"of": "other"})
    storage.shim.post("item", "posted", more)
    if contracted:
        assert storage.shim.expand(seen, record, iter([b"one"]))
    else:
        assert storage.shim.contract(seen, record)
    assert storage.shim.view("item").record == Record((*RECORD.motifs, more), record.made_from)
    assert storage.shim.metadata("item") == "posted"
