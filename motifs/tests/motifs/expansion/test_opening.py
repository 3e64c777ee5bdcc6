"""Expansions in threads: joined, failed, aborted, and with a fall-back."""

import logging
import threading
from itertools import pairwise, repeat

import pytest

from sluice_core.describe import MOTIF, ActionInfo
from sluice_core.errors import PeerError
from sluice_motifs.api import ExpansionError, Source, Template
from sluice_motifs.expansion import opening
from sluice_motifs.expansion.opening import ExpansionConfig, Observer
from sluice_motifs.expansion.turns import Turns
from sluice_motifs.runtime import Runtime
from sluice_motifs.storage.leases import LocalLeases
from sluice_motifs.storage.records import Motif, Record
from sluice_motifs.testing.memory_shim import MemoryShim

CONTENT = b"plain bytes of some length"


class Copy(Template):
    info = ActionInfo("copy", MOTIF, "its source")
    made = 0

    def sources(self, item):
        return [Source("source")]

    def expand(self, call):
        type(self).made += 1
        yield from call.read("source")


class Held(Copy):
    """Waits in the middle until the test lets it continue."""

    info = ActionInfo("held", MOTIF, "its source, later")
    begun = go_on = None

    def expand(self, call):
        type(self).made += 1
        content = b"".join(call.read("source"))
        yield content[:5]
        self.begun.set()
        self.go_on.wait()
        yield content[5:10]
        yield content[10:]


class Broken(Copy):
    info = ActionInfo("broken", MOTIF, "nothing")

    def expand(self, call):
        raise RuntimeError("a bug with a secret in it")


class Endless(Copy):
    info = ActionInfo("endless", MOTIF, "too much")

    def expand(self, call):
        return repeat(b"x" * 1000)


class Undeclared(Copy):
    info = ActionInfo("undeclared", MOTIF, "another item")

    def expand(self, call):
        yield from call.read("other")


class NoBytes(Copy):
    info = ActionInfo("no_bytes", MOTIF, "a text")

    def expand(self, call):
        yield "text"


TEMPLATES = {one.info.keyword: one for one in (Copy, Held, Broken, Endless, Undeclared, NoBytes)}


class Events(Observer):
    def __init__(self):
        self.gone = []

    def detached(self, view, motifs, sources):
        self.gone.append((view.name, [one.template for one in motifs], sources))


class Store:
    def __init__(self, leases=None, config=None):
        self.events = Events()
        self.shim = MemoryShim(self.read)
        self.leases = leases or LocalLeases()
        config = config or ExpansionConfig(observer=self.events)
        self.runtime = Runtime(self.shim, self.leases, TEMPLATES, config=config)
        self.shim.put("source", CONTENT)

    def read(self, name, chain=(), start=0, stop=None):
        opened = self.runtime.notify_open(name, chain)
        try:
            if opened.expansion is None:
                yield from self.shim.own_bytes(opened.view)
            else:
                yield from opened.read(start, stop)
        finally:
            self.runtime.notify_close(opened)

    def contracted(self, *keywords, content=CONTENT):
        """A contracted item with these motifs."""
        version = self.shim.view("source").plain.version
        record = Record(tuple(map(Motif, keywords)), {"source": version})
        self.shim.put("item", content, record)
        assert self.shim.contract(self.shim.view("item"), record)


@pytest.fixture
def store():
    for template in TEMPLATES.values():
        template.made = 0
    Held.begun, Held.go_on = threading.Event(), threading.Event()
    return Store()


@pytest.mark.parametrize(("needed", "looks"), [(True, 1), (False, 2)])
def test_who_knows_that_bytes_are_gone_has_the_item_looked_at_once(store, monkeypatch, needed, looks):
    store.contracted("copy")
    seen, view = [], store.shim.view
    monkeypatch.setattr(store.shim, "view", lambda name: seen.append(name) or view(name))
    opened = store.runtime.notify_open("item", needed=needed)
    before = seen.count("item")
    assert b"".join(opened.read()) == CONTENT
    store.runtime.notify_close(opened)
    assert before == looks


def test_who_believes_that_bytes_are_gone_finds_them(store):
    store.shim.put("item", CONTENT)
    assert store.runtime.notify_open("item", needed=True).expansion is None
    assert store.leases.acquire("item") is not None, "the lease is given back"


def test_sources_that_the_opener_knows_are_looked_at_with_the_item(store, monkeypatch):
    store.contracted("copy")
    looks, view_all = [], store.shim.view_all
    monkeypatch.setattr(store.shim, "view_all", lambda names: looks.append(tuple(names)) or view_all(names))
    opened = store.runtime.notify_open("item", needed=True, sources=("source",))
    before = list(filter(None, looks))
    assert b"".join(opened.read()) == CONTENT
    store.runtime.notify_close(opened)
    assert before == [("item", "source")]


def test_many_readers_share_one_expansion(store):
    store.contracted("held")
    found = []
    readers = [
        threading.Thread(target=lambda: found.append(b"".join(store.read("item"))), daemon=True) for _ in range(20)
    ]
    for reader in readers:
        reader.start()
    Held.begun.wait()
    Held.go_on.set()
    for reader in readers:
        reader.join()
    assert found == [CONTENT] * 20
    assert Held.made == 1


def test_a_range_is_answered_before_the_rest_is_made(store):
    store.contracted("held")
    assert b"".join(store.read("item", start=1, stop=5)) == CONTENT[1:5]
    assert store.shim.stored("item") is None
    Held.go_on.set()
    store.runtime.expand("item")
    assert store.shim.stored("item") == CONTENT


def test_a_reader_after_a_change_of_the_source_does_not_join(store):
    store.contracted("held")
    old = store.read("item")
    next(old)
    store.shim.put("source", b"new bytes of another length")
    found = []
    reader = threading.Thread(target=lambda: found.append(b"".join(store.read("item"))), daemon=True)
    reader.start()
    Held.go_on.set()
    reader.join()
    assert found == [b"new bytes of another length"]
    assert b"".join(old) == CONTENT[5:]


@pytest.mark.parametrize(
    ("keyword", "reason"),
    [
        ("broken", "the template failed"),
        ("endless", "more than the 26 bytes that it had were made"),
        ("undeclared", "reads `other`, which is none of its sources"),
        ("no_bytes", "a piece of type `str`, expected bytes"),
        ("unknown", "no template `unknown` is installed"),
    ],
)
def test_a_failure_is_told_without_its_traceback_and_the_item_stays(store, keyword, reason):
    store.contracted(keyword)
    with pytest.raises(ExpansionError, match=reason) as caught:
        list(store.read("item"))
    assert "secret" not in str(caught.value)
    assert store.shim.view("item").contracted


def test_a_fault_of_a_template_is_logged(store, caplog):
    store.contracted("broken")
    with caplog.at_level(logging.ERROR), pytest.raises(ExpansionError):
        list(store.read("item"))
    assert "a bug with a secret in it" in caplog.text


def test_other_bytes_than_before_are_stored_nowhere_and_no_reader_takes_them_for_whole(store):
    store.contracted("copy", content=b"PLAIN BYTES OF SOME LENGTH")
    with pytest.raises(ExpansionError, match="other bytes than it had were made"):
        list(store.read("item"))
    assert store.shim.stored("item") is None


def test_another_motif_is_tried_when_the_first_one_fails(store):
    store.contracted("broken", "copy")
    assert b"".join(store.read("item")) == CONTENT


def test_a_changed_source_gives_new_content_in_a_new_version(store):
    store.contracted("copy")
    before = store.shim.view("item").plain
    store.shim.put("source", b"new")
    assert b"".join(store.read("item")) == b"new"
    store.runtime.expand("item")
    after = store.shim.view("item")
    assert (after.plain.size, after.contracted) == (3, False)
    assert after.plain.version != before.version


def test_a_motif_whose_source_is_gone_is_detached_while_the_bytes_are_there(store):
    store.shim.put("item", CONTENT)
    store.runtime.attach_motif("item", Motif("copy"))
    store.shim.delete("source")
    assert b"".join(store.read("item")) == CONTENT
    assert store.events.gone == [("item", ["copy"], {"source"})]
    assert store.shim.view("item").record == Record()


def test_a_hanging_template_is_given_up_and_the_item_can_be_made_by_somebody_else(store):
    store = Store(config=ExpansionConfig(stalled=0.01))
    store.contracted("held")
    reader = store.read("item")
    next(reader)
    with pytest.raises(ExpansionError, match="no byte was made"):
        next(reader)
    Held.go_on.set()  # it ends now: its next piece is refused
    store.leases = store.runtime._openings._leases = LocalLeases()
    assert b"".join(store.read("item")) == CONTENT


def test_an_expansion_goes_on_without_leases(store):
    class Away(LocalLeases):
        def acquire(self, item):
            raise PeerError("the store of leases is away")

    store = Store(leases=Away())
    store.contracted("copy")
    assert b"".join(store.read("item")) == CONTENT


def test_bytes_that_cannot_be_stored_reach_their_readers(store, monkeypatch):
    def full(seen, record, pieces):
        next(pieces)
        raise PeerError("the storage is full")

    monkeypatch.setattr(store.shim, "expand", full)
    store.contracted("copy")
    assert b"".join(store.read("item")) == CONTENT
    assert store.shim.view("item").contracted


def test_a_long_expansion_renews_its_lease_and_ends_at_its_limit(monkeypatch):
    now = [0.0]
    renewed = []

    class Counted(LocalLeases):
        def renew(self, lease):
            renewed.append(now[0])
            return super().renew(lease)

    class Slow(Copy):
        info = ActionInfo("copy", MOTIF, "slowly")

        def expand(self, call):
            while True:
                now[0] += 5
                call.check()

    monkeypatch.setitem(TEMPLATES, "copy", Slow)
    store = Store(Counted(clock=lambda: now[0]), ExpansionConfig(clock=lambda: now[0]))
    store.contracted("copy")
    with pytest.raises(ExpansionError, match="was not made within 3600 s"):
        list(store.read("item"))
    assert len(renewed) >= opening.LONGEST / 10
    assert all(later - earlier < 10 for earlier, later in pairwise(renewed))


def test_expansions_take_turns(store):
    turns = Turns(1, lambda name: "tenant")
    store = Store(config=ExpansionConfig(turns=turns))
    store.contracted("held")
    first = store.read("item")
    next(first)
    record = store.shim.view("item").record
    store.shim.put("second", CONTENT, record)
    store.shim.contract(store.shim.view("second"), record)
    with pytest.raises(ExpansionError, match="too many others are being made"):
        store.runtime._openings.open("second", patience=0.0)
    Held.go_on.set()
    assert b"".join(first) == CONTENT[5:]
    assert turns.acquire("another", 10.0)
