"""Objects to which clients attach motifs are added to the table once they are written."""

import pytest
from tests.support.recordings.redis_answers import redis_away

from sluice_core.errors import CallerError, PeerError
from sluice_motifs.runtime import Runtime
from sluice_motifs.storage.leases import LocalLeases
from sluice_motifs.storage.records import Motif, Record
from sluice_motifs.testing.memory_shim import MemoryShim
from sluice_motifs_swift.scan import NewItems


def test_an_object_is_looked_at_until_it_is_there_with_its_motifs(monkeypatch):
    shim, found = MemoryShim(), []
    runtime = Runtime(shim, LocalLeases(), {})
    fresh = NewItems(runtime, shim, lambda name, record: found.append((name, record)))
    for name in ("soon", "late", "never"):
        fresh.note(name)
    record = Record((Motif("concat", {"of": "a"}),))
    shim.put("soon", b"123", record)
    fresh.scan_due(1.0)
    assert runtime.items.names() == ["soon"]
    shim.put("late", b"1234", record)
    view = shim.view
    monkeypatch.setattr(shim, "view", lambda name: (_ for _ in ()).throw(PeerError("away")))
    fresh.scan_due(3.0)
    assert runtime.items.names() == ["soon"]
    monkeypatch.setattr(shim, "view", view)
    fresh.scan_due(10.0)
    assert runtime.items.names() == ["late", "soon"]
    fresh.scan_due(1000.0)
    assert runtime.items.names() == ["late", "soon"]
    assert found == [("soon", record), ("late", record)]


def test_what_clients_changed_is_looked_at_once(monkeypatch):
    shim, found = MemoryShim(), []
    runtime = Runtime(shim, LocalLeases(), {})
    fresh = NewItems(runtime, shim, lambda name, record: found.append((name, record)))
    record = Record((Motif("concat", {"of": "a"}),))
    for name in ("bare", "gone", "kept", "unknown"):
        runtime.items.put(name, 3, True)
        fresh.note_change(name)
    shim.put("bare", b"123")
    shim.put("kept", b"12345", record)
    view = shim.view

    def look(name):
        if name == "unknown":
            raise PeerError("away")
        return view(name)

    monkeypatch.setattr(shim, "view", look)
    fresh.scan_due(1.0)
    assert runtime.items.names() == ["kept", "unknown"]
    assert runtime.items.statistics("kept").size == 5
    assert found == [("kept", record)]
    fresh.scan_due(1000.0)
    assert runtime.items.names() == ["kept", "unknown"]


def test_what_is_gone_without_notice_leaves_the_table_when_it_is_its_turn():
    shim = MemoryShim()
    runtime = Runtime(shim, LocalLeases(), {})
    runtime.items.put("gone", 3, True)
    shim.put("bare", b"123")
    runtime.items.put("bare", 3, True)
    for name in ("gone", "bare"):
        with pytest.raises(CallerError, match=name):
            runtime.contract(name, "trust")
    assert runtime.items.names() == []


def test_what_cannot_be_noted_is_in_the_table_and_noted_later():
    shim, found = MemoryShim(), []
    runtime = Runtime(shim, LocalLeases(), {})

    def note(name, record):
        found.append(name)
        if len(found) == 1:
            raise redis_away()

    fresh = NewItems(runtime, shim, note)
    shim.put("o", b"123", Record((Motif("concat", {"of": "a"}),)))
    fresh.note("o")
    fresh.scan_due(1.0)
    assert runtime.items.names() == ["o"]
    fresh.scan_due(3.0)
    fresh.scan_due(1000.0)
    assert found == ["o", "o"]
