"""What may be contracted: chains, circular pairs and triples, depth, breadth, sources that change."""

import pytest

from sluice_core.describe import MOTIF, ActionInfo, Parameter
from sluice_core.errors import Conflict
from sluice_motifs.api import PRESERVING, ExpansionError, NotContractible, Source, Template, TooDeep
from sluice_motifs.contraction.contractor import BUSY, CONTRACTED, Contractor
from sluice_motifs.contraction.preparation import TRUST
from sluice_motifs.dependencies.source_changes import LocalDependents, SourceChanges
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
    """Items that all hold the same bytes."""

    def __init__(self):
        self.shim = MemoryShim()
        self.leases = LocalLeases()
        self.dependents = LocalDependents()
        self.contractor = Contractor(self.shim, self.leases, TEMPLATES, self.dependents)

    def items(self, **motifs):
        """Items by name, with sources: ``derived:a,b``; empty for none."""
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


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("derived:other", "it is derived from `other`"),
        ("varying:item", "it has other bytes when it is made again"),
    ],
)
def test_a_preserving_item_does_not_stand_on_what_changes_by_itself(store, source, reason):
    store.items(other="", item="kept:source", source=source)
    with pytest.raises(NotContractible, match=f"source `source` may change: {reason}"):
        store.contract("item")


def test_a_preserving_item_does_not_stand_on_what_expires(store):
    store.items(source="", item="kept:source")
    store.shim.unstable["source"] = "it expires"
    with pytest.raises(NotContractible, match="source `source` may change: it expires"):
        store.contract("item")


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


def test_a_source_is_changed_after_its_dependents_are_expanded(store):
    store.items(source="", item="kept:source")
    assert store.contract("item") == CONTRACTED
    expanded = []

    def expand(name):
        view = store.shim.view(name)
        expanded.append(name)
        store.shim.expand(view, view.record, iter([b"bytes"]))

    changes = SourceChanges(store.shim, store.leases, TEMPLATES, store.dependents, expand)
    with changes.changing("source"):
        assert expanded == ["item"]
        assert store.contract("item") == BUSY
        store.shim.put("source", b"other bytes")
    assert store.shim.stored("item") == b"bytes"


def test_a_source_stays_when_a_dependent_cannot_be_expanded(store):
    store.items(source="", item="kept:source")
    store.contract("item")

    def fail(name):
        raise ExpansionError("the disk is full")

    changes = SourceChanges(store.shim, store.leases, TEMPLATES, store.dependents, fail)
    with pytest.raises(Conflict, match="`source` is needed by `item`, which cannot be expanded: the disk is full"):
        changes.changing("source").__enter__()


def test_a_contracted_item_is_copied_only_if_the_copy_could_be_made_as_well(store):
    store.items(source="", item="kept:source", p="kept:z", z="derived:p")
    store.contract("item")
    with store.contractor.copying("item", "copy") as seen:
        store.shim.copy(seen, "copy")
    assert "copy" in store.dependents.find("source")
    store.contract("p")
    with pytest.raises(NotContractible, match="it is derived from `p`"), store.contractor.copying("p", "copy of p"):
        pass
