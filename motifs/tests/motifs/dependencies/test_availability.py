"""The items that may be contracted: chains, circular pairs and triples, depth, breadth, sources that change."""

import pytest

from sluice_core.describe import MOTIF, ActionInfo, Parameter
from sluice_motifs.api import PRESERVING, NotContractible, Source, Template, TooDeep
from sluice_motifs.contraction.contractor import BUSY, CONTRACTED, Contractor
from sluice_motifs.contraction.preparation import EXPAND, HEAD, TRUST
from sluice_motifs.storage.leases import LocalLeases
from sluice_motifs.storage.records import Motif, Record
from sluice_motifs.testing.memory_shim import MemoryShim


class Derived(Template):
    info = ActionInfo("derived", MOTIF, "from others", (Parameter("of", "list", "sources"),))

    def sources(self, item):
        return [Source(one) for one in self.params["of"].split(",")]

    def expand(self, call):
        for source in self.sources(call.item):
            yield from call.read(source.name)


class Kept(Derived):
    info = ActionInfo("kept", MOTIF, "the same as another", (Parameter("of", "list", "sources"),))
    relation = PRESERVING


class Varying(Derived):
    info = ActionInfo("varying", MOTIF, "from others", (Parameter("of", "list", "sources"),))
    exact = False


TEMPLATES = {one.info.keyword: one for one in (Derived, Kept, Varying)}


class Store:
    """Items that all have the same bytes."""

    def __init__(self):
        self.shim = MemoryShim()
        self.leases = LocalLeases()
        self.contractor = Contractor(self.shim, self.leases, TEMPLATES)

    def items(self, **motifs):
        """Items by name, with sources: ``derived:a,b``; empty without sources."""
        for name in motifs:
            self.shim.put(name, b"bytes")
        for name, text in motifs.items():
            keyword, _, of = text.partition(":")
            if keyword:
                views = [self.shim.view(source) for source in of.split(",")]
                made_from = {view.name: view.plain.version for view in views if view is not None}
                self.shim.annotate(self.shim.view(name), Record((Motif(keyword, {"of": of}),), made_from))

    def contract(self, name):
        return self.contractor.contract(name, TRUST)


@pytest.fixture
def store():
    return Store()


@pytest.mark.parametrize(
    "items",
    [{"a": "derived:b", "b": "derived:a"}, {"a": "derived:b", "b": "derived:c", "c": "derived:a"}],
    ids=["two", "three"],
)
def test_of_a_cycle_one_member_keeps_its_bytes(store, items):
    store.items(**items)
    *others, last = items
    for name in others:
        assert store.contract(name) == CONTRACTED
    with pytest.raises(NotContractible, match="would be needed to make itself"):
        store.contract(last)


def test_a_contraction_looks_once_at_each_item(store, monkeypatch):
    store.items(a="", b="", item="derived:a,b")
    seen, view = [], store.shim.view
    monkeypatch.setattr(store.shim, "view", lambda name: seen.append(name) or view(name))
    assert store.contract("item") == CONTRACTED
    assert sorted(seen) == ["a", "b", "item"]


def test_two_contractions_of_a_pair_at_once_leave_one(store, monkeypatch):
    store.items(a="derived:b", b="derived:a")
    contract = store.shim.contract
    outcomes = []

    def other_first(seen, record):
        monkeypatch.setattr(store.shim, "contract", contract)
        outcomes.append(store.contract("b"))
        return contract(seen, record)

    monkeypatch.setattr(store.shim, "contract", other_first)
    outcomes.append(store.contract("a"))
    assert outcomes == [BUSY, CONTRACTED]


def test_depth_is_bounded_with_a_reason(store):
    store.items(i0="", **{f"i{n}": f"derived:i{n - 1}" for n in range(1, 11)})
    for n in range(1, 9):
        assert store.contract(f"i{n}") == CONTRACTED
    with pytest.raises(TooDeep, match="more than 8 items would be made one from the other"):
        store.contract("i9")
    assert store.contract("i10") == CONTRACTED  # `i9` has its bytes


def test_a_preserving_item_does_not_stand_on_its_source(store):
    store.items(source="", item="kept:source")
    with pytest.raises(NotContractible, match="source `source` may change, and no copy is kept"):
        store.contract("item")


@pytest.mark.parametrize("verify", [HEAD, EXPAND])
def test_bytes_stay_that_the_motif_was_not_shown_to_make(store, verify):
    store.items(source="", item="derived:source")
    store.shim.front_door = lambda name, chain: iter([b"bytes"])
    store.shim.put("item", b"a lie", store.shim.view("item").record)
    with pytest.raises(NotContractible, match="other bytes than it had were made"):
        store.contractor.contract("item", verify)
    assert store.shim.stored("item") == b"a lie"


def test_a_proof_is_remembered(store):
    store.items(source="", item="derived:source")
    read = []
    store.shim.front_door = lambda name, chain: read.append(name) or iter([b"bytes"])
    assert store.contractor.contract("item") == CONTRACTED
    view = store.shim.view("item")
    assert view.record.motifs[0].proven
    store.shim.expand(view, view.record, iter([b"bytes"]))
    assert store.contractor.contract("item") == CONTRACTED
    assert read == ["source"]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("plain", "it has no motif"),
        ("lonely", "source `nothing` does not exist any more"),
        ("pinned", "it is a manifest"),
    ],
)
def test_what_cannot_be_made_again_keeps_its_bytes(store, name, reason):
    store.items(plain="", lonely="derived:nothing", pinned="derived:plain")
    store.shim.pinned["pinned"] = "it is a manifest"
    with pytest.raises(NotContractible, match=reason):
        store.contract(name)
    assert store.shim.stored(name) == b"bytes"
