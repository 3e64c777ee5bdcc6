"""Items derived from a changed item are contracted, and the items derived from these; others are checked on reads."""

import pytest

from sluice_core.errors import PeerError
from sluice_motifs.contraction.contractor import BUSY
from sluice_motifs.contraction.outdated import OutdatedContractor
from sluice_motifs.runtime import Runtime
from sluice_motifs.storage.leases import LocalLeases
from sluice_motifs.storage.records import Motif, Record
from sluice_motifs.templates.registry import load_templates
from sluice_motifs.testing.memory_shim import MemoryShim


class LocalDerivations:
    """Implements ``Derivations``."""

    def __init__(self):
        self.items = {}

    def find(self, sources):
        return [sorted(self.items.get(source, ())) for source in sources]

    def remove(self, source, items):
        self.items[source] -= set(items)


class Store:
    """A chain: ``doubled`` is made of ``a``, ``four`` of that; and ``kept`` has the bytes of ``b``."""

    def __init__(self):
        self.shim = MemoryShim(self.read)
        self.leases = LocalLeases()
        self.runtime = Runtime(self.shim, self.leases, load_templates())
        self.derivations = LocalDerivations()
        self.paused = []
        self.outdated = OutdatedContractor(
            self.shim, load_templates(), self.derivations, self.runtime.contract, self.paused.append
        )
        for name, content in (("a", b"12"), ("b", b"12"), ("doubled", b"1212"), ("four", b"12121212"), ("kept", b"12")):
            self.shim.put(name, content)
        self.attach("doubled", "concat", of="a,a")
        self.attach("four", "concat", of="doubled,doubled")
        self.attach("kept", "duplicate_of", source="b")

    def attach(self, name, template, **params):
        self.runtime.attach_motif(name, self.runtime.create_motif(template, params))
        for source in params.get("of", params.get("source")).split(","):
            self.derivations.items.setdefault(source, set()).add(name)

    def read(self, name, chain=()):
        opened = self.runtime.notify_open(name, chain)
        try:
            yield from self.shim.own_bytes(opened.view) if opened.expansion is None else opened.read()
        finally:
            self.runtime.notify_close(opened)

    def contracted(self):
        return [name for name in ("doubled", "four", "kept") if self.shim.view(name).contracted]


@pytest.fixture
def store():
    return Store()


def test_all_that_is_derived_from_a_changed_item_is_contracted(store):
    assert store.outdated.contract(["a", "b", "nothing"]) == 0
    assert store.contracted() == []
    store.shim.put("a", b"ab")
    assert store.outdated.contract(["a"]) == 2
    assert store.contracted() == ["doubled", "four"]
    assert not store.runtime.items.statistics("four").expanded
    assert store.outdated.contract(["a"]) == 0
    assert b"".join(store.read("four")) == b"abababab"


def test_an_item_that_was_changed_itself_is_looked_at(store):
    store.shim.put("a", b"ab")
    assert store.outdated.contract(["doubled", "a", "four"]) == 2
    assert store.contracted() == ["doubled", "four"]


def test_items_of_a_circle_are_looked_at_once(store):
    store.shim.put("x", b"12")
    store.shim.put("y", b"12")
    # a client cannot attach that, but two clients at the same time may
    for name, source in (("x", "y"), ("y", "x")):
        seen = store.shim.view(name)
        made_from = {source: store.shim.view(source).plain.version}
        store.shim.annotate(seen, Record((Motif("concat", {"of": source}),), made_from))
        store.derivations.items.setdefault(source, set()).add(name)
    store.shim.put("y", b"ab")
    assert store.outdated.contract(["y"]) == 1
    assert store.shim.view("x").contracted


def test_an_item_at_which_somebody_works_is_tried_again(store):
    store.shim.put("a", b"ab")
    lease, outcomes = store.leases.acquire("doubled"), []

    def contract(name):
        outcomes.append(store.runtime.contract(name))
        if outcomes[-1] == BUSY:
            store.leases.release(lease)
        return outcomes[-1]

    outdated = OutdatedContractor(store.shim, load_templates(), store.derivations, contract, store.paused.append)
    assert outdated.contract(["a"]) == 2
    assert outcomes[0] == BUSY
    assert len(store.paused) == 1


def test_what_must_keep_its_bytes_and_what_cannot_be_seen_stays(store, monkeypatch):
    store.shim.put("a", b"ab")
    store.shim.pinned["doubled"] = "contraction is suspended"
    view = store.shim.view

    def look(name):
        if name == "four":
            raise PeerError("away")
        return view(name)

    monkeypatch.setattr(store.shim, "view", look)
    assert store.outdated.contract(["a"]) == 0
    monkeypatch.undo()
    assert store.contracted() == []
    store.shim.pinned.clear()
    assert store.outdated.contract(["a"]) == 2


def test_what_is_not_derived_any_more_is_forgotten(store):
    store.shim.put("doubled", b"a client's own")
    store.shim.put("a", b"ab")
    assert store.outdated.contract(["a", "b"]) == 1  # four is derived from the item that the client wrote
    assert store.contracted() == ["four"]
    assert store.derivations.items == {"a": set(), "doubled": {"four"}, "b": set()}
    store.shim.delete("doubled")
    assert store.outdated.contract(["doubled"]) == 0
    assert store.derivations.items["doubled"] == set()
    assert b"".join(store.read("kept")) == b"12"
