"""Items whose bytes lie in copies of their own while they are contracted."""

import pytest

from sluice_core.errors import PeerError
from sluice_motifs.api import COPY, NotContractible
from sluice_motifs.contraction.contractor import CONTRACTED
from sluice_motifs.contraction.copies import CopySweeper
from sluice_motifs.contraction.preparation import EXPAND, TRUST
from sluice_motifs.dependencies.source_changes import LocalDependents
from sluice_motifs.runtime import Runtime
from sluice_motifs.storage.leases import LocalLeases
from sluice_motifs.storage.records import Motif, Record
from sluice_motifs.templates.derive import Derive
from sluice_motifs.templates.registry import load_templates
from sluice_motifs.testing.memory_shim import MemoryShim

TEXT = b"a line of a log\n" * 100
COLD = Motif("tier", {"policy": "cold"})


class Unpredictable(Derive):
    """Makes other bytes than before."""

    exact = False

    def expand(self, call):
        yield b"other bytes"


class Store:
    def __init__(self):
        self.shim = MemoryShim(self.read)
        self.leases, self.dependents = LocalLeases(), LocalDependents()
        self.templates = {**load_templates(), "derive": Unpredictable}
        self.runtime = Runtime(self.shim, self.leases, self.dependents, self.templates)
        self.sweeper = CopySweeper(self.shim, self.leases, self.dependents, self.templates, grace=0.0)

    def read(self, name, chain=()):
        opened = self.runtime.notify_open(name, chain)
        try:
            yield from self.shim.own_bytes(opened.view) if opened.expansion is None else opened.read()
        finally:
            self.runtime.notify_close(opened)

    @property
    def copies(self):
        return [name for name, _ in self.shim.scan_copies()]


@pytest.fixture
def store():
    store = Store()
    store.shim.put("a", TEXT, Record((COLD,)))
    return store


@pytest.mark.parametrize("verify", [TRUST, EXPAND])
def test_a_copy_is_made_when_the_bytes_go(store, verify):
    assert store.runtime.contract("a", verify) == CONTRACTED
    assert store.shim.stored("a") is None
    (copy,) = store.copies
    assert store.shim.view("a").record.motifs[0].params == {"policy": "cold", COPY: copy}
    assert b"".join(store.read("a")) == TEXT


def test_the_copy_of_an_item_that_was_expanded_serves_again(store):
    store.runtime.contract("a")
    before = store.copies, store.shim.view(store.copies[0]).plain.version
    store.runtime.expand("a")
    assert store.shim.stored("a") == TEXT
    assert store.runtime.contract("a") == CONTRACTED
    assert (store.copies, store.shim.view(store.copies[0]).plain.version) == before


def test_a_copy_that_was_lost_is_made_again_while_the_bytes_are_there(store):
    store.runtime.contract("a")
    store.runtime.expand("a")
    store.shim.delete_copy(store.copies[0])
    store.runtime.notify_close(store.runtime.notify_open("a"))
    assert len(store.shim.view("a").record.motifs) == 1
    assert store.runtime.contract("a") == CONTRACTED
    assert b"".join(store.read("a")) == TEXT


def test_a_place_that_is_unknown_keeps_the_bytes(store, monkeypatch):
    def refuse(seen, placement, pieces):
        raise PeerError(f"no storage policy `{placement}`")

    monkeypatch.setattr(store.shim, "keep_copy", refuse)
    with pytest.raises(NotContractible, match="`tier`: no copy can be kept: no storage policy `cold`"):
        store.runtime.contract("a")
    assert store.shim.stored("a") == TEXT


def test_no_copy_is_made_of_what_another_motif_makes(store):
    store.shim.put("b", TEXT)
    version = store.shim.view("b").plain.version
    store.shim.put("a", TEXT, Record((COLD, Motif("duplicate_of", {"source": "b"})), {"b": version}))
    assert store.runtime.contract("a") == CONTRACTED
    assert store.copies == []


def test_a_copy_of_a_contracted_item_stands_on_the_same_bytes(store):
    store.runtime.contract("a")
    with store.runtime.copying("a", "b") as seen:
        store.shim.copy(seen, "b")
    store.shim.delete("a")
    assert store.sweeper.sweep() == 0
    assert b"".join(store.read("b")) == TEXT


def test_copies_go_when_no_item_names_them(store):
    store.runtime.contract("a")
    assert store.sweeper.sweep() == 0
    store.shim.put("a", b"new", Record((COLD,)))
    assert store.runtime.contract("a") == CONTRACTED
    assert len(store.copies) == 2
    assert store.sweeper.sweep() == 1
    assert b"".join(store.read("a")) == b"new"
    store.shim.delete("a")
    assert (store.sweeper.sweep(), store.copies) == (1, [])


def test_young_copies_and_those_being_worked_at_stay(store):
    store.runtime.contract("a")
    store.shim.delete("a")
    young = CopySweeper(store.shim, store.leases, store.dependents, store.templates)
    assert young.sweep() == 0
    store.leases.acquire(store.copies[0])
    assert store.sweeper.sweep() == 0


def test_new_content_has_no_copy_of_the_old_one(store):
    store.shim.put("source", b"1")
    version = store.shim.view("source").plain.version
    derive = Motif("derive", {"of": "source", "filter": "noop"})
    store.runtime.contract("a")
    seen = store.shim.view("a")
    store.shim.annotate(seen, Record((*seen.record.motifs, derive), {**seen.record.made_from, "source": version}))
    store.shim.put("source", b"2")
    assert b"".join(store.read("a")) == b"other bytes"
    assert COPY not in store.shim.view("a").record.motifs[0].params
