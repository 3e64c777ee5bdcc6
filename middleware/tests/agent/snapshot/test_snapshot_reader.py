"""Readers of a snapshot, also without a valid one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice_core.messages.policies import Change, Target
from sluice_core.messages.predicate import Facts
from sluice_core.snapshot import keys
from sluice_core.snapshot.reader import SnapshotReader, SnapshotWriter
from sluice_core.store.records import FullState, Head
from sluice_core.testing import assignment

FACTS = Facts("PUT", size=10)


def loaded(*assignments, epoch=1, history="h", broken=None):
    return FullState(history, epoch, assignments, broken or {})


def change(epoch, *puts, drops=(), history="h"):
    return Change(epoch, history, 0.0, puts=puts, drops=drops)


def found(reader, path):
    """Ids of all assignments for a path, whatever their scope."""
    candidates = reader.find(*path.split("/", 2))
    return sorted(one.id for pipeline in candidates.resolve(FACTS).values() for one in pipeline)


@pytest.fixture
def writer(tmp_path):
    writer = SnapshotWriter(tmp_path / "snapshot", boot="boot1")
    writer.open()
    yield writer
    writer.close()


@pytest.fixture
def reader(writer):
    reader = SnapshotReader(writer.folder, boot="boot1")
    yield reader
    reader.close()


def in_another_process(code, *arguments):
    """Run ``code`` in a fresh interpreter with Sluice's packages; return its exit code and output."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)], env=env, capture_output=True, text=True, timeout=60
    )
    return done.returncode, done.stdout.strip(), done.stderr


def test_each_level_is_found_and_nothing_else(writer, reader):
    everything = Target("tenant", "all")
    writer.reload(
        loaded(
            assignment("o.0", "AUTH_a/c/o/with/slashes", keyword="k1"),
            assignment("c.0", "AUTH_b/c", keyword="k2"),
            assignment("t.0", "AUTH_c", keyword="k3"),
            assignment("all.0", target=everything, keyword="k4"),
            assignment("m.0@AUTH_d", target=everything, member="AUTH_d", keyword="k5"),
        )
    )
    reader.refresh()
    assert reader.problem == ""
    assert found(reader, "AUTH_a/c/o/with/slashes") == ["o.0"]
    assert found(reader, "AUTH_a/c/o") == ["all.0"]
    assert found(reader, "AUTH_b/c/x") == ["c.0"]
    assert found(reader, "AUTH_c/c/x") == ["t.0"]
    assert found(reader, "AUTH_d/c/x") == ["all.0", "m.0@AUTH_d"]


def test_the_cluster_is_filed_under_everything_and_a_group_without_members_nowhere(writer, reader):
    group = Target("container", "group", "mine")
    writer.reload(loaded(assignment("g.0", target=group), assignment("x.0", "", keyword="other")))
    reader.refresh()
    assert found(reader, "AUTH_x/c/o") == ["x.0"]
    assert writer.count == 2


def test_long_names_are_found_and_told_apart(writer, reader):
    long = "o" * 1000
    writer.reload(loaded(assignment("p.0", f"AUTH_a/c/{long}")))
    reader.refresh()
    assert found(reader, f"AUTH_a/c/{long}") == ["p.0"]
    assert found(reader, f"AUTH_a/c/{long}x") == []


@given(st.text(max_size=40), st.text(max_size=300), st.text(max_size=600))
def test_the_quick_keys_are_the_keys(account, container, obj):
    assert keys.snapshot_keys(account, container, obj) == (
        keys.snapshot_key("object", f"{account}/{container}/{obj}"),
        keys.snapshot_key("container", f"{account}/{container}"),
        keys.snapshot_key("tenant", account),
        keys.EVERYTHING_KEY,
    )


def test_a_change_is_seen_at_once_and_a_cached_answer_is_not_stale(writer, reader):
    writer.reload(loaded(assignment("p.0", "AUTH_a")))
    reader.refresh()
    assert found(reader, "AUTH_a/c/o") == ["p.0"]
    writer.apply([change(2, assignment("q.0", "AUTH_a", keyword="other"))])
    assert found(reader, "AUTH_a/c/o") == ["p.0", "q.0"]
    writer.apply([change(3, drops=("p.0",))])
    assert found(reader, "AUTH_a/c/o") == ["q.0"]
    assert reader.position() == Head("h", 3)


def test_the_same_answer_is_prepared_once(writer, reader):
    writer.reload(loaded(assignment("p.0", "AUTH_a")))
    reader.refresh()
    assert reader.find("AUTH_a", "c", "o") is reader.find("AUTH_a", "d", "p")


def test_without_a_snapshot_no_policy_applies_and_the_reader_says_why(tmp_path):
    reader = SnapshotReader(tmp_path / "nowhere", boot="boot1")
    assert found(reader, "AUTH_a/c/o") == []
    assert reader.problem
    reader.refresh()
    assert "no snapshot" in reader.problem
    assert found(reader, "AUTH_a/c/o") == []
    assert (reader.snapshot_id, reader.position()) == ("", Head())


def test_a_snapshot_that_comes_later_is_taken_at_the_next_refresh(writer, reader):
    reader.refresh()
    writer.reload(loaded(assignment("p.0", "AUTH_a")))
    assert found(reader, "AUTH_a/c/o") == []
    reader.refresh()
    assert (reader.problem, reader.snapshot_id) == ("", writer.snapshot_id)
    assert found(reader, "AUTH_a/c/o") == ["p.0"]


def test_a_snapshot_that_nobody_wrote_is_not_read_again(writer, reader, monkeypatch):
    writer.reload(loaded(assignment("p.0", "AUTH_a")))
    reads = []
    known = reader._read_uploads
    monkeypatch.setattr(reader, "_read_uploads", lambda: (reads.append(1), known()))
    for epoch, expected in enumerate((1, 2), start=2):  # opening one is followed by a second check
        for _ in range(3):
            reader.refresh()
        assert len(reads) == expected + 1
        writer.apply([change(epoch, assignment(f"p.{epoch}", "AUTH_a"))])
    other = _rebuilt(writer, loaded(assignment("q.0", "AUTH_a")))
    reader.refresh()
    assert reader.snapshot_id == other.snapshot_id
    other.close()


def test_a_replaced_generation_is_noticed_and_the_old_one_serves_until_then(writer, reader):
    writer.reload(loaded(assignment("p.0", "AUTH_a")))
    reader.refresh()
    old = reader.snapshot_id
    again = _rebuilt(writer, loaded(assignment("q.0", "AUTH_a")))
    assert found(reader, "AUTH_a/c/o") == ["p.0"]
    reader.refresh()
    assert reader.snapshot_id == again.snapshot_id != old
    assert found(reader, "AUTH_a/c/o") == ["q.0"]
    again.close()


def _rebuilt(writer, contents):
    """A writer that found no usable snapshot in the folder and so wrote a new generation."""
    (writer.folder / "current").rename(writer.folder / "hidden")
    writer.close()
    again = SnapshotWriter(writer.folder, boot="boot1")
    again.open()
    assert again.reload(contents) is True
    return again


def test_a_new_generation_that_cannot_be_read_leaves_the_old_one(writer, reader):
    writer.reload(loaded(assignment("p.0", "AUTH_a")))
    reader.refresh()
    (writer.folder / "current").unlink()
    (writer.folder / "current").symlink_to("gen-9-boot1")
    reader.refresh()
    assert "gen-9" in reader.problem
    assert found(reader, "AUTH_a/c/o") == ["p.0"]


def test_a_snapshot_from_before_the_boot_is_not_read(writer):
    writer.reload(loaded(assignment("p.0", "AUTH_a")))
    late = SnapshotReader(writer.folder, boot="boot2")
    late.refresh()
    assert "before this boot" in late.problem
    assert found(late, "AUTH_a/c/o") == []


def test_an_assignment_of_a_newer_agent_is_left_out_and_named(writer, reader):
    strange = assignment("p.0", "AUTH_a", keyword="strange", when=["phase of the moon", "full"])
    writer.reload(loaded(strange, assignment("q.0", "AUTH_a")))
    reader.refresh()
    assert found(reader, "AUTH_a/c/o") == ["q.0"]
    assert "`p.0`" in reader.problem
    reader.refresh()
    assert "`p.0`" in reader.problem
    writer.apply([change(2, drops=("p.0",))])
    reader.refresh()
    assert found(reader, "AUTH_a/c/o") == ["q.0"]
    assert reader.problem == ""


def test_two_readers_in_one_process_share_the_environment(writer, reader):
    writer.reload(loaded(assignment("p.0", "AUTH_a")))
    other = SnapshotReader(writer.folder, boot="boot1")
    reader.refresh()
    other.refresh()
    other.close()
    assert found(reader, "AUTH_a/c/o") == ["p.0"]
    assert found(other, "AUTH_a/c/o") == []


def test_a_reader_first_then_a_writer_in_one_process_is_refused_clearly(writer):
    writer.reload(loaded(assignment("p.0", "AUTH_a")))
    writer.close()
    reader = SnapshotReader(writer.folder, boot="boot1")
    reader.refresh()
    again = SnapshotWriter(writer.folder, boot="boot1")
    again.open()
    assert "open for reading in this process already" in again.problem
    reader.close()
    assert again.open() == Head("h", 1)
    again.close()


def test_workers_that_open_after_the_fork_do_well_and_one_that_inherits_is_told(writer):
    writer.reload(loaded(assignment("p.0", "AUTH_a")))
    code = """
import os, sys
from sluice_core.snapshot.reader import SnapshotReader
from sluice_core.messages.predicate import Facts
reader = SnapshotReader(sys.argv[1], boot="boot1")
def count():
    return len(reader.find("AUTH_a", "c", "o").resolve(Facts("PUT")))
def in_a_child(wanted, problem):
    child = os.fork()
    if child == 0:
        assert count() == 0
        reader.refresh()
        assert (count(), problem in reader.problem) == (wanted, True), reader.problem
        os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
for _ in range(3):
    in_a_child(1, "")
reader.refresh()
assert count() == 1
in_a_child(0, "before this process was forked")
assert count() == 1
print("fine")
"""
    assert in_another_process(code, writer.folder) == (0, "fine", "")


def test_a_truncated_file_is_a_problem_not_a_bus_error(writer, tmp_path):
    writer.reload(loaded(*(assignment(f"p{n}.0", f"AUTH_{n}") for n in range(2000))))
    data = Path(writer.folder, os.readlink(writer.folder / "current"), "data.mdb")
    size = data.stat().st_size
    used = data.read_bytes()
    writer.close()
    code = """
import sys
from pathlib import Path
from sluice_core.snapshot import keys
from sluice_core.snapshot.reader import SnapshotReader, SnapshotWriter
folder, data = Path(sys.argv[1]), Path(sys.argv[2])
whole = data.read_bytes()
for length in map(int, sys.argv[3:]):
    data.write_bytes(whole[:length])
    reader = SnapshotReader(folder, boot="boot1")
    reader.refresh()
    assert reader.problem, length
    assert reader.find("AUTH_1", "c", "o").constant == {}
    writer = SnapshotWriter(folder, boot="boot1")
    assert writer.open().history == "" and writer.problem, length
    writer.close()
    print(length, flush=True)
"""
    lengths = sorted(
        {0, 1, 100, 4095, 4096, 4097, 4200, 8191, 8192, 8193, size - 1, size - 4096, *range(5000, size, 9973)}
    )
    code_, out, err = in_another_process(code, writer.folder, data, *lengths)
    assert (code_, out.split()) == (0, [str(one) for one in lengths]), err
    data.write_bytes(used)
    assert writer.open() == Head("h", 1)


def test_more_readers_than_lmdb_allows_by_default(writer):
    writer.reload(loaded(assignment("p.0", "AUTH_a")))
    code = """
import os, sys
from sluice_core.snapshot.reader import SnapshotReader
from sluice_core.messages.predicate import Facts
readers, go = [], os.pipe()
ready = os.pipe()
for _ in range(140):
    child = os.fork()
    if child == 0:
        os.close(go[1])
        reader = SnapshotReader(sys.argv[1], boot="boot1")
        reader.refresh()
        good = len(reader.find("AUTH_a", "c", "o").resolve(Facts("PUT"))) == 1 and not reader.problem
        os.write(ready[1], b"y" if good else b"n")
        os.read(go[0], 1)  # until all are there
        os._exit(0)
    readers.append(child)
answers = b"".join(os.read(ready[0], 1) for _ in readers)
os.close(go[1])
for child in readers:
    os.waitpid(child, 0)
print(answers.count(b"y"))
"""
    code_, out, err = in_another_process(code, writer.folder)
    assert (code_, out) == (0, "140"), err
