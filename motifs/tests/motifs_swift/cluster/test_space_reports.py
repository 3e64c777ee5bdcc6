"""Reports of spaces in Redis, and the policies of spaces in a node's snapshot."""

import pytest

from sluice_core.resolve import Candidates
from sluice_core.store.records import Head
from sluice_core.testing import assignment
from sluice_motif_control.messages import SpaceStatus
from sluice_motif_control.spaces import read_spaces, write_spaces
from sluice_motifs_swift.assembly import SnapshotRules

pytestmark = pytest.mark.service


def status(path, used=1):
    return SpaceStatus(path, "tenant", 10, used, 3, parts={f"{path}/c": (4, 1)})


def test_reports_are_read_as_they_were_written_last(store):
    keys = store.keys
    store.run(write_spaces(keys, [status("AUTH_b"), status("AUTH_ö\udc80")]))
    store.run(write_spaces(keys, [status("AUTH_b", 2)]))
    store.run(write_spaces(keys, []))
    found = store.run(read_spaces(keys))
    assert [(one.path, one.used) for one in found] == [("AUTH_b", 2), ("AUTH_ö\udc80", 1)]
    assert store.client.ttl(keys.motif_space_reports) > 0


def test_nothing_is_shown_of_a_space_that_nobody_reports_any_more(store):
    keys = store.keys
    store.run(write_spaces(keys, [status("AUTH_a"), status("AUTH_b")]))
    store.client.zadd(keys.motif_spaces, {"AUTH_a": 1})
    assert [one.path for one in store.run(read_spaces(keys))] == ["AUTH_b"]
    store.run(write_spaces(keys, [status("AUTH_c")]))
    assert store.client.hlen(keys.motif_space_reports) == 2


class Snapshot:
    def __init__(self):
        self.epoch = 1
        self.refreshed = 0

    def refresh(self):
        self.refreshed += 1

    def position(self):
        return Head("h", self.epoch)

    def find(self, account, container="", obj=""):
        rule = assignment(kind="motif", keyword="elasticity", params={"target_size": 7})
        attached = assignment(id="p.1", kind="motif", keyword="motif", params={"template": "x"}, when=["size", ">", 3])
        return Candidates([rule, attached] if (account, container) == ("AUTH_a", "c") else [])


def test_spaces_are_read_from_a_snapshot_until_it_changes():
    snapshot = Snapshot()
    rules = SnapshotRules(snapshot)
    before = rules.refresh()
    assert rules.refresh() == before
    assert rules.container("AUTH_a/c/o/with/slashes") == "AUTH_a/c"
    assert rules.membership("AUTH_a/c").space.target_size == 7
    assert rules.membership("AUTH_a/d") is None
    snapshot.epoch = 2
    assert rules.refresh() != before
