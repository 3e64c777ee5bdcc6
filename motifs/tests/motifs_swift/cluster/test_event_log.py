"""Events of a motif daemon in the log of the cluster."""

import pytest

from sluice_core.store.store import Store
from sluice_motifs_swift.assembly import EventReporter


@pytest.mark.service
def test_an_event_names_its_node_and_what_it_is_about(store):
    EventReporter(store, "n1", lambda: 7.0)("motif_thrashing", "AUTH_a/c", "too much came back")
    (found,) = store.events_after("0-0", 10).events
    assert (found.at, found.severity, found.kind, found.node) == (7.0, "warning", "motif_thrashing", "n1")
    assert (found.subject, found.source, found.text) == ("AUTH_a/c", "motifs/n1", "too much came back")


def test_while_redis_is_away_it_is_in_the_log_of_the_daemon(caplog):
    store = Store("redis://127.0.0.1:1", timeout=0.2)
    EventReporter(store, "n1", lambda: 7.0)("motif_mismatch", "AUTH_a/c/o", "other bytes")
    store.close()
    assert "motif_mismatch: other bytes" in caplog.text
    assert "an event is not logged" in caplog.text
