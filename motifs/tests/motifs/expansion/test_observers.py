"""Events of expansions."""

import pytest

from sluice_motifs.api import SourceGone
from sluice_motifs.expansion.opening import EventObserver, ExpansionConfig
from sluice_motifs.runtime import Runtime
from sluice_motifs.storage.leases import LocalLeases
from sluice_motifs.templates.concat import Concat
from sluice_motifs.testing.memory_shim import MemoryShim


class Unsteady(Concat):
    """Makes other bytes than before, if the test sets that."""

    extra = b""

    def expand(self, call):
        yield from super().expand(call)
        yield self.extra


@pytest.fixture
def told():
    return []


@pytest.fixture
def storage(told):
    shim = MemoryShim(lambda name, chain: shim.own_bytes(shim.view(name)))
    observer = EventObserver(lambda *event: told.append(event))
    config = ExpansionConfig(spawn=lambda work: work(), observer=observer)
    runtime = Runtime(shim, LocalLeases(), {"concat": Unsteady}, config=config)
    for name in ("source", "item"):
        shim.put(name, b"abc")
    runtime.attach_motif("item", runtime.create_motif("concat", {"of": "source"}))
    return shim, runtime


def test_a_motif_whose_source_is_gone_is_told_of(storage, told):
    shim, runtime = storage
    shim.delete("source")
    runtime.notify_close(runtime.notify_open("item"))
    assert told == [("motif_detached", "item", "`concat` of `item` is detached: `source` does not exist any more")]


def test_bytes_that_come_out_otherwise_are_told_of_and_what_is_away_is_not(storage, told, monkeypatch):
    _, runtime = storage
    assert runtime.contract("item", "trust") == "contracted"
    monkeypatch.setattr(Unsteady, "expand", lambda self, call: iter([b"abd"]))
    with pytest.raises(Exception, match="other bytes than it had"):
        runtime.expand("item")
    ((kind, subject, text),) = told
    assert (kind, subject) == ("motif_mismatch", "item")
    assert "other bytes than it had were made" in text

    def gone(self, call):
        raise SourceGone("source")
        yield

    monkeypatch.setattr(Unsteady, "expand", gone)
    with pytest.raises(Exception, match="cannot be made again"):
        runtime.expand("item")
    assert len(told) == 1
