"""A voter's files are replaced as a whole, and what cannot be read is not taken for missing."""

import errno
import os
from pathlib import Path

import pytest

from sluice_middleware.object_server.voter import small_files
from sluice_middleware.object_server.voter.small_files import Damaged, read_fields, write_fields

FIELDS = {"promised": "1700000000.00000_0000010000000000", "accepted": None, "home": "127.0.0.1:6300"}


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "abc" / "file")


def test_fields_are_read_as_they_were_written(path):
    assert read_fields(path) is None
    write_fields(path, FIELDS)
    assert read_fields(path) == FIELDS
    write_fields(path, {"home": "é"})
    assert read_fields(path) == {"home": "é"}
    assert os.listdir(os.path.dirname(path)) == ["file"]


def test_the_page_of_the_format_shows_a_record(path):
    page = (Path(__file__).parents[5] / "docs/reference/format-voters.md").read_text()
    (line,) = (one for one in page.splitlines(keepends=True) if one.startswith("1 "))
    os.makedirs(os.path.dirname(path))
    Path(path).write_text(line)
    assert set(read_fields(path)) == {"accepted", "deleted", "home", "promised"}


def test_each_damaged_byte_and_each_lost_end_is_noticed(path):
    write_fields(path, FIELDS)
    with open(path, "rb") as file:
        good = file.read()
    damaged = [good[:place] + bytes([good[place] ^ 4]) + good[place + 1 :] for place in range(len(good))]
    for data in [*damaged, *(good[:length] for length in range(len(good)))]:
        with open(path, "wb") as file:
            file.write(data)
        with pytest.raises(Damaged):
            read_fields(path)


def test_a_file_that_cannot_be_opened_is_not_missing(path):
    os.makedirs(path)
    with pytest.raises(Damaged, match="cannot be read"):
        read_fields(path)


def test_a_full_device_leaves_the_old_file(path, monkeypatch):
    write_fields(path, FIELDS)

    def fail(descriptor):
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(small_files.os, "fsync", fail)
    with pytest.raises(OSError, match="full"):
        write_fields(path, {"home": "h2"})
    assert read_fields(path) == FIELDS


def test_a_file_is_on_the_disk_before_its_name_and_its_name_before_the_return(path, monkeypatch):
    steps = []

    def noted(name, function):
        return lambda *args: (steps.append(name), function(*args))[1]

    monkeypatch.setattr(small_files.os, "fsync", noted("fsync", os.fsync))
    monkeypatch.setattr(small_files.os, "rename", noted("rename", os.rename))
    monkeypatch.setattr(small_files, "fsync_dir", lambda folder: steps.append(os.path.basename(folder)))
    write_fields(path, FIELDS)
    assert steps[:3] == ["fsync", "rename", "abc"]
    assert len(steps) == 4  # the new folder's name, too
    write_fields(path, FIELDS)
    assert steps[4:] == ["fsync", "rename", "abc"]
