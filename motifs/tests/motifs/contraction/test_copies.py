"""Items whose bytes are in hidden copies while they are contracted."""

import pytest

from sluice_core.errors import PeerError
from sluice_motifs.api import COPY, NotContractible
from sluice_motifs.contraction.contractor import BUSY, CONTRACTED
from sluice_motifs.contraction.copies import GRACE, CopySweeper
from sluice_motifs.contraction.preparation import EXPAND, TRUST
from sluice_motifs.expansion.opening import ExpansionConfig
from sluice_motifs.runtime import Runtime
from sluice_motifs.storage.leases import LocalLeases
from sluice_motifs.storage.records import Motif, Record
from sluice_motifs.templates.compressed import Compressed
from sluice_motifs.templates.derive import Derive
from sluice_motifs.templates.registry import load_templates
from sluice_motifs.testing.memory_shim import MemoryShim
from sluice_motifs.testing.template_suite import CallOfTest

TEXT = b"a line of a log\n" * 100
COLD = Motif("tier", {"policy": "cold"})
TWIN = Motif("duplicate_of", {"source": "b"})


class Unpredictable(Derive):
    """Makes other bytes than before."""

    exact = False

    def expand(self, call):
        yield b"other bytes"


class Store:
    def __init__(self):
        self.now = 0.0
        self.shim = MemoryShim(self.read, clock=lambda: self.now)
        self.templates = {**load_templates(), "derive": Unpredictable}
        self.sharers = True
        self.runtime = Runtime(
            self.shim,
            LocalLeases(),
            self.templates,
            config=ExpansionConfig(clock=lambda: self.now),
            may_share=lambda motif, other: self.sharers,
        )
        self.sweeper = CopySweeper(self.shim.copies)

    def read(self, name, chain=()):
        opened = self.runtime.notify_open(name, chain)
        try:
            yield from self.shim.own_bytes(opened.view) if opened.expansion is None else opened.read()
        finally:
            self.runtime.notify_close(opened)

    def sweep_later(self):
        """Sweep twice when all copies and references are old: references first, then copies."""
        self.now += GRACE
        return self.sweeper.sweep() + self.sweeper.sweep()

    @property
    def copies(self):
        return [one.name for one in self.shim.copies.scan()]


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


def test_the_copy_of_an_item_that_was_expanded_serves_again_however_old_it_is(store):
    store.runtime.contract("a")
    before = store.copies, store.shim.view(store.copies[0]).plain.version
    store.runtime.expand("a")
    assert store.shim.stored("a") == TEXT
    assert store.sweep_later() == 0
    assert store.runtime.contract("a") == CONTRACTED
    assert (store.copies, store.shim.view(store.copies[0]).plain.version) == before


def test_a_copy_that_was_lost_is_made_again_while_the_bytes_are_there(store):
    store.runtime.contract("a")
    store.runtime.expand("a")
    store.shim.delete(store.copies[0])
    store.runtime.notify_close(store.runtime.notify_open("a"))
    assert len(store.shim.view("a").record.motifs) == 1
    assert store.runtime.contract("a") == CONTRACTED
    assert b"".join(store.read("a")) == TEXT


def test_a_place_that_is_unknown_keeps_the_bytes(store, monkeypatch):
    def refuse(item, placement, digest):
        raise PeerError(f"no storage policy `{placement}`")

    monkeypatch.setattr(store.shim.copies, "name", refuse)
    with pytest.raises(NotContractible, match="`tier`: no copy can be kept: no storage policy `cold`"):
        store.runtime.contract("a")
    assert store.shim.stored("a") == TEXT


def test_no_copy_is_made_of_what_another_motif_makes(store):
    store.shim.put("b", TEXT)
    version = store.shim.view("b").plain.version
    store.shim.put("a", TEXT, Record((COLD, Motif("concat", {"of": "b"})), {"b": version}))
    assert store.runtime.contract("a") == CONTRACTED
    assert store.copies == []


def test_what_no_other_motif_makes_is_kept_as_a_copy(store):
    store.shim.put("b", b"other bytes of the same client")
    version = store.shim.view("b").plain.version
    store.shim.put("a", TEXT, Record((COLD, Motif("concat", {"of": "b"})), {"b": version}))
    assert store.runtime.contract("a") == CONTRACTED
    assert b"".join(store.read("a")) == TEXT


def test_an_item_and_its_duplicate_give_up_their_bytes_to_one_copy(store):
    store.shim.put("b", TEXT)
    store.shim.put("a", TEXT, Record((TWIN,)))
    assert store.runtime.contract("a") == CONTRACTED
    assert (store.shim.stored("a"), store.shim.stored("b"), len(store.copies)) == (None, None, 1)
    assert b"".join(store.read("b")) == b"".join(store.read("a")) == TEXT


@pytest.mark.parametrize("change", ["other bytes", "gone", "not allowed"])
def test_a_duplicate_keeps_its_bytes_whatever_becomes_of_its_source(store, change):
    store.shim.put("b", TEXT if change == "not allowed" else b"other bytes")
    store.sharers = change != "not allowed"
    store.shim.put("a", TEXT, Record((TWIN,)))
    if change == "gone":
        store.shim.delete("b")
    assert store.runtime.contract("a") == CONTRACTED
    assert change == "gone" or store.shim.stored("b") is not None
    assert b"".join(store.read("a")) == TEXT


@pytest.mark.parametrize("packed_by_client", [True, False])
def test_a_compressed_twin_shares_the_copy_if_it_makes_the_item(store, packed_by_client):
    packed = b"".join(Compressed({"source": "a", "level": 9}).expand(CallOfTest("b", {"a": TEXT}, 0, 4)))
    store.shim.put("b", packed if packed_by_client else b"nothing compressed")
    store.shim.put("a", TEXT, Record((Motif("decompressed", {"source": "b"}),)))
    assert store.runtime.contract("a") == CONTRACTED
    assert (store.shim.stored("b") is None) == packed_by_client
    assert len(store.copies) == 1
    assert b"".join(store.read("a")) == TEXT


def test_a_copy_of_a_contracted_item_stands_on_the_same_bytes(store):
    store.runtime.contract("a")
    with store.runtime.copying("a", "b") as seen:
        store.shim.copy(seen, "b")
    store.shim.delete("a")
    assert store.sweep_later() == 0
    assert b"".join(store.read("b")) == TEXT


def test_copies_go_when_no_item_refers_to_them(store):
    store.runtime.contract("a")
    assert store.sweep_later() == 0
    store.shim.put("a", b"new", Record((COLD,)))
    assert store.runtime.contract("a") == CONTRACTED
    assert len(store.copies) == 2
    assert store.sweep_later() == 1
    assert b"".join(store.read("a")) == b"new"
    store.shim.delete("a")
    assert (store.sweep_later(), store.copies) == (1, [])


def test_young_copies_stay(store):
    store.runtime.contract("a")
    store.shim.delete("a")
    assert store.sweeper.sweep() == 0
    store.now += GRACE - 1
    assert store.sweeper.sweep() == 0
    assert len(store.copies) == 1


def test_a_young_reference_stays_although_its_item_is_gone(store):
    store.runtime.contract("a")
    store.runtime.expand("a")
    store.now += GRACE
    store.runtime.contract("a")  # to the same copy, which is old
    store.shim.delete("a")
    assert store.sweeper.sweep() + store.sweeper.sweep() == 0
    store.now += GRACE
    assert store.sweeper.sweep() + store.sweeper.sweep() == 1


def test_a_copy_that_is_not_young_is_stored_again_for_another_item(store):
    store.runtime.contract("a")
    store.shim.delete("a")
    store.now += GRACE / 2
    store.shim.put("c", TEXT, Record((COLD,)))
    assert store.runtime.contract("c") == CONTRACTED
    store.now += GRACE / 2
    assert store.sweeper.sweep() == 0
    assert b"".join(store.read("c")) == TEXT


def test_a_contraction_that_takes_too_long_keeps_the_bytes(store, monkeypatch):
    refer = store.shim.copies.refer

    def slow(*arguments):
        refer(*arguments)
        store.now += GRACE / 4 + 1

    monkeypatch.setattr(store.shim.copies, "refer", slow)
    assert store.runtime.contract("a") == BUSY
    assert store.shim.stored("a") == TEXT


def test_a_copy_that_was_stored_again_since_it_was_seen_stays(store):
    store.runtime.contract("a")
    store.now += GRACE
    (seen,) = store.shim.copies.scan()
    store.shim.copies.store(seen.name, store.shim.view("a"), store.shim.view("a").plain, iter([TEXT]))
    store.shim.copies.delete(seen)
    assert b"".join(store.read("a")) == TEXT


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
