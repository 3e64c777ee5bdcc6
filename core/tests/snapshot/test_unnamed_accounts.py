"""Accounts without a record, and containers without records of objects, are looked up once.

Records that are written later are found at once.
"""

import pytest

from sluice_core.messages.policies import Change
from sluice_core.snapshot import reader as reader_module
from sluice_core.snapshot.reader import SnapshotReader, SnapshotWriter
from sluice_core.store.records import FullState
from sluice_core.testing import assignment

LONG = "n" * 600


@pytest.fixture
def writer(tmp_path):
    made = SnapshotWriter(tmp_path)
    made.open()
    made.reload(FullState("h", 1, (assignment("other.0", "AUTH_other/c", keyword="noop"),)))
    yield made
    made.close()


@pytest.fixture
def reader(writer, tmp_path):
    made = SnapshotReader(tmp_path)
    made.refresh()
    yield made
    made.close()


def found(reader, *path):
    """Ids of the assignments in force for an object."""
    return sorted(one.id for pipeline in reader.find(*path).constant.values() for one in pipeline)


def put(writer, *paths):
    puts = tuple(assignment(f"p{number}.0", path, keyword="noop", created=number) for number, path in enumerate(paths))
    writer.apply([Change(writer.position.epoch + 1, "h", 0.0, puts=puts)])


@pytest.mark.parametrize(
    "path", ["", "AUTH_a", "AUTH_a/c", "AUTH_a/c/o", f"AUTH_a/c/{LONG}", f"AUTH_a/{LONG}"], ids=len
)
def test_a_policy_holds_at_once_for_an_account_that_had_none(writer, reader, path):
    parts = path.split("/", 2) if path else []
    target = (*parts, *("AUTH_a", "c", "o")[len(parts) :])
    assert found(reader, *target) == []
    put(writer, path)
    assert found(reader, *target) == ["p0.0"]


@pytest.mark.parametrize("path", ["AUTH_ab/c", "AUTH_a0", "AUTH_", "AUTH_é/c"])
def test_policies_of_accounts_with_similar_names_are_not_found(writer, reader, path):
    put(writer, path, "")
    assert found(reader, "AUTH_a", "c", "o") == ["p1.0"]


@pytest.mark.parametrize("path", ["AUTH_a/c", "AUTH_a/c/o", f"AUTH_a/c/{LONG}"], ids=len)
@pytest.mark.parametrize("named", ["", "AUTH_a", "AUTH_a/c"])
def test_a_narrower_policy_holds_at_once_where_another_one_did(writer, reader, named, path):
    put(writer, named)
    target = (*path.split("/"), "o")[:3]
    assert found(reader, *target) == ["p0.0"]
    newer = assignment("newer.0", path, keyword="noop", created=9)
    writer.apply([Change(writer.position.epoch + 1, "h", 0.0, puts=(newer,))])
    assert found(reader, *target) == ["newer.0"]


def test_an_account_of_which_some_object_is_named_is_read_each_time(writer, reader):
    put(writer, "AUTH_a/c/o")
    assert found(reader, "AUTH_a", "c", "other") == []
    assert found(reader, "AUTH_a", "c", "o") == ["p0.0"]
    assert found(reader, "AUTH_a", "d", "") == []


def test_a_container_without_a_named_object_is_read_once(writer, reader, monkeypatch):
    put(writer, "AUTH_a/c", "AUTH_a/cc/o", "AUTH_b/c/o")
    for path in (("AUTH_a", "c", "1"), ("AUTH_a", "d", "1")):
        reader.find(*path)
    monkeypatch.setattr(reader, "_look_up", None)
    assert found(reader, "AUTH_a", "c", "2") == ["p0.0"]
    assert found(reader, "AUTH_a", "c", LONG) == ["p0.0"]
    assert found(reader, "AUTH_a", "d", "2") == []


def test_what_is_known_of_accounts_is_bounded(writer, reader, monkeypatch):
    monkeypatch.setattr(reader_module, "MOST", 10)
    put(writer, *(f"AUTH_{number}/c" for number in range(30)))
    for number in range(60):
        assert found(reader, f"AUTH_{number}", "c", "o") == ([f"p{number}.0"] if number < 30 else [])
    put(writer, *(f"AUTH_0/c{number}" for number in range(30)))
    for number in range(30):
        assert found(reader, "AUTH_0", f"c{number}", "o") == [f"p{number}.0"]
    assert 0 < len(reader._quiet) + len(reader._settled) + len(reader._named) <= 10 + 2
