"""The shared state of a node's processes about writes: marks and journal."""

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluice_core.cache import write_journal as journal_module
from sluice_core.cache.write_journal import WriteJournal, WriteJournalReader
from sluice_core.cache.write_marks import BEGUN, ENDED, object_digest, open_write_marks, timestamp_units
from sluice_core.errors import PeerError

ONE, OTHER = object_digest(b"/a/c/one"), object_digest(b"/a/c/other")


@pytest.fixture
def marks(tmp_path):
    opened = open_write_marks(tmp_path, slots=1024)
    yield opened
    opened.close()


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("1700000000.12345", 170000000012345),
        ("1700000000.12345_00000000000000a1", 170000000012345),
        ("1700000000.5", 170000000050000),
        ("1700000000", 170000000000000),
        ("", ENDED),
        ("soon", ENDED),
        ("-1.0", ENDED),
    ],
)
def test_a_timestamp_becomes_a_stamp(text, wanted):
    assert timestamp_units(text) == wanted


@settings(deadline=None)
@given(st.integers(10**9, 10**10), st.integers(0, 99999), st.integers(1, 10**6))
def test_a_later_timestamp_has_a_greater_stamp(seconds, fraction, later):
    first = seconds * 100_000 + fraction
    second = first + later
    assert timestamp_units(f"{first // 100_000}.{first % 100_000:05}") < timestamp_units(
        f"{second // 100_000}.{second % 100_000:05}"
    )


def test_every_write_changes_the_token_and_a_begun_one_makes_it_odd(marks):
    seen = [marks.token(ONE)]
    for found in (BEGUN, 7, BEGUN, ENDED, 9):
        marks.apply(ONE, found)
        assert marks.token(ONE) % 2 == (found == BEGUN)
        seen.append(marks.token(ONE))
    assert len(set(seen)) == len(seen)
    assert marks.token(OTHER) == 0


def test_the_newest_write_is_remembered_whatever_the_order(marks):
    assert marks.newest(ONE) == 0
    marks.end(ONE, 100)
    marks.end(ONE, 90)  # from a proxy whose clock is behind; Swift also keeps the other write
    marks.begin(ONE)
    marks.end(ONE, ENDED)
    assert marks.newest(ONE) == 100


def test_a_slot_shared_by_two_objects_gives_no_wrong_answer(tmp_path):
    marks = open_write_marks(tmp_path, slots=1)
    marks.end(ONE, 100)
    before = marks.token(ONE)
    marks.end(OTHER, 50)
    assert marks.newest(OTHER) == 50
    assert marks.newest(ONE) == 0
    assert marks.token(ONE) != before


def test_processes_share_write_marks(tmp_path, marks):
    second = open_write_marks(tmp_path, slots=1024)
    second.end(ONE, 5)
    assert marks.newest(ONE) == 5
    assert marks.token(ONE) == second.token(ONE)


def test_write_marks_are_not_trusted_after_a_reboot(tmp_path):
    first = open_write_marks(tmp_path, slots=1024, boot=1)
    first.trust_until(1 << 62)
    epoch = first.epoch
    assert first.is_trusted()
    again = open_write_marks(tmp_path, slots=1024, boot=1)
    assert again.is_trusted()
    assert again.epoch == epoch
    booted = open_write_marks(tmp_path, slots=1024, boot=2)
    assert not booted.is_trusted()
    assert booted.epoch != epoch


def test_trust_expires(marks):
    assert not marks.is_trusted()
    marks.trust_until(1)
    assert not marks.is_trusted()


@pytest.mark.parametrize("damage", [lambda file: file.write_bytes(b"x" * 10), lambda file: file.write_bytes(b"")])
def test_a_damaged_file_is_made_anew(tmp_path, damage):
    open_write_marks(tmp_path, slots=1024).close()
    damage(tmp_path / "marks")
    marks = open_write_marks(tmp_path, slots=1024)
    marks.end(ONE, 5)
    assert marks.newest(ONE) == 5
    assert sorted(one.name for one in tmp_path.iterdir()) == ["marks"]


def test_an_unusable_folder_is_reported(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(PeerError, match="cannot share marks"):
        open_write_marks(tmp_path / "file" / "below")


def test_the_agent_reads_what_all_workers_wrote_in_order(tmp_path, marks):
    first, second, reader = (
        WriteJournal(tmp_path, marks),
        WriteJournal(tmp_path, marks),
        WriteJournalReader(tmp_path, marks),
    )
    assert reader.read() == []
    first.append(ONE, BEGUN)
    second.append(OTHER, BEGUN)
    first.append(ONE, 5)
    assert reader.read() == [(ONE, BEGUN), (OTHER, BEGUN), (ONE, 5)]
    assert reader.read() == []
    assert not marks.pop_loss()


def test_what_was_written_before_the_agent_started_is_read(tmp_path, marks):
    WriteJournal(tmp_path, marks).append(ONE, 5)
    assert WriteJournalReader(tmp_path, marks).read() == [(ONE, 5)]


def test_no_write_is_lost_when_the_agent_rotates_the_journal(tmp_path, marks, monkeypatch):
    monkeypatch.setattr(journal_module, "TURN", 320)
    slow, reader = WriteJournal(tmp_path, marks), WriteJournalReader(tmp_path, marks)
    slow.append(ONE, 1)
    told, heard = [(ONE, 1)], reader.read()
    quick = WriteJournal(tmp_path, marks)
    for number in range(2, 100):
        (slow if number % 7 == 0 else quick).append(OTHER, number)
        told.append((OTHER, number))
        if number % 5 == 0:
            heard += reader.read()
    heard += reader.read()
    last_said = list(dict.fromkeys(reversed(heard)))[::-1]  # a late record is in both files
    assert last_said == told
    assert not marks.pop_loss()


def test_without_an_agent_the_journal_stays_bounded_and_the_loss_is_recorded(tmp_path, marks, monkeypatch):
    monkeypatch.setattr(journal_module, "LIMIT", 320)
    journal = WriteJournal(tmp_path, marks)
    for number in range(2, 100):
        journal.append(ONE, number)
    assert os.stat(tmp_path / "told").st_size <= 352
    assert marks.pop_loss()
    assert not marks.pop_loss()


def test_an_unwritable_journal_is_logged(tmp_path, marks):
    (tmp_path / "told").mkdir()
    WriteJournal(tmp_path, marks).append(ONE, 5)
    assert marks.pop_loss()
