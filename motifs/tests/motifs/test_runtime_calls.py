"""The calls of the API, on a runtime over a storage in memory."""

import pytest

from sluice_core.errors import CallerError, NotFound, PeerError
from sluice_core.messages.elasticity import POLICIES, VERIFICATIONS
from sluice_motif_control.messages import MotifDaemon
from sluice_motifs.contraction import preparation
from sluice_motifs.replacement.registry import BUILT_IN
from sluice_motifs.runtime import Runtime
from sluice_motifs.runtime_calls import RuntimeCalls, described_templates
from sluice_motifs.storage.leases import LocalLeases
from sluice_motifs.templates.registry import load_templates
from sluice_motifs.testing.memory_shim import MemoryShim


class Storage:
    def __init__(self):
        self.shim = MemoryShim(self.read)
        self.runtime = Runtime(self.shim, LocalLeases(), load_templates())
        self.suspended = ""
        self.calls = RuntimeCalls(self.runtime, self.shim, lambda: self.suspended)

    def read(self, name, chain=()):
        opened = self.runtime.notify_open(name, chain)
        try:
            yield from self.shim.own_bytes(opened.view) if opened.expansion is None else opened.read()
        finally:
            self.runtime.notify_close(opened)


@pytest.fixture
def storage():
    storage = Storage()
    for name in ("a/c/one", "a/c/two"):
        storage.shim.put(name, b"x" * 100)
    storage.calls.attach("a/c/two", "concat", {"of": "a/c/one"}, "AUTH_a")
    return storage


def test_an_item_is_shown_contracted_and_made_again(storage):
    calls = storage.calls
    assert calls.show("a/c/two") == {
        "item": "a/c/two", "size": 100, "contracted": False, "opens": 0, "expansion_seconds": 0.0,
        "motifs": [{"template": "concat", "params": {"of": "a/c/one"}, "attached_by": "AUTH_a"}],
        "sources": ["a/c/one"],
    }  # fmt: skip
    assert calls.contract("a/c/two", "trust")["outcome"] == "contracted"
    with pytest.raises(PeerError, match="a scan of the storage has not ended"):
        list(calls.contracted("a/c/"))
    storage.runtime.restart()
    assert list(calls.contracted("a/c/")) == [("a/c/two", 100)]
    assert list(calls.contracted("b/")) == []
    assert calls.why("a/c/two")["contracted"]
    assert not calls.expand("a/c/two")["contracted"]


def test_it_says_why_bytes_must_stay(storage):
    assert storage.calls.why("a/c/two")["contractible"]
    storage.suspended = "node `n2` does not know motifs"
    found = storage.calls.why("a/c/two")
    assert (found["contractible"], found["reasons"]) == (
        False, ["contraction is suspended: node `n2` does not know motifs"],
    )  # fmt: skip
    storage.suspended = ""
    storage.shim.pinned["a/c/two"] = "it is a manifest"
    assert storage.calls.why("a/c/two")["reasons"] == ["`a/c/two` is not contracted: it is a manifest"]


def test_nothing_is_contracted_while_somebody_does_not_know_motifs(storage):
    storage.suspended = "node `n2` does not know motifs"
    with pytest.raises(PeerError, match="suspended: node `n2` does not know motifs"):
        storage.calls.contract("a/c/two")
    assert not storage.calls.show("a/c/two")["contracted"]


@pytest.mark.parametrize(
    ("verb", "arguments", "error", "reason"),
    [
        ("show", ("a/c/none",), NotFound, "there is no object `a/c/none`"),
        ("detach", ("a/c/one",), NotFound, "`a/c/one` has no motif"),
        ("detach", ("a/c/two", "derive"), NotFound, "no motif of template `derive`"),
        ("contract", ("a/c/two", "guess"), CallerError, "verify is `guess`, expected one of trust, head, expand"),
        ("attach", ("a/c/one", "ulr", {}, ""), NotFound, "unknown template `ulr`"),
    ],
)
def test_what_cannot_be_is_refused(storage, verb, arguments, error, reason):
    with pytest.raises(error, match=reason):
        getattr(storage.calls, verb)(*arguments)


def test_items_are_listed_page_by_page(storage):
    for number in range(5):
        storage.shim.put(f"a/d/{number}", b"y")
        storage.calls.attach(f"a/d/{number}", "concat", {"of": "a/c/one"}, "")
    first = storage.calls.list_items("a/d/", limit=3)
    assert [one["item"] for one in first] == ["a/d/0", "a/d/1", "a/d/2"]
    assert [one["item"] for one in storage.calls.list_items("a/d/", "a/d/2", 3)] == ["a/d/3", "a/d/4"]
    assert len(storage.calls.list_items()) == 6
    storage.calls.detach("a/d/4")
    assert len(storage.calls.list_items()) == 5


def test_what_a_daemon_announces_of_templates_is_what_the_language_checks():
    templates = load_templates()
    sent = MotifDaemon("n/1", "n", templates=described_templates(templates))
    found = MotifDaemon.decode(sent.encode())
    assert {one.keyword: one.info for one in found.templates} == {word: kind.info for word, kind in templates.items()}


def test_the_words_of_the_language_are_those_of_the_runtime():
    assert {one.keyword for one in BUILT_IN} == set(POLICIES)
    assert preparation.VERIFICATIONS == VERIFICATIONS
