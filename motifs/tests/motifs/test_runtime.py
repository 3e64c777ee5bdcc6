import hashlib

import pytest

from sluice_core.errors import CallerError, NotFound
from sluice_filters.api import BadParameter
from sluice_motifs.api import NotContractible
from sluice_motifs.contraction.contractor import CONTRACTED
from sluice_motifs.contraction.preparation import EXPAND, TRUST
from sluice_motifs.expansion.opening import ExpansionConfig
from sluice_motifs.runtime import Runtime
from sluice_motifs.storage.leases import HeldLeases, LocalLeases
from sluice_motifs.storage.records import Motif
from sluice_motifs.templates.compressed import Compressed
from sluice_motifs.templates.registry import load_templates
from sluice_motifs.testing.memory_shim import MemoryShim
from sluice_motifs.testing.template_suite import CallOfTest

TEXT = b"a line of a log\n" * 1000
ETAG, EMPTY_ETAG = (hashlib.md5(one).hexdigest() for one in (TEXT, b""))


class Store:
    def __init__(self):
        self.shim = MemoryShim(self.read)
        self.runtime = self.restarted()

    def restarted(self):
        return Runtime(self.shim, LocalLeases(), load_templates())

    def read(self, name, chain=()):
        opened = self.runtime.notify_open(name, chain)
        try:
            yield from self.shim.own_bytes(opened.view) if opened.expansion is None else opened.read()
        finally:
            self.runtime.notify_close(opened)

    def attach(self, name, template, **params):
        self.runtime.attach_motif(name, self.runtime.create_motif(template, params))


@pytest.fixture
def store():
    store = Store()
    for name in ("a", "b"):
        store.shim.put(name, TEXT)
    store.shim.put("c", b"")
    return store


@pytest.mark.parametrize(
    ("template", "params", "error", "reason"),
    [
        ("duplicate", {}, NotFound, "unknown template `duplicate`, did you mean `duplicate_of`"),
        ("concat", {}, BadParameter, "motif `concat` needs parameter `of`"),
        ("concat", {"of": "a", "off": "b"}, BadParameter, "motif `concat` has no parameter `off`"),
        ("compressed", {"source": "a", "engine": "rar"}, BadParameter, "expected one of gzip, zstd"),
        ("concat", {"of": "a", "versions": "7"}, CallerError, "`versions` has `7`, expected the ETag of each source"),
        ("duplicate_of", {"source": "a", "versions": ETAG}, CallerError, "template `duplicate_of` takes no `versions`"),
    ],
)
def test_a_motif_that_cannot_be_is_refused(store, template, params, error, reason):
    with pytest.raises(error, match=reason):
        store.runtime.create_motif(template, params)


@pytest.mark.parametrize(
    ("name", "params", "error", "reason"),
    [
        ("none", {"of": "a"}, NotFound, "there is no item `none`"),
        ("b", {"of": "none"}, NotFound, "source `none` does not exist"),
        ("b", {"of": "a,b"}, CallerError, "`b` would be made from itself"),
        ("b", {"of": ",".join(f"s{n}" for n in range(33))}, CallerError, "33 sources, expected at most 32"),
        ("b", {"of": "a,c", "versions": ETAG}, CallerError, "`versions` has 1 ETags, expected 2, one for each source"),
    ],
)
def test_a_motif_that_does_not_fit_an_item_is_not_attached(store, name, params, error, reason):
    with pytest.raises(error, match=reason):
        store.attach(name, "concat", **params)


@pytest.mark.parametrize("written", [str, str.upper, '"{}"'.format], ids=["bare", "upper case", "quoted"])
def test_an_item_that_was_made_from_the_sources_as_they_are_is_up_to_date(store, written):
    store.attach("b", "concat", of="a,c,a", versions=", ".join(map(written, (ETAG, EMPTY_ETAG, ETAG))))
    view = store.shim.view("b")
    assert view.record.motifs[0].params == {"of": "a,c,a"}
    assert view.record.made_from == {name: store.shim.view(name).plain.version for name in ("a", "c")}
    assert b"".join(store.read("b")) == TEXT


@pytest.mark.parametrize(
    "versions", [(EMPTY_ETAG, EMPTY_ETAG, ETAG), (ETAG, EMPTY_ETAG, EMPTY_ETAG), (ETAG, ETAG, ETAG)]
)
def test_an_item_that_was_made_from_others_is_made_anew(store, versions):
    store.attach("b", "concat", of="a,c,a", versions=",".join(versions))
    store.runtime.expand("b")
    assert b"".join(store.read("b")) == TEXT + TEXT
    assert store.shim.view("b").record.made_from["a"] == store.shim.view("a").plain.version


def test_an_item_is_out_of_date_with_what_its_source_is_derived_from(store):
    store.shim.put("d", TEXT)
    store.attach("b", "concat", of="a")
    store.attach("d", "concat", of="b")
    store.shim.put("a", b"new")
    assert b"".join(store.read("d")) == b"new"


def test_an_item_is_out_of_date_although_another_motif_of_it_was_up_to_date(store):
    store.attach("b", "compressed", source="a")
    store.attach("b", "concat", of="a", versions=EMPTY_ETAG)
    assert store.shim.view("b").record.made_from == {"a": "another"}


def test_an_item_is_contracted_read_and_there_again(store):
    store.attach("b", "duplicate_of", source="a")
    assert store.runtime.contract("b") == CONTRACTED
    assert not store.runtime.statistics("b").expanded
    assert b"".join(store.read("b")) == TEXT
    store.runtime.expand("b")
    known = store.runtime.statistics("b")
    assert (known.size, known.expanded, known.opens) == (len(TEXT), True, 1)
    assert known.expansion_seconds > 0


def test_a_motif_that_was_shown_to_make_the_bytes_is_tried_before_one_that_was_not(store):
    store.shim.put("other", bytes(len(TEXT)))
    store.shim.put("d", TEXT + TEXT)
    store.attach("d", "concat", of="other,b")  # makes as many bytes, and passes on the first ones
    store.attach("d", "concat", of="a,b")
    assert store.runtime.contract("d") == CONTRACTED
    assert [one.proven for one in store.shim.view("d").record.motifs] == [False, True]
    assert b"".join(store.read("d")) == TEXT + TEXT


def test_an_empty_item_is_contracted_only_for_a_motif_that_makes_new_content(store):
    store.shim.put("empty", b"")
    store.attach("empty", "derive", of="a", filter="csv_sort")
    with pytest.raises(NotContractible, match="it is empty"):
        store.runtime.contract("empty", TRUST)
    assert "it is empty" in store.runtime.obstacle("empty")
    store.shim.put("empty", b"")
    store.attach("empty", "derive", of="a", filter="compression")
    assert store.runtime.contract("empty", TRUST) == CONTRACTED
    assert b"".join(store.read("empty")) != b""


@pytest.mark.parametrize("engine", ["gzip", "zstd"])
def test_either_half_of_a_circular_pair_gives_up_its_bytes(store, engine):
    store.attach("a", "decompressed", source="b", engine=engine)
    packed = Compressed({"source": "a", "engine": engine})
    store.shim.put("b", b"".join(packed.expand(CallOfTest("b", {"a": TEXT}, 0, 4))))
    store.attach("b", "compressed", source="a", engine=engine)
    for name in ("a", "b"):
        before = b"".join(store.read(name))
        assert store.runtime.contract(name, EXPAND) == CONTRACTED
        assert b"".join(store.read(name)) == before
        store.runtime.expand(name)


def test_detaching_makes_the_bytes_first(store):
    store.attach("b", "duplicate_of", source="a")
    store.runtime.contract("b")
    store.runtime.detach_motif("b", Motif("duplicate_of", {"source": "a"}))
    assert store.shim.stored("b") == TEXT
    assert store.shim.view("b").record.motifs == ()
    with pytest.raises(NotFound, match="nothing is known of an item `b`"):
        store.runtime.statistics("b")


def test_a_restart_knows_items(store):
    store.attach("b", "duplicate_of", source="a")
    store.runtime.contract("b")
    store.runtime = store.restarted()
    assert store.runtime.restart() == 2  # both share a copy
    assert not store.runtime.statistics("b").expanded


def test_two_items_are_not_derived_from_each_other(store):
    store.attach("a", "concat", of="b")
    with pytest.raises(CallerError, match="`b` would be made from itself, through `a`"):
        store.attach("b", "compressed", source="a")
    store.attach("b", "decompressed", source="a")


def test_a_longer_chain_than_is_expanded_is_not_attached(store):
    for number in range(9):
        store.shim.put(f"i{number}", TEXT)
    store.attach("i0", "concat", of="a")
    for number in range(1, 8):
        store.attach(f"i{number}", "concat", of=f"i{number - 1}")
    with pytest.raises(CallerError, match="`i8` would be made through more than 8 others"):
        store.attach("i8", "concat", of="i7")


def test_motifs_are_attached_and_detached_once_nobody_else_works_at_the_item():
    shim, leases, others = MemoryShim(lambda name, chain: iter(())), LocalLeases(), []

    def pause(seconds):
        others.pop().__exit__(None, None, None)

    def held_by_another():
        others.append(HeldLeases(leases))
        assert others[0].acquire({"a"})

    runtime = Runtime(shim, leases, load_templates(), config=ExpansionConfig(pause=pause))
    for name in ("a", "b"):
        shim.put(name, TEXT)
    motif = runtime.create_motif("concat", {"of": "b"})
    held_by_another()
    runtime.attach_motif("a", motif)
    assert shim.view("a").record.motifs == (motif,)
    held_by_another()
    runtime.detach_motif("a", motif)
    assert shim.view("a").record.motifs == ()
    assert others == []
